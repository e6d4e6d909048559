"""How the local embedder's work is cut, so that no query waits long behind passages. Pure."""

from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from integrations.clients.embed.embedder import TextKind

MOST_CHARACTERS: Final = 2000
"""Of one text; what follows is not read. The model has no limit of its own and takes 0.5 ms a token."""

PIECE_TOKENS: Final = 500
"""The model's window is 512 tokens, of which the prefix and the two ends take some."""

SLICE_TOKENS: Final = 100
"""About two turns of a chat, which a query has to wait for. One at a time costs a fifth more CPU (54 ms for 44);
four or eight at a time save nothing more.
"""


@dataclass(frozen=True)
class Piece:
    """A part of text `number` that fits the model's window."""

    number: int
    text: str
    tokens: int


Slice = tuple[Piece, ...]
"""What the model is given at once."""


class Plan:
    """The work on one request: slices to be done in order, and the vectors that come of them."""

    def __init__(self, texts: Sequence[str], kind: TextKind) -> None:
        # One query may not hold up another: of a long one, the first window speaks.
        most = 1 if kind == "query" else None
        pieces = [
            piece for number, text in enumerate(texts) for piece in pieces_of(text, number=number)[:most]
        ]
        self.kind = kind
        self.slices: deque[Slice] = deque(_slices(pieces))
        self._sums: list[array[float]] = [array("f") for _ in texts]

    def take(self, done: Slice, vectors: Sequence[Sequence[float]]) -> None:
        """The vectors of a slice. A text of several pieces gets their mean, weighted by their tokens.

        Raises ValueError when they are not one vector a piece, or of different sizes for one text.
        """
        for piece, vector in zip(done, vectors, strict=True):
            so_far = self._sums[piece.number]
            if so_far:
                pairs = zip(so_far, vector, strict=True)
                self._sums[piece.number] = array("f", [old + new * piece.tokens for old, new in pairs])
            else:
                self._sums[piece.number] = array("f", [value * piece.tokens for value in vector])

    @property
    def vectors(self) -> list["array[float]"]:
        """One for each text, not yet of length 1."""
        return self._sums


def estimated_tokens(text: str) -> int:
    """At least as many tokens as the model will make of ordinary text: a third of an ASCII character each,
    one of any other (measured: English 1/4, Chinese 0.7, emoji 1).
    """
    ascii_count = len(text.encode("ascii", "ignore"))
    return (ascii_count + 3 * (len(text) - ascii_count) + 2) // 3


def pieces_of(text: str, *, number: int) -> list[Piece]:
    """The first 2,000 characters in pieces of at most 500 tokens, cut at a space where one is near."""
    rest = text[:MOST_CHARACTERS]
    pieces = []
    while rest:
        end = _end_of_piece(rest)
        pieces.append(Piece(number, rest[:end], max(1, estimated_tokens(rest[:end]))))
        rest = rest[end:].lstrip()
    return pieces


def _end_of_piece(text: str) -> int:
    thirds = 0
    for end, character in enumerate(text):
        thirds += 1 if character.isascii() else 3
        if thirds > 3 * PIECE_TOKENS:
            space = text.rfind(" ", end - end // 4, end)
            return space if space > 0 else end
    return len(text)


def _slices(pieces: Sequence[Piece]) -> Iterator[Slice]:
    batch: list[Piece] = []
    spent = 0
    for piece in pieces:
        if batch and spent + piece.tokens > SLICE_TOKENS:
            yield tuple(batch)
            batch, spent = [], 0
        batch.append(piece)
        spent += piece.tokens
    if batch:
        yield tuple(batch)
