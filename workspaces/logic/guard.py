"""What a machine may not do to a file that it rewrites."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from recall.logic.combining import nfkc
from workspaces.logic.sections import (
    MARK,
    Section,
    closed,
    join,
    section_hash,
    spaced,
    split,
    union,
)

MAX_LOSS = 0.5

MAX_SECTIONS = 1000
"""Sections up to which held ones are put back at their place; that takes their number squared."""

MIN_LINES = 6
"""Lines from which a share means something: of a file of two lines, correcting one is no loss."""

_COMMENT = (re.compile(r"<!--"), re.compile(r"-->"))
_INJECTED = (
    re.compile(r"<\s*+memory-context\b[^<>\n]*+>", re.IGNORECASE),
    re.compile(r"<\s*+/\s*+memory-context\b[^<>\n]*+>", re.IGNORECASE),
)
# Half of a pair. A comment that never ends would hide the rest of the file.
_LOOSE = re.compile(r"<!--|<\s*+/?\s*+memory-context\b[^>\n]*+>?", re.IGNORECASE)
# `--- NAME ---` opens a file in the prompt: a line like it would pass for another file.
_FILE_HEADER = re.compile(r"^[ \t]*---[ \t]+\S.*?\.md[ \t]+---[ \t]*$", re.MULTILINE)
_PASSES = 5

_LIST_MARK = re.compile(r"\s*(?:>\s*)*(?:[-*+]\s+|\d{1,9}[.)]\s+)?(?:\[[ xX]\]\s+)?")
_HEADING_MARK = re.compile(r"\s*#{1,6}\s+")


@dataclass(frozen=True, slots=True)
class Held:
    """A section that a person wrote last, heading line included; `heading` None is the file's head."""

    heading: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Guarded:
    """The rewrite as it may be stored.

    `restored` are the headings of held sections that the proposal had changed or dropped ("" the head);
    `refused` what of the proposal was left out, line by line; `lost_share` the share (0 to 1) of the earlier
    lines that the proposal would have lost (above the bound the two were joined instead, and nothing is).
    """

    text: str
    restored: tuple[str, ...]
    refused: tuple[str, ...]
    lost_share: float


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """A machine's text without what may not enter a file, and what that was."""

    text: str
    removed: tuple[str, ...]


def scrub(text: str, *, known: str = "") -> Scrubbed:
    """The text without injected blocks, their tags, lines that imitate a file header, and HTML comments.

    Comments that stand in `known` (what the file held before) may stay. For every write by a machine, appends
    included.
    """
    allowed = {known[start:end] for start, end in _enclosed(known, *_COMMENT)}
    removed: list[str] = []
    for _ in range(_PASSES):  # what is left may close up to a new one
        spans = _unwanted(text, allowed)
        if not spans:
            return Scrubbed(text, tuple(removed))
        removed += [text[start:end].strip() for start, end in spans]
        text = _without(text, spans)
    # Marks nested this deep are there on purpose: none is left without its bracket.
    return Scrubbed(text.replace("<", ""), tuple(removed))


def _unwanted(text: str, allowed: set[str]) -> list[tuple[int, int]]:
    """The stretches that may not stay; they do not overlap."""
    comments = _enclosed(text, *_COMMENT)
    welcome = [span for span in comments if text[slice(*span)] in allowed]
    found = [span for span in comments if text[slice(*span)] not in allowed] + _enclosed(text, *_INJECTED)
    found += [one.span() for pattern in (_LOOSE, _FILE_HEADER) for one in pattern.finditer(text)]
    spans: list[tuple[int, int]] = []
    for start, end in sorted(found, key=lambda span: (span[0], -span[1])):
        in_comment = bisect_right(welcome, (start, len(text))) - 1
        if in_comment >= 0 and start < welcome[in_comment][1]:
            continue
        if not spans or start >= spans[-1][1]:
            spans.append((start, end))
    return spans


