"""Pairs of statements made by rule: 200 that may be true together, 100 of which one must give way.

Half English, half Chinese. The words are chosen for this set alone: the rules know none of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Any

NAMES = ("Priya", "Tomasz", "Leila", "Okoro", "Hannah")
NAMES_ZH = ("林悦", "陈默", "赵宁", "周舟", "吴桐")
CITIES = ("Lisbon", "Osaka", "Tallinn", "Quito", "Adelaide")
CITIES_ZH = ("成都", "青岛", "昆明", "沈阳", "厦门")
THINGS = ("olives", "jazz", "rock climbing", "thunderstorms", "crosswords")
THINGS_ZH = ("臭豆腐", "爵士乐", "攀岩", "象棋", "榴莲")
FIRMS = ("Northwind", "Globex", "Initech", "Umbra", "Vandelay")

Pair = tuple[str, str]


def additive() -> list[Pair]:
    """200 pairs that raise nothing."""
    english = [
        *(
            (f"{n} works at {f}.", f"{n} administers the {f} wiki.")
            for n, f in zip(NAMES, FIRMS, strict=True)
        ),
        *((f"{n} likes {a}.", f"{n} likes {b}.") for n, (a, b) in product(NAMES[:2], _next(THINGS))),
        *((f"{n} lives in {c}.", f"{n} was born in {d}.") for n, (c, d) in product(NAMES[:2], _next(CITIES))),
        *(
            (f"{n} lives in {c}.", f"{m} lives in {d}.")
            for (n, m), (c, d) in zip(_next(NAMES), _next(CITIES), strict=True)
        ),
        *((f"{n} has a dog.", f"{n} has a parrot.") for n in NAMES),
        *((f"{n} speaks Finnish.", f"{n} speaks Swahili.") for n in NAMES),
        *(
            (f"{n} lives in {c}.", f"{n} wants to live in {d}.")
            for n, (c, d) in zip(NAMES, _next(CITIES), strict=True)
        ),
        *((f"{n} likes {a}.", f"{n} does not like {b}.") for n, (a, b) in product(NAMES[:2], _next(THINGS))),
        *((f"{n} works at {f}.", f"{n} works as a translator.") for n, f in zip(NAMES, FIRMS, strict=True)),
        *((f"{n} is 34 years old.", f"{n} is married.") for n in NAMES),
        *((f"{n} plays the cello.", f"{n}'s brother does not play the cello.") for n in NAMES),
        *(
            (f"{n} visited {c} in 2019.", f"{n} visited {d} in 2022.")
            for n, (c, d) in zip(NAMES, _next(CITIES), strict=True)
        ),
        *((f"{n}'s favorite band is Kraken.", f"{n}'s favorite dish is ramen.") for n in NAMES),
        *((f"{n} works as an engineer.", f"{n} works as a software engineer.") for n in NAMES),
        *(
            (f"{n} lives in {c}.", f"{n} lives in {c} with two cats.")
            for n, c in zip(NAMES, CITIES, strict=True)
        ),
        *((f"{n} drinks coffee at dawn.", f"{n} drinks cocoa at night.") for n in NAMES),
        *((f"{n} is allergic to nuts.", f"{n} is not allergic to pollen.") for n in NAMES),
    ]
    chinese = [
        *((f"{n}喜欢{a}", f"{n}喜欢{b}") for n, (a, b) in product(NAMES_ZH, _next(THINGS_ZH))),
        *((f"{n}住在{c}", f"{n}出生在{d}") for n, (c, d) in product(NAMES_ZH[:3], _next(CITIES_ZH))),
        *((f"{n}喜欢{a}", f"{n}不喜欢{b}") for n, (a, b) in product(NAMES_ZH[:3], _next(THINGS_ZH))),
        *((f"{n}住在{c}", f"{n}想住在{d}") for n, (c, d) in product(NAMES_ZH[:3], _next(CITIES_ZH))),
        *((f"{n}会说法语", f"{n}会说泰语") for n in NAMES_ZH),
        *((f"{n}养了一只狗", f"{n}养了一只猫") for n in NAMES_ZH),
        *((f"{n}今年28岁", f"{n}已婚") for n in NAMES_ZH),
        *((f"{n}会弹钢琴", f"{m}不会弹钢琴") for n, m in _next(NAMES_ZH)),
        *((f"{n}最喜欢的颜色是青色", f"{n}最喜欢的电影是白蛇") for n in NAMES_ZH),
        *((f"{n}在海星公司工作", f"{n}负责维护海星的文档") for n in NAMES_ZH),
    ]
    return [*english, *chinese]


def flips() -> list[Pair]:
    """100 pairs of which one must give way."""
    english = [
        *((f"{n} lives in {c}.", f"{n} lives in {d}.") for n, (c, d) in product(NAMES[:2], _next(CITIES))),
        *((f"{n} likes {t}.", f"{n} does not like {t}.") for n, t in product(NAMES[:2], THINGS)),
        *((f"{n} is 34 years old.", f"{n} is 41 years old.") for n in NAMES),
        *((f"{n} is single.", f"{n} is married.") for n in NAMES),
        *((f"{n}'s favorite band is Kraken.", f"{n}'s favorite band is Moth Hour.") for n in NAMES),
        *((f"{n} speaks Finnish.", f"{n} doesn't speak Finnish.") for n in NAMES),
        *(
            (f"{n} was born in {c}.", f"{n} was born in {d}.")
            for n, (c, d) in zip(NAMES, _next(CITIES), strict=True)
        ),
        *((f"{n} owns a car.", f"{n} does not own a car.") for n in NAMES),
    ]
    chinese = [
        *((f"{n}住在{c}", f"{n}住在{d}") for n, (c, d) in product(NAMES_ZH[:2], _next(CITIES_ZH))),
        *((f"{n}喜欢{t}", f"{n}不喜欢{t}") for n, t in product(NAMES_ZH[:2], THINGS_ZH)),
        *((f"{n}今年28岁", f"{n}今年35岁") for n in NAMES_ZH),
        *((f"{n}单身", f"{n}已婚") for n in NAMES_ZH),
        *((f"{n}最喜欢的颜色是青色", f"{n}最喜欢的颜色是橙色") for n in NAMES_ZH),
        *((f"{n}会弹钢琴", f"{n}不会弹钢琴") for n in NAMES_ZH),
        *((f"{n}出生在{c}", f"{n}出生在{d}") for n, (c, d) in _zip(NAMES_ZH, _next(CITIES_ZH))),
        *((f"{n}喜欢吃{t}", f"{n}讨厌吃{t}") for n, t in zip(NAMES_ZH, THINGS_ZH, strict=True)),
    ]
    return [*english, *chinese]


def _next(words: tuple[str, ...]) -> list[Pair]:
    """Each word with the one after it."""
    return list(zip(words, (*words[1:], words[0]), strict=True))


def _zip(first: Iterable[Any], second: Iterable[Any]) -> Iterable[Any]:
    return zip(first, second, strict=True)
