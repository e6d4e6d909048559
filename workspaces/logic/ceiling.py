"""Cutting a file that a machine rewrote to its ceiling."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

from workspaces.logic.sections import fences, split

MARKER_LINE = re.compile(r"<!--\s*cut to \d+ characters\b[^\n]*-->", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Fitted:
    """`text` is within the ceiling; `cut` is exactly what was left out of it, or None."""

    text: str
    cut: str | None


def default_marker(cap: int) -> str:
    """The line that tells a reader that the file went on."""
    return f"<!-- cut to {cap} characters; the rest is kept in the file's history and can be recalled -->"


def fit(text: str, *, cap: int, marker: str | None = None) -> Fitted:
    """The text in at most `cap` characters, marker included; 0 is no ceiling.

    Cut before the first `## ` section that does not fit; when not even one section fits, after a line (not
    inside fenced code if it can be helped); when not even a line, hard. Markers of an earlier cut are taken
    out first, so there is one at most, at the end. A cap too small for the marker leaves it away.
    """
    if cap == 0 or len(text) <= cap:
        return Fitted(text, None)
    marker = default_marker(cap) if marker is None else marker
    body = _without_markers(text, marker)
    room = cap - len(marker) - 2  # the newlines before and after the marker
    if room < 1:
        kept = body[: _hard_end(body, cap)]
        return Fitted(kept, body[len(kept) :] or None)
    if len(body) <= room:
        return Fitted(_marked(body, marker), None)
    end = _section_end(body, room) or _line_end(body, room) or _hard_end(body, room)
    return Fitted(_marked(body[:end], marker), body[end:])


def _without_markers(text: str, marker: str) -> str:
    lines = text.split("\n")
    kept = [line for line in lines if line != marker and not MARKER_LINE.fullmatch(line.strip())]
    return text if len(kept) == len(lines) else "\n".join(kept)


def _marked(kept: str, marker: str) -> str:
    return kept + ("" if kept.endswith("\n") or not kept else "\n") + marker + "\n"


def _section_end(body: str, room: int) -> int:
    """Where the last whole section that fits ends; 0 when not even the first does."""
    head, *rest = split(body)
    end = len(head.text)
    whole = 0
    for section in rest:
        end += len(section.text)
        if end > room:
            break
        whole = end
    return whole


def _line_end(body: str, room: int) -> int:
    """Where the last line that fits ends, outside fenced code if any such line says something; else 0."""
    lines = body.split("\n")
    inside = {number for fence in fences(lines) for number in fence[:-1]}
    end = any_end = outside_end = 0
    for number, line in enumerate(lines):
        end += len(line) + 1
        if end > room:
            break
        any_end = end
        if number not in inside:
            outside_end = end
    if body[:outside_end].strip():
        return outside_end
    return any_end if body[:any_end].strip() else 0


def _hard_end(body: str, room: int) -> int:
    """`room`, or a little less where a letter would be parted from its accents."""
    end = min(room, len(body))
    while 0 < end < len(body) and unicodedata.combining(body[end]):
        end -= 1
    return end or min(room, len(body))
