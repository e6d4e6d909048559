"""Relative dates ("last Friday", 上周五) resolved against the day they were said on, never against today.

What has no single reading ("on Friday", "a few days ago", "recently") is left alone.
"""

# ruff: noqa: E501 - a pattern is read in one piece
from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta

_words = str.split

DAY = timedelta(days=1)
WEEK = timedelta(weeks=1)
MAX_YEARS = 200
"""A count beyond this is no date but a figure of speech."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """A phrase, where it stands, and the days it means, both included."""

    phrase: str
    start: int
    end: int
    first_day: date
    last_day: date


@dataclass(frozen=True, slots=True)
class _Span:
    first: date
    last: date


def resolve(text: str, *, said_on: date) -> list[Resolved]:
    """The dates of `text`, in order and without overlap. Weeks begin on Monday."""
    found: list[Resolved] = []
    for pattern, reading in ((_ENGLISH, _english), (_CHINESE, _chinese)):
        for match in pattern.finditer(text):
            try:
                span = reading(match, said_on)
            except (OverflowError, ValueError):
                continue
            if span is not None:
                found.append(Resolved(match[0], match.start(), match.end(), span.first, span.last))
    return sorted(found, key=lambda hit: hit.start)


def annotate(text: str, said_on: date, *, per_line: int = 3) -> str:
    """`text` with the absolute date in parentheses behind each relative one: "last week (2023-05-01 to …)".

    At most `per_line` a line; none in a line that names a day of the calendar already, and none for a time
    that holds the day itself ("today", "this year"), which whoever quotes the text shows anyway.
    Annotating twice changes nothing.
    """
    return "".join(_annotate_line(line, said_on, per_line) for line in text.splitlines(keepends=True))


def shown(first: date, last: date, *, chinese: bool = False) -> str:
    """A day, month, year or range as briefly as it is exact: `2023-05-01`, `2023-05`, `2023`, `… to …`."""
    if first == last:
        return first.isoformat()
    if (first.month, first.day, last.month, last.day) == (1, 1, 12, 31) and first.year == last.year:
        return f"{first.year:04d}"
    if first.day == 1 and last == _month(first.year, first.month).last:
        return f"{first.year:04d}-{first.month:02d}"
    if first.day == 1 and last == _month(last.year, last.month).last:
        return f"{first:%Y-%m}{' 至 ' if chinese else ' to '}{last:%Y-%m}"
    return f"{first.isoformat()}{' 至 ' if chinese else ' to '}{last.isoformat()}"


def has_absolute_date(text: str) -> bool:
    """Whether the text names a day of the calendar."""
    return bool(_ABSOLUTE.search(text))


def _annotate_line(line: str, said_on: date, per_line: int) -> str:
    if has_absolute_date(line):
        return line
    parts: list[str] = []
    position = added = 0
    for hit in resolve(line, said_on=said_on):
        if added == per_line or _YEAR.match(hit.phrase):
            continue
        if hit.first_day <= said_on <= hit.last_day:
            continue
        if _ANNOTATED.match(line, hit.end):
            added += 1
            continue
        chinese = not hit.phrase.isascii()
        opening, closing = ("（", "）") if chinese else (" (", ")")
        when = shown(hit.first_day, hit.last_day, chinese=chinese)
        parts.append(f"{line[position : hit.end]}{opening}{when}{closing}")
        position = hit.end
        added += 1
    return "".join(parts) + line[position:]


def _month(year: int, month: int) -> _Span:
    return _Span(date(year, month, 1), date(year, month, monthrange(year, month)[1]))


def _month_away(day: date, months: int) -> _Span:
    index = day.year * 12 + day.month - 1 + months
    return _month(index // 12, index % 12 + 1)


def _year(year: int) -> _Span:
    return _Span(date(year, 1, 1), date(year, 12, 31))


def _one(day: date) -> _Span:
    return _Span(day, day)


def _week(day: date, weeks: int) -> _Span:
    monday = day - day.weekday() * DAY + weeks * WEEK
    return _Span(monday, monday + 6 * DAY)


def _weekend(day: date, weeks: int) -> _Span:
    monday = _week(day, weeks).first
    return _Span(monday + 5 * DAY, monday + 6 * DAY)


def _away(unit: str, count: int, said_on: date) -> _Span | None:
    """`count` units from the day; as exact as the unit, so that "two years ago" is a year."""
    if abs(count) > MAX_YEARS * (366 if unit == "day" else 53 if unit == "week" else 12):
        return None
    return {
        "day": lambda: _one(said_on + count * DAY),
        "week": lambda: _week(said_on, count),
        "weekend": lambda: _weekend(said_on, count),
        "month": lambda: _month_away(said_on, count),
        "year": lambda: _year(said_on.year + count),
    }[unit]()


def _english(match: re.Match[str], said_on: date) -> _Span | None:
    kind = match.lastgroup or ""
    return _ENGLISH_READINGS[kind](match[kind].lower(), said_on)


def _english_day(phrase: str, said_on: date) -> _Span:
    words = " ".join(phrase.split())
    offset = _DAY_WORDS.get(words)
    if offset is None:
        offset = -1 if words.startswith(("yesterday", "last")) else 1 if words.startswith("tomorrow") else 0
    return _one(said_on + offset * DAY)


def _english_ago(phrase: str, said_on: date) -> _Span | None:
    return _counted(phrase, said_on, sign=-1)


def _english_ahead(phrase: str, said_on: date) -> _Span | None:
    return _counted(phrase, said_on, sign=1)


def _counted(phrase: str, said_on: date, *, sign: int) -> _Span | None:
    found = _COUNT_AND_UNIT.search(phrase)
    if found is None:
        return None
    word = found[1].strip()
    count = int(word) if word.isdecimal() else _NUMBERS[" ".join(word.split())]
    return _away(found[2], sign * count, said_on)


def _english_relative(phrase: str, said_on: date) -> _Span | None:
    words = phrase.split()
    step = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}[words[-2]]
    name = words[-1]
    if name in _UNITS:
        return _away(name, step, said_on)
    if name in _SEASONS:
        return _season(_SEASONS[name], step, said_on)
    if name in _MONTHS:
        return _named_month(_MONTHS[name], step, said_on)
    return _named_day(_WEEKDAYS[name[:3]], step, said_on)


def _named_day(weekday: int, step: int, said_on: date) -> _Span:
    """The last one strictly before the day; this week's; next week's."""
    if step < 0:
        return _one(said_on - ((said_on.weekday() - weekday - 1) % 7 + 1) * DAY)
    return _one(_week(said_on, step).first + weekday * DAY)


def _named_month(month: int, step: int, said_on: date) -> _Span:
    """The nearest one before, this year's, the nearest one after."""
    if step < 0:
        return _month(said_on.year - (month >= said_on.month), month)
    return _month(said_on.year + (step > 0 and month <= said_on.month), month)


