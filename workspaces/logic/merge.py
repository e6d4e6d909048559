"""Three-way merge of two rewrites of one text, by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from workspaces.logic.diff import Edit, edits
from workspaces.logic.sections import union

OnConflict = Literal["ours", "union"]


@dataclass(frozen=True, slots=True)
class Conflict:
    """Both sides changed `base`, each in its own way; `line` is the 1-based place in the merged text."""

    line: int
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True, slots=True)
class Merged:
    """The merged text, and where the two sides disagreed."""

    text: str
    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class _Region:
    """A stretch of the base that at least one side changed, and the edits of each side in it."""

    lo: int
    hi: int
    ours: tuple[Edit, ...]
    theirs: tuple[Edit, ...]


def merge3(base: str, ours: str, theirs: str, *, on_conflict: OnConflict) -> Merged:
    """Both sides' changes to `base` in one text; every disagreement is told in `conflicts`.

    There, "ours" keeps ours' lines; "union" keeps ours' lines and then, under their headings, those lines of
    theirs that are new to both the base and ours (what ours deleted stays deleted).
    """
    # Without line ends: a last line then equals the same line in the middle.
    old, left, right = base.split("\n"), ours.split("\n"), theirs.split("\n")
    merged: list[str] = []
    conflicts: list[Conflict] = []
    at = 0
    for region in _regions(edits(old, left), edits(old, right)):
        merged += old[at : region.lo]
        at = region.hi
        mine = _applied(old, left, region, region.ours)
        other = _applied(old, right, region, region.theirs)
        if not region.ours:
            merged += other
        elif not region.theirs or mine == other:
            merged += mine
        else:
            was = old[region.lo : region.hi]
            line = len(merged) + 1
            conflicts.append(Conflict(line, "\n".join(was), "\n".join(mine), "\n".join(other)))
            merged += mine if on_conflict == "ours" else union(mine, other, without=was)
    merged += old[at:]
    return Merged("\n".join(merged), tuple(conflicts))


def _regions(ours: Sequence[Edit], theirs: Sequence[Edit]) -> Iterator[_Region]:
    """The edits of both sides, those that meet put together, in the order of the base."""
    waiting = sorted(
        [(edit, True) for edit in ours] + [(edit, False) for edit in theirs],
        key=lambda item: (item[0].lo, item[0].hi, not item[1]),
    )
    region: list[tuple[Edit, bool]] = []
    last: dict[bool, Edit] = {}  # of each side; its edits follow one another, so that no other reaches as far
    for edit, is_ours in waiting:
        other = last.get(not is_ours)
        if region and not (other is not None and _meet(other, edit)):
            yield _region(region)
            region, last = [], {}
        region.append((edit, is_ours))
        last[is_ours] = edit
    if region:
        yield _region(region)


def _region(members: Sequence[tuple[Edit, bool]]) -> _Region:
    return _Region(
        members[0][0].lo,
        max(edit.hi for edit, _ in members),
        tuple(edit for edit, is_ours in members if is_ours),
        tuple(edit for edit, is_ours in members if not is_ours),
    )


def _meet(first: Edit, second: Edit) -> bool:
    """Whether edits of two sides must be judged together; `first` starts no later than `second`."""
    if second.lo != first.hi:
        return second.lo < first.hi
    # They touch. Changed lines beside changed or added ones are clear; a deletion is not (the added line may
    # belong to what was deleted), nor are two places where lines were added.
    if first.new_lo == first.new_hi or second.new_lo == second.new_hi:
        return True
    return not (_same_size(first) or _same_size(second))


def _same_size(edit: Edit) -> bool:
    return edit.hi - edit.lo == edit.new_hi - edit.new_lo


def _applied(old: Sequence[str], new: Sequence[str], region: _Region, side: Sequence[Edit]) -> list[str]:
    """The region's lines as one side has them."""
    lines: list[str] = []
    at = region.lo
    for edit in side:
        lines += old[at : edit.lo]
        lines += new[edit.new_lo : edit.new_hi]
        at = edit.hi
    return lines + list(old[at : region.hi])
