"""A person's files as passages that can be recalled one by one, and the block made of the best. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from workspaces.logic.names import MEMORY, PROFILE, note_date
from workspaces.logic.tokens import estimate

MAX_PASSAGE_CHARS: Final = 600
_HEADING: Final = re.compile(r"^#{1,6}\s+(.*)$")
_TITLE: Final = re.compile(r"^# ")
_COMMENT: Final = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it is read for recall."""

    file_id: int
    name: str
    scope: str
    content: str


@dataclass(frozen=True, slots=True)
class Passage:
    """One line of a file (a bullet, or a paragraph), with the heading it stands under and its 1-based line."""

    source: Source
    heading: str
    line: int
    text: str

    @property
    def day(self) -> date | None:
        """The day a daily note is about."""
        return note_date(self.source.name)

    @property
    def searched(self) -> str:
        """What a query is compared with: the heading says what a line is about, the date when."""
        day = self.day
        return f"{self.heading} {self.text} {day.isoformat() if day else ''}".strip()


def passages_of(source: Source) -> list[Passage]:
    """The lines of a file that carry text, in order; titles, blank lines and comments carry none."""
    found: list[Passage] = []
    heading = ""
    for number, line in enumerate(_COMMENT.sub(_blank, source.content).split("\n"), start=1):
        match = _HEADING.match(line)
        if match:
            heading = "" if _TITLE.match(line) else match.group(1).strip()
            continue
        text = line.strip()
        if text and text.strip("-*=`_ "):
            found.append(Passage(source, heading, number, text[:MAX_PASSAGE_CHARS]))
    return found


def _blank(comment: re.Match[str]) -> str:
    """As many line breaks as the comment had, so that line numbers stay true."""
    return "\n" * comment.group(0).count("\n")


@dataclass(frozen=True, slots=True)
class Picked:
    """A passage that goes into the block, and how well it fits the query (0 for what is always shown)."""

    passage: Passage
    score: float


def pick(
    passages: Sequence[Passage], scores: Sequence[float], *, most: int, always_chars: int
) -> list[Picked]:
    """The best passages for a query, best first; then, of the profile and the memory, what fits `always_chars`.

    What a person is goes along in any case: a question seldom names what it needs ("suggest a restaurant").
    """
    order = sorted(range(len(passages)), key=lambda index: -scores[index])
    best = [Picked(passages[index], scores[index]) for index in order[:most] if scores[index] > 0]
    chosen = {(one.passage.source.file_id, one.passage.line) for one in best}
    left = always_chars
    for passage in passages:
        if passage.source.name not in {PROFILE, MEMORY}:
            continue
        if (passage.source.file_id, passage.line) in chosen or len(passage.text) > left:
            continue
        left -= len(passage.text)
        best.append(Picked(passage, 0.0))
    return best


def block_of(
    texts: Iterable[tuple[str, str]], *, max_chars: int, max_tokens: int | None = None
) -> tuple[str, tuple[int, ...]]:
    """`(where, text)` pairs as one block of lines, and which of them it holds; never cut inside a line."""
    lines: list[str] = []
    kept: list[int] = []
    chars = tokens = 0
    for index, (where, text) in enumerate(texts):
        line = f"- [{where}] {text.removeprefix('- ').strip()}"
        cost = estimate(line) if max_tokens is not None else 0
        if chars + len(line) + 1 > max_chars or (max_tokens is not None and tokens + cost > max_tokens):
            continue
        lines.append(line)
        kept.append(index)
        chars += len(line) + 1
        tokens += cost
    return "\n".join(lines), tuple(kept)
