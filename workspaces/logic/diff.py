"""Differences between two texts, by lines, in bounded time and space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MAX_DIFF_BYTES = 200_000
CONTEXT_LINES = 3

# difflib takes quadratic time over lines that recur often, and over very long texts. Lines above the first
# bound match only beside another match; beyond the second, what differs is one block. Either is correct.
_RECURS = 64
_MAX_LINES = 2_000


@dataclass(frozen=True, slots=True)
class Edit:
    """Lines `lo:hi` of the old text became lines `new_lo:new_hi` of the new one (0-based, half open)."""

    lo: int
    hi: int
    new_lo: int
    new_hi: int


def edits(old: Sequence[Hashable], new: Sequence[Hashable]) -> list[Edit]:
    """What changed, in order; between two edits stands at least one common line."""
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
    if not middle_old and not middle_new:
        return []
    if max(len(middle_old), len(middle_new)) > _MAX_LINES:
        return [Edit(head, len(old) - tail, head, len(new) - tail)]
    often = {line for line, times in Counter(middle_new).items() if times > _RECURS}
    matcher = SequenceMatcher(often.__contains__, middle_old, middle_new, autojunk=False)
    return [
        Edit(head + lo, head + hi, head + new_lo, head + new_hi)
        for tag, lo, hi, new_lo, new_hi in matcher.get_opcodes()
        if tag != "equal"
    ]


def unified(before: str, after: str, *, before_name: str, after_name: str) -> str:
    """The unified diff, at most 200 KB of UTF-8; its last line says so when some of it was left out.

    Empty when the texts are equal.
    """
    written: list[str] = []
    size = 0
    for line in _unified_lines(before, after, before_name, after_name):
        size += len(line.encode("utf-8", "replace"))
        if size > MAX_DIFF_BYTES - 100:  # 100: room for the notice
            return "".join(written) + f"… the diff is cut at {MAX_DIFF_BYTES} bytes; there is more\n"
        written.append(line)
    return "".join(written)


def _unified_lines(before: str, after: str, before_name: str, after_name: str) -> Iterator[str]:
    old, new = _kept_lines(before), _kept_lines(after)
    changed = edits(old, new)
    if changed:
        yield f"--- {before_name}\n"
        yield f"+++ {after_name}\n"
    for hunk in _hunks(changed):
        first, last = hunk[0], hunk[-1]
        above = min(CONTEXT_LINES, first.lo)
        below = min(CONTEXT_LINES, len(old) - last.hi)
        at, new_at = first.lo - above, first.new_lo - above
        old_span, new_span = _span(at, last.hi + below), _span(new_at, last.new_hi + below)
        yield f"@@ -{old_span} +{new_span} @@\n"
        for edit in hunk:
            yield from (_shown(" ", line) for line in old[at : edit.lo])
            yield from (_shown("-", line) for line in old[edit.lo : edit.hi])
            yield from (_shown("+", line) for line in new[edit.new_lo : edit.new_hi])
            at = edit.hi
        yield from (_shown(" ", line) for line in old[at : at + below])


def _hunks(changed: Sequence[Edit]) -> list[list[Edit]]:
    hunks: list[list[Edit]] = []
    for edit in changed:
        if hunks and edit.lo - hunks[-1][-1].hi <= 2 * CONTEXT_LINES:
            hunks[-1].append(edit)
        else:
            hunks.append([edit])
    return hunks


def _kept_lines(text: str) -> list[str]:
    lines = [line + "\n" for line in text.split("\n")]
    lines[-1] = lines[-1].removesuffix("\n")
    return lines if lines[-1] else lines[:-1]


def _span(start: int, stop: int) -> str:
    """A hunk's range as `diff` writes it: 1-based, an empty one names the line before it."""
    length = stop - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _shown(sign: str, line: str) -> str:
    return sign + line if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"