def _season(first_month: int, step: int, said_on: date) -> _Span:
    """Three months of the northern year; the last one that has ended, the next one that has not begun."""
    seasons = [_season_of(year, first_month) for year in range(said_on.year - 2, said_on.year + 3)]
    if step < 0:
        return [season for season in seasons if season.last < said_on][-1]
    if step > 0:
        return next(season for season in seasons if season.first > said_on)
    return next(season for season in seasons if season.last >= said_on)


def _season_of(year: int, first_month: int) -> _Span:
    first = date(year, first_month, 1)
    return _Span(first, _month_away(first, 2).last)


def _english_before_last(phrase: str, said_on: date) -> _Span | None:
    return _away(phrase.split()[1], -2, said_on)


def _english_year(phrase: str, _said_on: date) -> _Span:
    return _year(int(phrase))


def _chinese(match: re.Match[str], said_on: date) -> _Span | None:
    kind = match.lastgroup or ""
    return _CHINESE_READINGS[kind](match[kind].translate(_SIMPLIFIED), said_on)


def _chinese_day(phrase: str, said_on: date) -> _Span:
    return _one(said_on + _CHINESE_DAYS[phrase[:-1] if phrase.startswith("大") else phrase[0]] * DAY)


def _chinese_week(phrase: str, said_on: date) -> _Span:
    steps = phrase.count("下") - phrase.count("上")
    name = phrase[-1]
    if name == "末":
        return _weekend(said_on, steps)
    if name in _CHINESE_WEEKDAYS:
        return _one(_week(said_on, steps).first + _CHINESE_WEEKDAYS[name] * DAY)
    return _week(said_on, steps)


