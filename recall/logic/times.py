"""The times that a question is about: dates, and relative ones such as "last week" or 上周五."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import date, timedelta

from recall.logic.dates import MONTHS, dates_in, is_date, numeral
from recall.logic.folding import folded

MAX_CUES = 8
# How fast a record's day loses by its distance from the time asked about: people tell of things after they
# happened, seldom long before. Reasoned: where dates are lexemes too, the cue moves recall by less than .2.
_DAYS_AFTER = 10.0
_DAYS_BEFORE = 4.0
_LONGEST_AGO = 5000  # days, weeks, months or years; more is no date

_NUMBERS = "a=1 an=1 one=1 two=2 couple=2 three=3 few=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10"
_NUMBER_WORDS = {word: int(value) for word, value in (pair.split("=") for pair in _NUMBERS.split())}
_COUNT = r"(?P<n>\d{1,4}|" + "|".join(_NUMBER_WORDS) + ")"
_STEPS = {"last": -1, "previous": -1, "past": -1, "next": 1}
_STEPS |= {"上上": -2, "上": -1, "下": 1, "前": -2, "去": -1, "明": 1}
_DAY_NAMES = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
_HAN_COUNT = r"(?P<n>\d{1,4}|[一二两三四五六七八九十]{1,3})"
_HAN_UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "礼拜": "week",
    "月": "month",
    "年": "year",
}
_HAN_DAY = r"(?P<d>\d{1,2}|[一二三四五六七八九十]{1,3})[日号]"
_HAN_MONTH = rf"(?P<m>\d{{1,2}}|[一二三四五六七八九十]{{1,2}})月(?!前)(?:份|{_HAN_DAY})?"


@dataclass(frozen=True, slots=True)
class DateCue:
    """A time that a question is about: the days from `first` to `last`, both included; `is_yearly` when the year
    is not known, so that they count in every year.
    """

    first: date
    last: date
    is_yearly: bool = False


def date_cues(question: str, *, asked_on: date | None = None) -> tuple[DateCue, ...]:
    """The times that a question is about, at most MAX_CUES, without doubles.

    Relative ones ("last week", 上周五) are resolved against `asked_on` and left out without it. A month or a day
    without a year is the latest that is not after `asked_on`; without that, every year's.
    """
    compared = folded(question)
    cues = [*_relative(compared, asked_on)] if asked_on else []
    covered = [place for place, _ in cues]
    found = [cue for _, cue in cues]
    for date_found in dates_in(compared):
        if not any(start < date_found.end and date_found.start < end for start, end in covered):
            cue = _absolute(date_found.year, date_found.month, date_found.day, asked_on)
            found += [cue] if cue else []
    return tuple(dict.fromkeys(found))[:MAX_CUES]


def days_of(cues: Collection[DateCue], *, most: int = 14) -> tuple[date, ...]:
    """The single days of short cues, to look for as lexemes; of a longer one none."""
    days: dict[date, None] = {}
    for cue in cues:
        length = (cue.last - cue.first).days + 1
        if not cue.is_yearly and length <= most:
            days.update(dict.fromkeys(cue.first + timedelta(days=n) for n in range(length)))
    return tuple(days)[:most]


def closeness(cue: DateCue, day: date) -> float:
    """1.0 within the cue, falling towards 0.0 with the distance, faster before it than after it."""
    if cue.is_yearly:
        years = (day.year - 1, day.year, day.year + 1)
        return max(
            closeness(DateCue(_in_year(cue.first, year), _in_year(cue.last, year)), day) for year in years
        )
    if day < cue.first:
        return math.exp((day - cue.first).days / _DAYS_BEFORE)
    return math.exp(min(0, (cue.last - day).days) / _DAYS_AFTER)


def _absolute(year: int | None, month: int | None, day: int | None, asked_on: date | None) -> DateCue | None:
    if year is None and month is None:
        return None
    if year is not None:
        return _span(year, month, day)
    if asked_on is None:
        cue = _span(2000, month, day)
        return DateCue(cue.first, cue.last, is_yearly=True)
    tries = [
        _span(then, month, day) for then in (asked_on.year, asked_on.year - 1) if is_date(then, month, day)
    ]
    return next((cue for cue in tries if cue.first <= asked_on), None)


def _span(year: int, month: int | None, day: int | None) -> DateCue:
    if month is None:
        return DateCue(date(year, 1, 1), date(year, 12, 31))
    if day is None:
        return DateCue(date(year, month, 1), _month_end(date(year, month, 1)))
    return DateCue(date(year, month, day), date(year, month, day))


def _relative(text: str, today: date) -> Iterator[tuple[tuple[int, int], DateCue]]:
    """Relative times with their places; none overlaps an earlier one."""
    taken: list[tuple[int, int]] = []
    for pattern, resolve in _RULES:
        for match in pattern.finditer(text):
            start, end = match.span()
            if any(start < last and first < end for first, last in taken):
                continue
            try:
                cue = resolve(match, today)
            except (ValueError, OverflowError):  # before the year 1
                continue
            if cue is not None:
                taken.append((start, end))
                yield (start, end), cue


def _day(offset: int) -> Callable[[re.Match[str], date], DateCue]:
    def resolve(_match: re.Match[str], today: date) -> DateCue:
        return _whole("day", today + timedelta(days=offset))

    return resolve


def _ago(match: re.Match[str], today: date) -> DateCue | None:
    count, unit = _count(match["n"]), _unit(match["unit"])
    if count is None or count > _LONGEST_AGO:
        return None
    then = _shifted(today, unit, -count)
    if unit == "day":
        return _whole("day", then)
    slack = {"week": 3, "month": 15, "year": 180}[unit]  # nobody counts them to the day
    return DateCue(then - timedelta(days=slack), then + timedelta(days=slack))


def _past(match: re.Match[str], today: date) -> DateCue | None:
    count = _count(match["n"])
    if count is None or count > _LONGEST_AGO:
        return None
    return DateCue(_shifted(today, _unit(match["unit"]), -count), today)


def _which(match: re.Match[str], today: date) -> DateCue:
    """This, last or next week, month, year or weekend."""
    offset = _STEPS.get(match["which"], 0)
    if match["unit"] in ("weekend", "周末"):
        saturday = today - timedelta(days=today.weekday() - 5) + timedelta(weeks=offset)
        return DateCue(saturday, saturday + timedelta(days=1))
    unit = _unit(match["unit"])
    return _whole(unit, _shifted(_whole(unit, today).first, unit, offset))


def _weekday(match: re.Match[str], today: date) -> DateCue:
    """A weekday is the latest past one, today included; next ones are to come. 上周五 is last week's in any case."""
    which, name = match["which"] or "", match["day"]
    number = _DAY_NAMES.index(name) if name in _DAY_NAMES else min(6, "一二三四五六日天".index(name))
    monday = today - timedelta(days=today.weekday())
    if which in ("上", "下", "这", "本"):
        return _whole("day", monday + timedelta(days=number, weeks={"上": -1, "下": 1}.get(which, 0)))
    back = (today.weekday() - number) % 7
    if which == "next":
        return _whole("day", today + timedelta(days=7 - back))
    return _whole("day", today - timedelta(days=back or (7 if which in ("last", "past") else 0)))


