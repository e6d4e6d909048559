"""What every embedder promises, and the care that is the same for all: cleaning, batching, checking."""

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from integrations.clients.errors import ProviderError
from integrations.clients.waiting import run_before_call

Vector = list[float]
"""Of length 1, each value finite."""

TextKind = Literal["query", "passage"]

# Shorter than this is a vector of zeros that was rounded, not a direction.
_SHORTEST = 1e-6


class Embedder(Protocol):
    """Text as vectors whose dot product says how alike the meanings are. May be shared by threads, and used
    after a fork.

    Both calls wait for the service and raise ProviderError; nothing is tried again. A text with nothing in it
    to embed (see `cleaned`) is a `bad_request`; one that is longer than the model takes is cut at its end.
    """

    @property
    def name(self) -> str:
        """What made a vector: those of different names cannot be compared."""

    @property
    def dimensions(self) -> int:
        """The size of each vector. Where only the server knows it, the first use asks (ProviderError)."""

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each text that is to be found, in their order; in as many requests as it takes."""

    def embed_query(self, text: str) -> Vector:
        """The vector of a text that is searched with. One request."""


@dataclass(frozen=True)
class Limits:
    """What one request of a service may hold.

    `cut` shortens one text to what the service takes; `cost` measures a text in the unit of `cost_per_call`.
    """

    texts_per_call: int
    cut: Callable[[str], str]
    cost: Callable[[str], int]
    cost_per_call: int


class Service(Protocol):
    """One maker's wire: what `CarefulEmbedder` needs to be an Embedder of it."""

    @property
    def name(self) -> str: ...

    @property
    def dimensions(self) -> int | None:
        """None: whatever the service answers with."""

    @property
    def limits(self) -> Limits: ...

    def ask(self, texts: Sequence[str], kind: TextKind) -> Sequence[Sequence[float]]:
        """What the service answers to texts within its limits: lists or arrays, as long as nothing is wrong
        with them, which nobody has checked. Raises ProviderError.
        """


class CarefulEmbedder:
    """An Embedder of `service`, whatever the service does."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._dimensions = service.dimensions

    @property
    def name(self) -> str:
        return self._service.name

    @property
    def dimensions(self) -> int:
        if self._dimensions is None:
            self.embed_query("size")
        assert self._dimensions is not None  # noqa: S101 - said by the answer, or it would have raised
        return self._dimensions

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        limits = self._service.limits
        ready = [limits.cut(text) for text in _embeddable(texts)]
        return [
            vector for batch in batches(ready, limits=limits) for vector in self._vectors_of(batch, "passage")
        ]

    def embed_query(self, text: str) -> Vector:
        (ready,) = _embeddable([text])
        (vector,) = self._vectors_of([self._service.limits.cut(ready)], "query")
        return vector

    def _vectors_of(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        run_before_call()
        vectors = checked(
            self._service.ask(texts, kind), count=len(texts), dimensions=self._dimensions, name=self.name
        )
        self._dimensions = len(vectors[0])
        return vectors


def cleaned(text: str) -> str:
    """The text without what no embedder can take: NULs, lone surrogates, white space at its ends.

    "" when there is nothing to embed: no vector can be had for such a text.
    """
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8").strip()


def batches(texts: Iterable[str], *, limits: Limits) -> Iterator[list[str]]:
    """The texts in their order, in batches within the limits; a text too costly for any stands alone."""
    batch: list[str] = []
    spent = 0
    for text in texts:
        cost = limits.cost(text)
        if batch and (len(batch) == limits.texts_per_call or spent + cost > limits.cost_per_call):
            yield batch
            batch, spent = [], 0
        batch.append(text)
        spent += cost
    if batch:
        yield batch


def checked(
    answer: Sequence[Sequence[float]], *, count: int, dimensions: int | None, name: str
) -> list[Vector]:
    """The vectors of an answer, made length 1. Raises ProviderError (`bad_answer`) when it is not `count`
    vectors of `dimensions` finite numbers (None: all of one size), not all of them zero.
    """
    if len(answer) != count:
        raise _bad(name, f"{len(answer)} vectors for {count} texts")
    vectors: list[Vector] = []
    for vector in answer:
        vectors.append(_unit(vector, size=dimensions, name=name))
        dimensions = len(vectors[0])
    return vectors


def _unit(vector: object, *, size: int | None, name: str) -> Vector:
    if not isinstance(vector, list | array):
        raise _bad(name, "something else than a vector")
    if len(vector) != (size or len(vector)):
        raise _bad(name, f"a vector of {len(vector)} numbers instead of {size}")
    try:
        length = math.hypot(*vector)
    except (TypeError, OverflowError) as error:
        raise _bad(name, "a vector with something that is not a number") from error
    if not math.isfinite(length):
        raise _bad(name, "a vector with a number that is not finite")
    if length < _SHORTEST:
        raise _bad(name, "a vector of zeros")
    return [value / length for value in vector]


def _embeddable(texts: Sequence[str]) -> list[str]:
    ready = [cleaned(text) for text in texts]
    for number, text in enumerate(ready):
        if not text:
            message = f"Text {number} of {len(ready)} has nothing in it to embed."
            raise ProviderError(message, retryable=False, kind="bad_request")
    return ready


def _bad(name: str, what: str) -> ProviderError:
    # The next answer may be right: an embedder that was being loaded, a proxy that cut the list.
    return ProviderError(f"{name} answered with {what}.", retryable=True, kind="bad_answer")
