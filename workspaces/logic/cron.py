"""Cron expressions: five fields, or six in the Quartz form. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_BOUNDS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
_NAMES: Final = {
    3: {
        n: i
        for i, n in enumerate(
            ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
        )
    },
    4: {n: i for i, n in enumerate(["sun", "mon", "tue", "wed", "thu", "fri", "sat"])},
}
_PART: Final = re.compile(r"^(\*|[a-z0-9]+)(?:-([a-z0-9]+))?(?:/(\d+))?$")


@dataclass(frozen=True, slots=True)
class Cron:
    """The minutes, hours, days of the month, months and weekdays (0 = Sunday) it fires on.

    `any_day` and `any_weekday` tell a field that was `*` or `?`: when both day fields are restricted,
    either may match (the rule of classic cron).
    """

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool


def parse_cron(text: str) -> Cron:
    """The parsed expression; raises `ValueError` naming the field that is wrong.

    Six fields are the Quartz form: the first is the second and must be 0, since the clock ticks by minutes,
    and weekdays count from 1 = Sunday there.
    """
    fields = text.strip().lower().split()
    is_quartz = len(fields) == 6
    if is_quartz:
        if fields[0] != "0":
            raise ValueError(f"the seconds field must be 0, not {fields[0]!r}")
        fields = fields[1:]
    if len(fields) != 5:
        raise ValueError(f"{text!r} has {len(fields)} fields; five (or six, Quartz) are wanted")
    sets = [_field(value, position, is_quartz=is_quartz) for position, value in enumerate(fields)]
    weekdays = frozenset(day % 7 for day in sets[4])
    return Cron(
        sets[0], sets[1], sets[2], sets[3], weekdays, any_day=fields[2] in "*?", any_weekday=fields[4] in "*?"
    )


def _field(value: str, position: int, *, is_quartz: bool) -> frozenset[int]:
    low, high = _BOUNDS[position]
    if value == "?":
        if position not in {2, 4}:
            raise ValueError(f"`?` is for the two day fields only, not {value!r}")
        value = "*"
    found: set[int] = set()
    for part in value.split(","):
        match = _PART.match(part)
        if match is None:
            raise ValueError(f"{part!r} is no cron field")
        first, last, step = match.groups()
        if first == "*" and last:
            raise ValueError(f"{part!r} is no cron field")
        shift = 1 if is_quartz and position == 4 else 0
        if first == "*":
            start, end = low, high - shift
        else:
            start = _number(first, position, shift)
            end = _number(last, position, shift) if last else (high - shift if step else start)
        if not (low <= start <= end <= high - shift) or step == "0":
            raise ValueError(f"{part!r} is outside {low}-{high}")
        found.update(range(start, end + 1, int(step or 1)))
    return frozenset(found)


def _number(text: str, position: int, shift: int) -> int:
    named = _NAMES.get(position, {}).get(text[:3]) if text.isalpha() else None
    if named is not None:
        return named
    if not text.isdigit():
        raise ValueError(f"{text!r} is no number")
    return int(text) - shift
