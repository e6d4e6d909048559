"""Cron expressions: five fields, or six in the Quartz form. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
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


HORIZON_DAYS: Final = 366 * 9
"""How far ahead a date is looked for: 29 February may be eight years away (1896 to 1904, 2096 to 2104)."""
_ALL_HOURS: Final = frozenset(range(24))


def next_after(cron: Cron, moment: datetime, zone: tzinfo) -> datetime | None:
    """The first time after `moment` that it fires, in UTC; None if it never does (30 February).

    Times are the wall clock's in `zone`. One that the clock skips fires once, right after the gap; one that comes
    twice fires the first time. What fires at every hour goes by elapsed time instead: it neither makes up for a
    skipped hour nor rests during a doubled one.
    """
    start = moment.astimezone(zone).date() - timedelta(days=1)
    for ahead in range(HORIZON_DAYS):
        day = start + timedelta(days=ahead)
        if not _is_on(cron, day):
            continue
        later = [one for one in _times_on(cron, day, zone) if one > moment]
        if later:
            # The next day's may come before, where a clock is put back over midnight.
            following = day + timedelta(days=1)
            if _is_on(cron, following):
                later += [one for one in _times_on(cron, following, zone) if one > moment]
            return min(later)
    return None


def last_until(cron: Cron, moment: datetime, zone: tzinfo, *, since: datetime) -> datetime:
    """The last time up to `moment` that it fires, not before `since`, which is answered when there is none."""
    day = moment.astimezone(zone).date() + timedelta(days=1)
    earliest = since.astimezone(zone).date() - timedelta(days=1)
    latest = since
    while day >= earliest and latest == since:
        if _is_on(cron, day):
            latest = max([since, *(one for one in _times_on(cron, day, zone) if one <= moment)])
        day -= timedelta(days=1)
    return latest


def _is_on(cron: Cron, day: date) -> bool:
    if day.month not in cron.months:
        return False
    by_date, by_weekday = day.day in cron.days, day.isoweekday() % 7 in cron.weekdays
    if cron.any_day or cron.any_weekday:
        return by_date and by_weekday
    return by_date or by_weekday


def _times_on(cron: Cron, day: date, zone: tzinfo) -> Iterator[datetime]:
    """The times of that local day in UTC; one may come twice."""
    is_hourly = cron.hours == _ALL_HOURS
    for hour in cron.hours:
        for minute in cron.minutes:
            local = datetime.combine(day, time(hour, minute), zone)
            first, second = local.astimezone(UTC), local.replace(fold=1).astimezone(UTC)
            is_skipped = first.astimezone(zone).replace(tzinfo=None) != local.replace(tzinfo=None)
            if not is_skipped:
                yield first
                if is_hourly:
                    yield second
            elif not is_hourly:
                yield _end_of_gap(second, first, zone)


def _end_of_gap(before: datetime, after: datetime, zone: tzinfo) -> datetime:
    """The moment between the two at which the zone's offset changes."""
    old = before.astimezone(zone).utcoffset()
    low, high = int(before.timestamp()), int(after.timestamp())
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == old:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)
