r"""A markdown file as a head and `## ` sections. Lines end in `\n` alone; code fences are respected."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

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
    if not any("```" in line or "~~~" in line for line in lines):
        return found
    closings = {char: _Closings.of(lines, char) for char in "`~"}
    at = 0
    while at < len(lines):
        mark = _opening(lines[at])
        end = None if mark is None else closings[mark[0]].after(at, len(mark))
        if end is not None:
            found.append(range(at, end + 1))
            at = end
        at += 1
    return found


def closed(text: str) -> str:
    """The text with a closing fence at its end when its last code fence is open.

    For text on its way into a file: an open fence would take in what follows up to the next fence there.
    """
    if "```" not in text and "~~~" not in text:
        return text
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


@dataclass(frozen=True, slots=True)
class _Closings:
    """The lines that may close a fence of one character, how long their marks are, and the longest from each on."""

    lines: list[int]
    lengths: list[int]
    longest: list[int]

    @classmethod
    def of(cls, lines: Sequence[str], char: str) -> _Closings:
        found = [(n, mark) for n, line in enumerate(lines) if char in line and (mark := _FENCE.match(line))]
        found = [(n, mark) for n, mark in found if mark["mark"][0] == char and not mark["info"].strip()]
        lengths = [len(mark["mark"]) for _, mark in found]
        longest = list(accumulate(reversed(lengths), max))[::-1]
        return cls([n for n, _ in found], lengths, longest)

    def after(self, line: int, length: int) -> int | None:
        """The first line behind `line` with a mark of at least `length`. Looked through only if there is one."""
        at = bisect_right(self.lines, line)
        if at == len(self.lines) or self.longest[at] < length:
            return None
        return next(self.lines[n] for n in range(at, len(self.lines)) if self.lengths[n] >= length)


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


@dataclass(slots=True, eq=False)
class _Part:
    """What stands under one heading (of any level from `## ` down); `path` names it and those above it.

    `blanks` are the blank lines at its end, `following` is the next part.
    """

    path: tuple[str, ...]
    lines: list[str]
    blanks: list[str] = field(default_factory=list)
    following: _Part | None = None

    def settle(self) -> None:
        end = len(self.lines)
        while end and not self.lines[end - 1].strip():
            end -= 1
        self.blanks = self.lines[end:]
        del self.lines[end:]


class _Outline:
    """Parts in order, each found by its path and by the families it is the last of, without looking through all."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._head = self._tail = parts[0]
        self._by_path: dict[tuple[str, ...], _Part] = {}
        self._last_of: dict[tuple[str, ...], _Part] = {}
        for part in parts:
            part.settle()
            self._by_path.setdefault(part.path, part)
            if part is not self._head:
                self._insert(part, self._tail)

    def place(self, part: _Part, added: list[str]) -> None:
        """`added` at the end of the part with the same path, else as a part of its own, behind its family."""
        known = self._by_path.get(part.path)
        if known is not None:
            known.lines += added[1:] if part.path else added
            return
        parent = part.path[:-1]
        before = self._last_of.get(parent, self._tail) if parent else self._tail
        blanks = len(before.blanks)
        has_lines = before is not self._head or bool(before.lines)
        before.blanks = [""] if has_lines else []
        new = _Part(part.path, added, [""] * (blanks if before is self._tail else 1))
        self._by_path[part.path] = new
        self._insert(new, before)

    def lines(self) -> Iterator[str]:
        part: _Part | None = self._head
        while part is not None:
            yield from part.lines
            yield from part.blanks
            part = part.following

    def _insert(self, part: _Part, before: _Part) -> None:
        for depth in range(1, len(part.path) + 1):
            family = part.path[:depth]
            if before is self._tail or self._last_of.get(family, before) is before:
                self._last_of[family] = part
        part.following, before.following = before.following, part
        if before is self._tail:
            self._tail = part


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
    outline = _Outline(_parts(ours))
    have = {_block_key(block, key) for lines in (ours, without) for block in blocks(lines)}
    for part in _parts(theirs):
        added = _added(part, have, key)
        if added:
            outline.place(part, added)
    return list(outline.lines())


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