def _month(match: re.Match[str], today: date) -> DateCue | None:
    """Last or this May: the latest that began, with "last" not the running one; 去年五月 says the year."""
    which = match["which"]
    month = MONTHS.get(match["m"]) or numeral(match["m"])
    day = numeral(match.groupdict().get("d") or "")
    year = today.year - {"去年": 1, "前年": 2, "last year": 1}.get(which, 0)
    if which == "明年":
        year += 1
    if which == "last" and month is not None and month >= today.month:
        year -= 1
    return _span(year, month, day) if is_date(year, month, day) else None


def _season(match: re.Match[str], today: date) -> DateCue:
    """Last or this summer, on the northern half: three whole months, the latest that began."""
    month = _SEASONS[match["season"]]
    first = date(today.year, month, 1)
    if first > today or (match["which"] == "last" and _shifted(first, "month", 3) > today):
        first = date(today.year - 1, month, 1)
    return DateCue(first, _month_end(_shifted(first, "month", 2)))


def _beside(match: re.Match[str], today: date) -> DateCue | None:
    """The week, month or weekend before, after or of a date."""
    there = next(dates_in(match["there"]), None)
    cue = _absolute(there.year, there.month, there.day, today) if there else None
    if cue is None:
        return None
    days = timedelta(days={"week": 7, "weekend": 7, "month": 30, "day": 1}[match["unit"]])
    if match["side"] == "before":
        return DateCue(cue.first - days, cue.first - timedelta(days=1))
    if match["side"] == "after":
        return DateCue(cue.last + timedelta(days=1), cue.last + days)
    return DateCue(_whole(_unit(match["unit"]), cue.first).first, _whole(_unit(match["unit"]), cue.last).last)