def _enclosed(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> list[tuple[int, int]]:
    """Each stretch from an opening to the next closing, both included. Linear in the text."""
    spans: list[tuple[int, int]] = []
    start = opening.search(text)
    while start is not None:
        end = closing.search(text, start.end())
        if end is None:
            break
        spans.append((start.start(), end.end()))
        start = opening.search(text, end.end())
    return spans


def _without(text: str, spans: Sequence[tuple[int, int]]) -> str:
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return "".join(text[start:end] for start, end in zip(starts, ends, strict=True))


def guard_rewrite(
    *,
    before: str,
    proposed: str,
    held: Sequence[Held],
    tombstones: Callable[[str], bool] | None = None,
    max_loss: float = MAX_LOSS,
) -> Guarded:
    """The proposed full replace of `before`, with what a machine may not change put right.

    - Held sections stay word for word, and at their place; lines that the proposal adds to them are refused.
    - Lines that `tombstones` refuses are out, save from held sections. It is asked with the bare line (no
      list or heading mark, no outer spaces); a refused `## ` heading takes its section along.
    - When more than `max_loss` of the earlier lines (not blank, not headings; compared as `normalised`) would
      be gone, the earlier text is kept and only new lines are added, under their headings. A short text (below
      `MIN_LINES`) that holds as much as before was put right, and counts as no loss.
    - What `scrub` removes is out.
    """
    held = [_whole(one) for one in held]
    scrubbed = scrub(proposed, known=before)
    tidy = "".join(closed(section.text) for section in split(scrubbed.text))
    wanted, refused = _without_forgotten(tidy, tombstones)
    earlier, _ = _without_forgotten(before, tombstones)
    kept = _with_held(before, wanted, held)
    lost = lost_share(earlier, kept.text)
    result = kept.text
    if lost > max_loss and not _is_correction(earlier, kept.text):
        both = "\n".join(union(earlier.split("\n"), wanted.split("\n"), key=_union_key))
        result = _with_held(before, both, held).text
    if not _stands(result, held):
        # Too many sections to be put in order, or a code fence that the proposal leaves open and that swallows
        # a held section. Then nothing changes.
        result = before
    return Guarded(result, kept.restored, (*scrubbed.removed, *refused, *kept.refused), lost)


def held_sections(before: str, after: str, held: Sequence[Held]) -> tuple[Held, ...]:
    """What is person-held after a person saved `after` over `before`.

    Sections that the save made or changed become held; held ones that are still there stay, as they now read;
    those that are gone are no longer held.
    """
    unchanged = Counter((section.heading, section_hash(section.text)) for section in split(before))
    was_held = {one.heading for one in held}
    now: list[Held] = []
    for section in split(after):
        if not section.text.strip():
            continue
        same = (section.heading, section_hash(section.text))
        is_new = not unchanged[same]
        if not is_new:
            unchanged[same] -= 1
        if is_new or section.heading in was_held:
            now.append(Held(section.heading, section.text))
    return tuple(now)


def normalised(line: str) -> str:
    """A line for comparing: without marks, emphasis, case, width, outer punctuation and repeated spaces."""
    text = nfkc(line).casefold()
    text = _bare(text).replace("**", "").replace("__", "").replace("`", "")
    return " ".join(text.split()).strip(" .,;:!*_。，；：！、")


def _is_correction(before: str, after: str) -> bool:
    """Whether a short text was put right, not emptied: it holds about as much as before."""
    was, now = len(_content_lines(before)), len(_content_lines(after))
    return was < MIN_LINES and now >= was


def lost_share(before: str, after: str) -> float:
    """The share (0 to 1) of the lines of `before` that are not in `after`; blank lines and headings apart."""
    there = {normalised(line) for line in after.split("\n")}
    counted = _content_lines(before)
    return sum(line not in there for line in counted) / len(counted) if counted else 0.0


def _content_lines(text: str) -> list[str]:
    lines = [normalised(line) for line in text.split("\n") if not _HEADING_MARK.match(line)]
    return [line for line in lines if line and not line.startswith("<!--")]


def _whole(held: Held) -> Held:
    """The same with its heading line, should it be missing."""
    if held.heading is None or split(held.text)[-1].heading == held.heading:
        return held
    return Held(held.heading, f"{MARK}{held.heading}\n{held.text}")


def _union_key(line: str) -> str:
    return normalised(line) or line.strip()


def _bare(line: str) -> str:
    without_heading = _HEADING_MARK.sub("", line, count=1) if _HEADING_MARK.match(line) else line
    mark = _LIST_MARK.match(without_heading)
    return without_heading[mark.end() if mark else 0 :].strip()


def _without_forgotten(text: str, tombstones: Callable[[str], bool] | None) -> tuple[str, tuple[str, ...]]:
    if tombstones is None:
        return text, ()
    refused: list[str] = []
    kept_sections: list[Section] = []
    for section in split(text):
        lines = section.text.split("\n")
        if section.heading and tombstones(section.heading):
            refused += [line for line in lines if line.strip()]
            continue
        kept: list[str] = []
        for line in lines:
            bare = _bare(line)
            if bare and tombstones(bare):
                refused.append(line)
            else:
                kept.append(line)
        kept_sections.append(replace(section, text="\n".join(kept)))
    return join(kept_sections), tuple(refused)


@dataclass(frozen=True, slots=True)
class _Kept:
    text: str
    restored: tuple[str, ...]
    refused: tuple[str, ...]


def _with_held(before: str, proposed: str, held: Sequence[Held]) -> _Kept:
    """The proposal with every held section as its person left it, where the proposal or `before` has it.

    Above `MAX_SECTIONS` it is left as it is: then a held section may be missing.
    """
    sections = split(proposed)
    order = [section.heading for section in split(before)]
    if max(len(sections), len(order), len(held)) > MAX_SECTIONS:
        return _Kept(proposed, (), ())
    placed: set[int] = set()  # by identity: two sections may read the same
    restored: list[str] = []
    refused: list[str] = []
    for one in held:
        ours = Section(one.heading, 0 if one.heading is None else 2, one.text, 0)
        at = _counterpart(sections, one, placed)
        if at is None:
            at = _place_for(sections, one.heading, order)
            sections.insert(at, ours)
            restored.append(one.heading or "")
        else:
            theirs, sections[at] = sections[at], ours
            if not _is_same(theirs, one):
                restored.append(one.heading or "")
                refused += _lines_beyond(theirs.text, one.text)
        placed.add(id(ours))
    text = "".join(
        spaced(one.text) if one is not sections[-1] and _is_near(sections, n, placed) else one.text
        for n, one in enumerate(sections)
    )
    return _Kept(text, tuple(restored), tuple(refused))


def _counterpart(sections: Sequence[Section], held: Held, placed: set[int]) -> int | None:
    """The proposal's section for `held`: the equal one of those with its heading, or the first."""
    free = [
        n
        for n, section in enumerate(sections)
        if section.heading == held.heading and id(section) not in placed
    ]
    if len(free) <= 1:
        return free[0] if free else None
    wanted = {section_hash(held.text), section_hash(closed(held.text))}
    return next((n for n in free if section_hash(sections[n].text) in wanted), free[0])


def _is_same(section: Section, held: Held) -> bool:
    """Whether the section is the held one; a proposal's open code fence has been closed meanwhile."""
    return section_hash(section.text) in {section_hash(held.text), section_hash(closed(held.text))}


def _place_for(sections: Sequence[Section], heading: str | None, order: Sequence[str | None]) -> int:
    """After the nearest section that stood above it before; at the end when it did not stand there."""
    if heading not in order:
        return len(sections)
    places = {section.heading: n for n, section in reversed(list(enumerate(sections)))}
    above = (one for one in reversed(order[: order.index(heading)]) if one is not None and one in places)
    return places[next(above, None)] + 1


def _is_near(sections: Sequence[Section], at: int, placed: set[int]) -> bool:
    """Whether this section or the next one was put here, so that the blank line between may be missing."""
    return any(id(one) in placed for one in sections[at : at + 2])


def _lines_beyond(text: str, known: str) -> list[str]:
    have = {normalised(line) for line in known.split("\n")}
    return [line for line in text.split("\n") if normalised(line) and normalised(line) not in have]


def _stands(text: str, held: Sequence[Held]) -> bool:
    there = Counter((section.heading, section_hash(section.text)) for section in split(text))
    return Counter((one.heading, section_hash(one.text)) for one in held) <= there
