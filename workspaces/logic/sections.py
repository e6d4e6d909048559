r"""A markdown file as a head and `## ` sections. Lines end in `\n` alone; code fences are respected."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

MARK = "## "

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>.*)", re.DOTALL)
_DEEP_HEADING = re.compile(r"(?P<marks>#{2,6}) +\S")


@dataclass(frozen=True, slots=True)
class Section:
    """A stretch of a file: its head (`heading` None, `level` 0) or one `## ` section (`level` 2).

    `heading` is the line without `## ` and outer spaces; `text` holds the heading line too; `line` is the
    1-based number of its first line.
    """

    heading: str | None
    level: int
    text: str
    line: int


def fences(lines: Sequence[str]) -> list[range]:
    """The line ranges of fenced code, fence lines included.

    A fence that is never closed is none: one stray mark must not hide every heading below it.
    """
    found: list[range] = []
    hopeless: dict[str, int] = {}  # per fence character the length from which no closing line is left
    at = 0
    while at < len(lines):
        end = _fence_end(lines, at, hopeless)
        if end is not None:
            found.append(range(at, end + 1))
            at = end
        at += 1
    return found


def closed(text: str) -> str:
    """The text with a closing fence at its end when its last code fence is open.

    For text on its way into a file: an open fence would take in what follows up to the next fence there.
    """
    lines = text.split("\n")
    code = {number for fence in fences(lines) for number in fence}
    for number, line in enumerate(lines):
        mark = None if number in code else _opening(line)
        if mark is not None:
            bare = text.rstrip("\n")
            return f"{bare}\n{mark}{text[len(bare) :] or chr(10)}"
    return text


def _opening(line: str) -> str | None:
    """The fence that `line` opens."""
    found = _FENCE.match(line)
    if found is None or (found["mark"][0] == "`" and "`" in found["info"]):
        return None
    return found["mark"]


def _fence_end(lines: Sequence[str], at: int, hopeless: dict[str, int]) -> int | None:
    mark = _opening(lines[at])
    if mark is None or len(mark) >= hopeless.get(mark[0], len(mark) + 1):
        return None
    for number in range(at + 1, len(lines)):
        closing = _FENCE.match(lines[number])
        if closing and closing["mark"].startswith(mark) and not closing["info"].strip():
            return number
    hopeless[mark[0]] = len(mark)
    return None


def split(text: str) -> list[Section]:
    """The head, always there and maybe empty, and the sections in order; `join` gives `text` back."""
    lines = text.split("\n")
    code = {number for fence in fences(lines) for number in fence}
    starts = [n for n, line in enumerate(lines) if line.startswith(MARK) and n not in code]
    parts: list[Section] = []
    for start, end in zip([0, *starts], [*starts, len(lines)], strict=True):
        piece = "\n".join(lines[start:end]) + ("\n" if start < end < len(lines) else "")
        if parts:
            parts.append(Section(lines[start][len(MARK) :].strip(), 2, piece, start + 1))
        else:
            parts.append(Section(None, 0, piece, 1))
    return parts


def join(sections: Iterable[Section]) -> str:
    """The text the sections were split from."""
    return "".join(section.text for section in sections)


def index_of(sections: Sequence[Section], heading: str) -> int | None:
    """The place of the first section with this whole heading, given with or without its `## `."""
    wanted = heading.strip().removeprefix(MARK).strip()
    return next((n for n, section in enumerate(sections) if section.heading == wanted), None)


def find(sections: Sequence[Section], heading: str) -> Section | None:
    """The first section with this whole heading (never a part of one), with or without its `## `."""
    at = index_of(sections, heading)
    return None if at is None else sections[at]


def section_hash(text: str) -> str:
    """SHA-256 (hex) of the text without spaces at line ends and blank lines at its end."""
    tidy = "\n".join(line.rstrip() for line in text.split("\n")).rstrip("\n")
    return hashlib.sha256(tidy.encode("utf-8", "surrogatepass")).hexdigest()


def spaced(text: str) -> str:
    """The text with exactly one blank line after it, so that a section can follow."""
    bare = text.rstrip("\n")
    return bare + "\n\n" if bare else ""


def blocks(lines: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The lines one by one, but fenced code in one piece."""
    at = 0
    for fence in fences(lines):
        yield from ((line,) for line in lines[at : fence.start])
        yield tuple(lines[fence.start : fence.stop])
        at = fence.stop
    yield from ((line,) for line in lines[at:])


@dataclass(slots=True)
class _Part:
    """What stands under one heading (of any level from `## ` down); `path` names it and those above it."""

    path: tuple[str, ...]
    lines: list[str]


def union(
    ours: Sequence[str],
    theirs: Sequence[str],
    *,
    without: Sequence[str] = (),
    key: Callable[[str], str] = str.rstrip,
) -> list[str]:
    """All lines of `ours` in order, and under their headings those of `theirs` that `ours` lacks.

    Lines are the same when their `key` is; those of `without` are not added.
    """
    parts = _parts(ours)
    have = {_block_key(block, key) for lines in (ours, without) for block in blocks(lines)}
    for part in _parts(theirs):
        added = _added(part, have, key)
        if added:
            _place(parts, part, added)
    return [line for part in parts for line in part.lines]


def _parts(lines: Sequence[str]) -> list[_Part]:
    parts = [_Part((), [])]
    for block in blocks(lines):
        heading = _DEEP_HEADING.match(block[0]) if len(block) == 1 else None
        if heading:
            above = tuple(one for one in parts[-1].path if _level(one) < len(heading["marks"]))
            parts.append(_Part((*above, block[0].rstrip()), []))
        parts[-1].lines.extend(block)
    return parts


def _level(heading: str) -> int:
    return len(heading) - len(heading.lstrip("#"))


def _block_key(block: tuple[str, ...], key: Callable[[str], str]) -> str:
    return key(block[0]) if len(block) == 1 else "\n".join(line.rstrip() for line in block)


def _added(part: _Part, have: set[str], key: Callable[[str], str]) -> list[str]:
    """What `part` adds to what there is, its heading first; empty when that is nothing."""
    heading = part.lines[:1] if part.path else []
    added: list[str] = []
    for block in blocks(part.lines[len(heading) :]):
        name = _block_key(block, key)
        if len(block) == 1 and not block[0].strip():
            if added and added[-1].strip():
                added.append("")
        elif name not in have:
            added.extend(block)
            have.add(name)
    while added and not added[-1].strip():
        added.pop()
    is_new = bool(heading) and key(heading[0]) not in have
    return [*heading, *added] if added or is_new else []


def _place(parts: list[_Part], part: _Part, added: list[str]) -> None:
    for known in parts:
        if known.path == part.path:
            _extend(known.lines, added[1:] if part.path else added)
            return
    parent = part.path[:-1]
    family = [n for n, known in enumerate(parts) if parent and known.path[: len(parent)] == parent]
    at = family[-1] + 1 if family else len(parts)
    before = parts[at - 1].lines
    blanks = 0
    while before and not before[-1].strip():
        before.pop()
        blanks += 1
    if any(known.lines for known in parts[:at]):
        before.append("")
    parts.insert(at, _Part(part.path, added + [""] * (blanks if at == len(parts) else 1)))


def _extend(lines: list[str], added: list[str]) -> None:
    end = len(lines)
    while end > 0 and not lines[end - 1].strip():
        end -= 1
    lines[end:end] = added
