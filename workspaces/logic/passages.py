"""A file as passages that can be recalled one by one. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Final

from workspaces.logic.names import note_date

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
    # Beyond the last closing mark no comment ends, and looking for its end again and again takes its time.
    closed = source.content.rfind("-->") + len("-->") if "-->" in source.content else 0
    shown = _COMMENT.sub(_blank, source.content[:closed]) + source.content[closed:]
    for number, line in enumerate(shown.split("\n"), start=1):
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
