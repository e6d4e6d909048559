"""Which entries say the same, and what may be made of them. Pure.

A proposal comes from a model or from `propose`; `settle` makes a plan of it that loses nothing a person wrote, no
number, and no more than its bounds allow, and tells in words what it refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from facts.logic.likeness import covers, is_same
from facts.logic.normal import normal
from memory.logic.salience import is_instruction_shaped

MOST_DROPPED: Final = 0.25
"""The share of entries that one plan may drop as worthless; a model that wants more has misread them."""
LEAST_KEPT: Final = 0.4
"""The share of its longest member's length that a merged text must have."""
MAX_TEXT: Final = 8192
"""Characters of a merged text: as many as an entry may have."""
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_PLURAL: Final = re.compile(r"(?<=[a-z]{3})s$")
_SPELLINGS: Final = {
    "favourite": "favorite",
    "colour": "color",
    "preference": "preferred",
    "prefer": "preferred",
}


@dataclass(frozen=True, slots=True)
class Line:
    """An entry as it is looked at. `number` is its name in a proposal, from 1; the newest come first.

    A protected one was written by a person or imported: its words stay as they are, and it stays.
    """

    number: int
    key: str
    content: str
    is_protected: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Entries that a proposal makes one of, and what that one says."""

    numbers: tuple[int, ...]
    text: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Drop:
    """An entry that a proposal takes for worthless."""

    number: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a model or the rules want. Each number stands in it once."""

    groups: tuple[Group, ...] = ()
    drops: tuple[Drop, ...] = ()


@dataclass(frozen=True, slots=True)
class Merge:
    """`into` stays and says `text`; those in `gone` go."""

    into: Line
    gone: tuple[Line, ...]
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done. `notes` say in words what was refused, and why."""

    merges: tuple[Merge, ...] = ()
    drops: tuple[tuple[Line, str], ...] = ()
    notes: tuple[str, ...] = ()


# --- by rules -----------------------------------------------------------------------------------------------


def propose(lines: Sequence[Line]) -> Proposal:
    """Groups of entries that say the same, that another says too, or whose keys are spellings of one another.

    Each is compared with the first of a group, never with what joined it, so that likeness does not drift.
    Compares every two: for some hundred lines at a time.
    """
    first = sorted(lines, key=lambda one: (not one.is_protected, one.number))
    groups: list[list[Line]] = []
    texts: list[str] = []
    for line in first:
        for at, group in enumerate(groups):
            text = _joined(group[0], texts[at], line)
            if text is not None:
                group.append(line)
                texts[at] = text
                break
        else:
            groups.append([line])
            texts.append(line.content)
    return Proposal(
        tuple(
            Group(tuple(one.number for one in group), text, "They say the same.")
            for group, text in zip(groups, texts, strict=True)
            if len(group) > 1
        )
    )


def _joined(leader: Line, text: str, line: Line) -> str | None:
    """What a group says once `line` has joined it; None when it does not belong there."""
    if normal(text) == normal(line.content) or is_same(text, line.content) or covers(text, line.content):
        return text
    if line.is_protected or leader.is_protected:
        return None
    if covers(line.content, text):
        return line.content
    both = f"{text.rstrip(' .;。；')}; {line.content}"
    return both if name_of(leader.key) == name_of(line.key) and len(both) <= MAX_TEXT else None


def name_of(key: str) -> frozenset[str]:
    """What a key names, whatever the order, number and spelling of its words: `favourite_drinks`, `drink_favorite`."""
    words = (_PLURAL.sub("", word) for word in key.split("_"))
    return frozenset(_SPELLINGS.get(word, word) for word in words)


# --- what may be done ---------------------------------------------------------------------------------------


def settle(lines: Sequence[Line], proposal: Proposal) -> Plan:
    """The part of a proposal that may be done. The number of entries falls with each merge and drop."""
    by_number = {line.number: line for line in lines}
    notes: list[str] = []
    merges = [
        merge
        for group in proposal.groups
        if (merge := _merge([by_number[number] for number in group.numbers], group, notes)) is not None
    ]
    drops: list[tuple[Line, str]] = []
    most = int(len(lines) * MOST_DROPPED)
    for drop in proposal.drops:
        line = by_number[drop.number]
        if line.is_protected:
            notes.append(f"{line.key} stays: a person wrote it.")
        elif not drop.reason.strip():
            notes.append(f"{line.key} stays: no reason was given to drop it.")
        elif len(drops) >= most:
            notes.append(f"{line.key} stays: at most {most} of {len(lines)} may be dropped at once.")
        else:
            drops.append((line, drop.reason))
    return Plan(tuple(merges), tuple(drops), tuple(notes))


def _merge(members: Sequence[Line], group: Group, notes: list[str]) -> Merge | None:
    protected = [line for line in members if line.is_protected]
    into = protected[0] if protected else members[0]
    gone = [line for line in members if line is not into and not line.is_protected]
    notes.extend(f"{line.key} stays: a person wrote it." for line in protected[1:])
    text = into.content if protected else group.text.strip()
    if protected:
        # Its words are not touched, so only what they say already may go.
        notes.extend(
            f"{line.key} stays: {into.key}, which a person wrote, does not say all of it."
            for line in gone
            if _lost([line], text)
        )
        gone = [line for line in gone if not _lost([line], text)]
    if not gone:
        if not protected[1:]:
            notes.append(f"{into.key} stays as it is: the number of entries would not fall.")
        return None
    refused = None if protected else _refusal([into, *gone], text)
    if refused is not None:
        notes.append(f"{', '.join(line.key for line in members)} stay apart: {refused}.")
        return None
    return Merge(into, tuple(gone), text, group.reason.strip() or "They say the same.")


def _refusal(members: Sequence[Line], text: str) -> str | None:
    lost = _lost(members, text)
    if lost:
        return f"{', '.join(sorted(lost)[:5])} would be lost"
    if len(text) > MAX_TEXT:
        return f"the text would have {len(text)} characters"
    longest = max((line.content for line in members), key=len)
    if len(text) < LEAST_KEPT * len(longest) and not all(covers(text, line.content) for line in members):
        return "the text would be far shorter than what it stands for"
    if is_instruction_shaped(text) and not any(is_instruction_shaped(line.content) for line in members):
        return "the text gives an order that none of them gave"
    return None


def _lost(members: Iterable[Line], text: str) -> set[str]:
    """The numbers and dates of those entries that the text does not have."""
    kept = set(_numbers(text))
    return {number for line in members for number in _numbers(line.content)} - kept


def _numbers(text: str) -> list[str]:
    return _NUMBER.findall(unicodedata.normalize("NFKC", text))