_MONTH = "|".join(sorted(MONTHS, key=len, reverse=True))
_EN_UNIT = "(?P<unit>day|week|month|year)s?"
_ZH_UNIT = "(?P<unit>天|周|星期|礼拜|月|年)"
_RULES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], date], DateCue | None]], ...] = tuple(
    (re.compile(pattern), resolve)
    for pattern, resolve in (
        (r"\b(?P<unit>weekend|week|month|day) (?P<side>before|after|of) (?P<there>[^?!;]{3,30})", _beside),
        (r"\bday before yesterday\b|前天", _day(-2)),
        (r"\byesterday\b|\blast night\b|昨天|昨晚|昨日", _day(-1)),
        (r"\btoday\b|\bthis (?:morning|afternoon|evening)\b|\btonight\b|今天|今早|今晚|今日", _day(0)),
        (r"\bday after tomorrow\b|后天", _day(2)),
        (r"\btomorrow\b|明天|明日", _day(1)),
        (rf"\b{_COUNT}(?: of)? {_EN_UNIT} (?:ago|before now|earlier)\b", _ago),
        (rf"{_HAN_COUNT}个?{_ZH_UNIT}(?:以|之)?前", _ago),
        (rf"\b(?:last|past|previous) {_COUNT} {_EN_UNIT}\b", _past),
        (rf"(?:最近|过去|近){_HAN_COUNT}个?{_ZH_UNIT}", _past),
        (
            rf"\b(?P<which>last year|last|this)(?:,? in)? (?P<m>{_MONTH})\b",
            _month,
        ),
        (rf"(?P<which>去年|今年|前年|明年)的?{_HAN_MONTH}", _month),
        (r"\b(?P<which>last|this|past) (?P<season>spring|summer|fall|autumn|winter)\b", _season),
        (rf"\b(?:(?P<which>last|this|past|next|on) )?(?P<day>{'|'.join(_DAY_NAMES)})\b", _weekday),
        (r"(?P<which>[上下这本])?个?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])", _weekday),
        (r"\b(?P<which>last|this|past|previous|next) (?P<unit>weekend|week|month|year)\b", _which),
        (r"(?P<which>上上|上|这|本|下)个?(?P<unit>周末|周|星期|礼拜|月)", _which),
        (r"(?P<which>[去今前明])(?P<unit>年)", _which),
    )
)


def _count(text: str) -> int | None:
    return _NUMBER_WORDS.get(text) or numeral(text)


def _unit(text: str) -> str:
    return _HAN_UNITS.get(text, text.removesuffix("s"))


def _shifted(day: date, unit: str, count: int) -> date:
    """`count` units later; the end of the month where a month is too short."""
    if unit in ("day", "week"):
        return day + timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + count * (12 if unit == "year" else 1)
    first = date(months // 12, months % 12 + 1, 1)
    return first.replace(day=min(day.day, _month_end(first).day))


def _whole(unit: str, day: date) -> DateCue:
    """The day, week (from Monday), month or year that a day is in."""
    if unit in ("week", "weekend"):
        monday = day - timedelta(days=day.weekday())
        return DateCue(monday, monday + timedelta(days=6))
    if unit == "month":
        return DateCue(day.replace(day=1), _month_end(day))
    if unit == "year":
        return DateCue(date(day.year, 1, 1), date(day.year, 12, 31))
    return DateCue(day, day)


def _month_end(day: date) -> date:
    return (day.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)


def _in_year(day: date, year: int) -> date:
    year = min(max(year, 1), 9999)
    return day.replace(year=year) if is_date(2001, day.month, day.day) else date(year, 2, 28)