def _chinese_month(phrase: str, said_on: date) -> _Span:
    return _month_away(said_on, phrase.count("下") - phrase.count("上"))


def _chinese_year(phrase: str, said_on: date) -> _Span | None:
    year = said_on.year + {"前": -2, "去": -1, "今": 0, "明": 1, "后": 2}[phrase[0]]
    rest = _CHINESE_MONTH_OF_YEAR.search(phrase)
    if rest is None:
        return _year(year)
    month = _chinese_number(rest[1])
    if not 1 <= month <= 12:
        return None
    day = _chinese_number(rest[2]) if rest[2] else 0
    return _one(date(year, month, day)) if day else _month(year, month)


def _chinese_counted(phrase: str, said_on: date) -> _Span | None:
    found = _CHINESE_COUNT.match(phrase)
    if found is None:
        return None
    unit = {"天": "day", "日": "day", "周": "week", "星": "week", "礼": "week", "月": "month", "年": "year"}[
        found[2][0]
    ]
    sign = -1 if phrase.endswith("前") else 1
    return _away(unit, sign * _chinese_number(found[1]), said_on)


def _chinese_absolute(phrase: str, _said_on: date) -> _Span:
    return _year(int(phrase[:4]))


def _chinese_number(word: str) -> int:
    """1 to 99 in Chinese figures, or any in decimal ones."""
    if word.isdecimal():
        return int(word)
    tens, ten, ones = word.partition("十")
    if not ten:
        return _CHINESE_DIGITS[word]
    return (_CHINESE_DIGITS[tens] if tens else 1) * 10 + (_CHINESE_DIGITS[ones] if ones else 0)


_UNITS = ("day", "weekend", "week", "month", "year")
_WEEKDAYS = {name: index for index, name in enumerate(("mon", "tue", "wed", "thu", "fri", "sat", "sun"))}
_SEASONS = {"spring": 3, "summer": 6, "fall": 9, "autumn": 9, "winter": 12}
_MONTHS = {
    name: index
    for index, name in enumerate(
        _words(
            """
    january february march april may june july august september october november december
    """
        ),
        start=1,
    )
}
_NUMBERS = {
    word: index
    for index, word in enumerate(
        _words(
            """
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    """
        )
    )
} | {
    "a": 1,
    "an": 1,
    "a couple": 2,
    "a couple of": 2,
    "couple of": 2,
    "twenty": 20,
    "thirty": 30,
    "a hundred": 100,
}
_DAY_WORDS = {"the day before yesterday": -2, "day before yesterday": -2, "the day after tomorrow": 2,
              "day after tomorrow": 2}  # fmt: skip

