"""A stretch of conversation as material for extraction: who said what, and when."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo

from memory.logic import echo

SPOKEN = frozenset({"user", "assistant"})
"""Roles of people and the agent. What tools and the system wrote is no testimony and stays out."""

LINE_BREAK = " ⏎ "
"""Stands for a line break, so that no text can pose as another message."""

_BREAKS = re.compile(
    r"(?<!\s)[^\S\r\n\v\f\x1c-\x1e\x85\u2028\u2029]*+[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]\s*+"
)
"""A run of spaces with a line break in it, from its first on: looked at once, however long it is."""

_CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1b\x1f\x7f]")
_NAME_MARKS = re.compile(r"[\[\]:：#\s]+")


@dataclass(frozen=True, slots=True)
class Line:
    """One message. `at` knows its zone; `is_owner` says that the remembered person wrote it."""

    message_id: int
    role: str
    speaker: str | None
    at: datetime
    text: str
    is_owner: bool

    @property
    def name(self) -> str:
        """The speaker as shown: their own name, else what they are."""
        shown = _NAME_MARKS.sub(" ", self.speaker or "").strip()
        if shown:
            return shown[:80]
        return "Agent" if self.role == "assistant" else "User"


@dataclass(frozen=True, slots=True)
class Transcript:
    """`lines` cleaned and in the owner's zone, `text` the same rendered, and what was left out."""

    lines: tuple[Line, ...]
    text: str
    omitted: int
    truncated: tuple[int, ...]
    echoes: int


def build(
    lines: Sequence[Line],
    *,
    zone: tzinfo,
    max_messages: int = 30,
    max_chars: int = 2000,
    injected: Sequence[str] = (),
) -> Transcript:
    """The newest `max_messages` spoken lines, each at most `max_chars` characters and a mark that says so.

    Marked memory blocks are taken out of every line, sentences repeating `injected` out of the agent's.
    A line with nothing left is dropped and not counted as omitted.
    """
    spoken = [line for line in lines if line.role in SPOKEN]
    recent = spoken[-max_messages:] if max_messages > 0 else []
    kept: list[Line] = []
    truncated: list[int] = []
    echoes = 0
    for line in recent:
        cleaned = echo.strip(_CONTROLS.sub("", line.text))
        echoes += cleaned.removed
        text = cleaned.text.strip()
        if line.role == "assistant" and not line.is_owner:
            own = echo.strip_echoes(text, injected)
            echoes += own.removed
            text = own.text.strip()
        if not text:
            continue
        if len(text) > max_chars:
            truncated.append(line.message_id)
            text = f"{text[:max_chars].rstrip()} … [{len(text) - max_chars} more characters cut]"
        kept.append(replace(line, text=text, at=line.at.astimezone(zone)))
    rendered = "\n".join(render(line) for line in kept)
    return Transcript(tuple(kept), rendered, len(spoken) - len(recent), tuple(truncated), echoes)


def render(line: Line) -> str:
    """`[#7 2023-05-08 13:56] Caroline: text`, always one line."""
    text = _BREAKS.sub(LINE_BREAK, line.text.strip())
    return f"[#{line.message_id} {line.at:%Y-%m-%d %H:%M}] {line.name}: {text}"
