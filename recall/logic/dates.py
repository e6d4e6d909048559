"""Dates as people write them, in seven languages and in Chinese and Japanese, found in folded text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date

_MONTH_NAMES = (
    "january jan januar janvier enero gennaio janeiro января январь январе|"
    "february feb februar février febrero febbraio fevereiro февраля февраль феврале|"
    "march mar märz mars marzo março марта март марте|"
    "april apr avril abril aprile апреля апрель апреле|"
    "may mai mayo maggio maio мая май мае|"
    "june jun juni juin junio giugno junho июня июнь июне|"
    "july jul juli juillet julio luglio julho июля июль июле|"
    "august aug août agosto августа август августе|"
    "september sep sept septembre septiembre settembre setembro сентября сентябрь сентябре|"
    "october oct oktober octobre octubre ottobre outubro октября октябрь октябре|"
    "november nov novembre noviembre novembro ноября ноябрь ноябре|"
    "december dec dezember décembre diciembre dicembre dezembro декабря декабрь декабре"
)
MONTHS = {
    name: number for number, names in enumerate(_MONTH_NAMES.split("|"), start=1) for name in names.split()
}
# Also words or names: taken for a month only beside a number or after a word such as "in".
_UNSURE_NAMES = "may mar march mars mai jan jun jul dec sep sept aug apr feb oct nov mae мае май мая"
_UNSURE = frozenset(_UNSURE_NAMES.split())

_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")(?![^\W\d_])\.?"
_SURE_MONTH = "(?:" + "|".join(sorted(MONTHS.keys() - _UNSURE, key=len, reverse=True)) + r")(?![^\W\d_])"
_NUMERAL = "[〇零一二两三四五六七八九十]"
_DAY = r"(?:st|nd|rd|th|er|\.|º)?"
_YEAR = r"(?:19|20)\d\d(?!\d)"
_DATE = re.compile(
    rf"(?<![\d.])(?P<y1>{_YEAR})(?P<sep>[-/.])(?P<m1>\d{{1,2}})(?:(?P=sep)(?P<d1>\d{{1,2}}))?(?![\d-]|[./]\d)"
    rf"|(?:(?<!\d)(?P<y2>\d{{4}}|[〇零一二三四五六七八九]{{4}})年)?(?<!\d)(?P<m2>\d{{1,2}}|{_NUMERAL}{{1,2}})月"
    rf"(?:份|(?P<d2>\d{{1,2}}|{_NUMERAL}{{1,3}})[日号號])?"
    rf"|(?<!\d)(?P<y6>{_YEAR}|[〇零一二三四五六七八九]{{4}})年"
    rf"|(?<![\w.])(?P<d3>\d{{1,2}}){_DAY}\s+(?:of\s+|de\s+)?(?P<m3>{_MONTH})(?:,?\s+(?:del?\s+)?(?P<y3>{_YEAR}))?"
    rf"|(?<!\w)(?P<m4>{_MONTH})\s+(?:the\s+)?(?P<d4>\d{{1,2}})(?:st|nd|rd|th)?(?![\w:])(?:,?\s+(?P<y4>{_YEAR}))?"
    rf"|(?<!\w)(?P<m5>{_MONTH}),?\s+(?:of\s+|del?\s+)?(?P<y5>{_YEAR})"
    rf"|(?<!\w)(?:in|of|since|last|this|next|during|until|by|early|late|mid|im|en|em|в)\s+(?P<m7>{_MONTH})"
    rf"|(?<!\w)(?P<m8>{_SURE_MONTH})"
    rf"|(?<!\w)(?:in|of|since|during|year|early|late|im jahr|en|em|в)\s+(?P<y9>{_YEAR})(?![\w-])"
)
_may_hold = re.compile(r"[\d月年]|" + "|".join(sorted({name[:3] for name in MONTHS}))).search
_DIGITS = {char: value for value, char in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}


@dataclass(frozen=True, slots=True)
class FoundDate:
    """A date in a text, at `start:end`; what it does not say is None. With a day there is always a month."""

    start: int
    end: int
    year: int | None
    month: int | None
    day: int | None

    def lexemes(self) -> tuple[str, ...]:
        """From the most exact: `d:2023-05-02`, `md:05-02`, `m:2023-05`, `mon:05`, `y:2023`."""
        year, month, day = self.year, self.month, self.day
        exact = [f"d:{year}-{month:02}-{day:02}"] if year and month and day else []
        exact += [f"md:{month:02}-{day:02}"] if month and day else []
        exact += [f"m:{year}-{month:02}"] if year and month else []
        exact += [f"mon:{month:02}"] if month else []
        return (*exact, *([f"y:{year}"] if year else []))


def dates_in(folded_text: str) -> Iterator[FoundDate]:
    """Dates in their order, none overlapping; impossible ones (31 February, month 13) are left out."""
    if _may_hold(folded_text) is None:
        return
    for match in _DATE.finditer(folded_text):
        parts = {name[0]: value for name, value in match.groupdict().items() if value and name != "sep"}
        year = _number(parts.get("y"), places=True)
        month = MONTHS.get((parts.get("m") or "").rstrip(".")) or _number(parts.get("m"))
        day = _number(parts.get("d"))
        if is_date(year, month, day):
            yield FoundDate(match.start(), match.end(), year, month, day)


def is_date(year: int | None, month: int | None, day: int | None) -> bool:
    """Whether these parts can be a date of the years 1900 to 2099; without a year, 29 February can."""
    try:
        date(2000 if year is None else year, 1 if month is None else month, 1 if day is None else day)
    except ValueError:
        return False
    return year is None or 1900 <= year <= 2099


def numeral(text: str) -> int | None:
    """The value of digits or of a Chinese numeral up to 99 (`十二`, `二十`, `两`); None for anything else."""
    return _number(text)


def _number(text: str | None, *, places: bool = False) -> int | None:
    if not text:
        return None
    if text.isdecimal():
        return int(text)
    if places:
        return int("".join(str(_DIGITS.get(char, 0)) for char in text))
    tens, ten, ones = text.rpartition("十")
    if (tens and tens not in _DIGITS) or (ones and ones not in _DIGITS):
        return None
    return (_DIGITS[tens] if tens else 1) * 10 * bool(ten) + (_DIGITS[ones] if ones else 0)