_NAMED_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|(?-i:Mon|Tues?|Wed|Thurs?|Fri|Sat|Sun)(?!\w))"
_COUNT = (
    r"(?:\d{1,4}|(?:a\s+)?couple(?:\s+of)?|an?(?:\s+hundred)?|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|"
    r"thirteen|fourteen|fifteen|twenty|thirty)"
)
_COUNT_AND_UNIT = re.compile(rf"({_COUNT})\s+(day|week|month|year)s?\b")
_ENGLISH = re.compile(
    r"(?<![0-9A-Za-z_])(?:"
    r"(?P<day>(?:the\s+)?day\s+before\s+yesterday|(?:the\s+)?day\s+after\s+tomorrow|"
    r"(?:yesterday|tomorrow|this)\s+(?:morning|afternoon|evening|night)|yesterday|tomorrow|today|tonight|last\s+night)|"
    rf"(?P<before_last>the\s+(?:weekend|week|month|year)\s+before\s+last)|"
    rf"(?P<ago>(?:about\s+|around\s+)?{_COUNT}\s+(?:day|week|month|year)s?\s+(?:ago|back)\b)|"
    rf"(?P<ahead>in\s+{_COUNT}\s+(?:day|week|month|year)s?(?:['’]s?\s+time)?(?!\s+(?:of|or|and)\b)|"
    rf"{_COUNT}\s+(?:day|week|month|year)s?\s+from\s+(?:now|today))|"
    rf"(?P<relative>(?:(?:the|this)\s+)?(?:last|past|previous|this|next|coming)\s+(?:weekend|week|month|year|"
    rf"{_NAMED_DAY}|spring|summer|fall|autumn|winter|{'|'.join(_MONTHS)}))|"
    r"(?<=\bin\s)(?P<year>(?:19|20)\d\d)"
    r")\b(?!['’]s\s+(?:end|version|model))",
    re.IGNORECASE,
)
_ENGLISH_READINGS: dict[str, Callable[[str, date], _Span | None]] = {
    "day": _english_day,
    "before_last": _english_before_last,
    "ago": _english_ago,
    "ahead": _english_ahead,
    "relative": _english_relative,
    "year": _english_year,
}

_SIMPLIFIED = str.maketrans("週後個禮這兩來", "周后个礼这两来")
_CHINESE_DAYS = {"今": 0, "昨": -1, "前": -2, "大前": -3, "明": 1, "后": 2, "後": 2, "大后": 3, "大後": 3}
_CHINESE_DIGITS = {figure: index for index, figure in enumerate("零一二三四五六七八九")} | {"两": 2}
_CHINESE_WEEKDAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
_FIGURE = r"(?:\d{1,4}|[一二三四五六七八九]?十[一二三四五六七八九]?|[一二两兩三四五六七八九])"
_CHINESE_COUNT = re.compile(rf"({_FIGURE})个?(天|日|周|星期|礼拜|月|年)")
_CHINESE_MONTH_OF_YEAR = re.compile(rf"({_FIGURE})月(?:({_FIGURE})[日号号])?")
_CHINESE = re.compile(
    rf"(?P<counted>{_FIGURE}(?:[个個]?(?:星期|[礼禮]拜|月)|天|日|[周週]|年)(?:之|以)?[前后後])"
    r"|(?P<day>大[前后後]天|[今昨明前后後]天|[今昨明]晚(?!会)|今早|明早)"
    r"|(?P<week>(?:上{1,4}|下{1,4}|[这這本])(?:一?[个個])?(?:[周週]|星期|[礼禮]拜)(?:[一二三四五六日天末](?![个個年天]))?)"
    r"|(?P<month>(?:上上?|下下?|[这這本])一?[个個]月|上月|下月|本月)"
    rf"|(?P<year>[前去今明后後]年(?:的?{_FIGURE}月(?:{_FIGURE}[日号號])?(?!\s*前|份?以))?)"
    r"|(?P<absolute>(?<!\d)(?:19|20)\d\d年(?!\d{1,2}月))"
)
_CHINESE_READINGS: dict[str, Callable[[str, date], _Span | None]] = {
    "counted": _chinese_counted,
    "day": _chinese_day,
    "week": _chinese_week,
    "month": _chinese_month,
    "year": _chinese_year,
    "absolute": _chinese_absolute,
}

_MONTH_NAME = r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
_ABSOLUTE = re.compile(
    rf"(?<!\d)\d{{4}}-\d\d-\d\d(?!\d)|(?<!\d)(?:19|20)\d\d[./]\d{{1,2}}[./]\d{{1,2}}(?!\d)|"
    rf"\b{_MONTH_NAME}\.?\s+\d{{1,2}}(?:st|nd|rd|th)?\b|"
    rf"\b\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{_MONTH_NAME}\b|(?<!\d)\d{{1,2}}月\d{{1,2}}[日号號]",
    re.IGNORECASE,
)
_YEAR = re.compile(r"(?:19|20)\d\d(?:年)?$")
_ANNOTATED = re.compile(r"\s*[(（]\d{4}")
