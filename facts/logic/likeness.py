"""Whether two statements say the same, or one says all that the other does. Pure.

Words are compared as stems, whatever their order. Numbers, names, denials, changes and wishes must agree: "moved
to Rome" is not "wants to move to Rome", and never "does not live in Rome".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from facts.logic.normal import fingerprint
from recall.logic.folding import folded
from recall.logic.lexemes import lexemes_of

SAME: Final = 0.85
"""Share of common words from which two statements with the same numbers, names and signs are one. Chosen so that one
word more in seven may differ in form; lower, "has a dog" and "has a cat" in long sentences become one."""

_SIGNS: Final[dict[str, re.Pattern[str]]] = {
    "not": re.compile(
        r"\b(?:not|never|no|none|cannot|without|neither|nor|hates?|dislikes?|detests?)\b|n't\b|不(?!错|同)|没(?!错)|无(?!论)"
        r"|讨厌|未(?!来)"
    ),
    "ended": re.compile(
        r"\b(?:no longer|used to|stopped|quit|gave up|former(?:ly)?|previously|ex|anymore|any more)\b"
        r"|不再|以前|曾经?|戒了|停止"
    ),
    "wanted": re.compile(
        r"\b(?:wants?|wanted|hopes?|hoping|plans?|planning|wish(?:es)?|would|will|might|may|could|considering|going to"
        r"|thinking (?:of|about)|dreams? of)\b|想(?!起|到)|打算|计划|希望|准备|考虑"
    ),
    "asked": re.compile(r"[?？]|吗$"),
}
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME: Final = re.compile(r"(?<![.!?。]\s)(?<!^)\b[A-Z][\w'’]+")
_FIRST: Final = re.compile(r"^\W*(?:I|i|my|My|we|We|our|Our|he|He|she|She|the user|The user|User|user)\b")


@lru_cache(maxsize=8192)
def words_of(text: str) -> frozenset[str]:
    """The stems of a statement, without what only orders or dates it."""
    return frozenset(word for word in lexemes_of(text) if ":" not in word)


@lru_cache(maxsize=8192)
def signs_of(text: str) -> frozenset[str]:
    """How a statement is meant: `not`, `ended`, `wanted`, `asked`; empty for a plain one."""
    plain = folded(text)
    return frozenset(name for name, pattern in _SIGNS.items() if pattern.search(plain))


def numbers_of(text: str) -> frozenset[str]:
    """The numbers that stand in a statement, as they are written."""
    return frozenset(_NUMBER.findall(folded(text)))


def _names_of(text: str) -> frozenset[str]:
    return frozenset(name.casefold() for name in _NAME.findall(_FIRST.sub("", text.strip())))


def likeness(a: str, b: str) -> float:
    """The share of words that two statements have in common, 0..1."""
    ours, theirs = words_of(a), words_of(b)
    if not ours or not theirs:
        return 1.0 if fingerprint(a) == fingerprint(b) else 0.0
    return len(ours & theirs) / len(ours | theirs)


def is_same(a: str, b: str) -> bool:
    """Whether two statements say the same, otherwise put."""
    if fingerprint(a) == fingerprint(b):
        return True
    if signs_of(a) != signs_of(b) or numbers_of(a) != numbers_of(b):
        return False
    mine, yours = _names_of(a), _names_of(b)
    if (mine - words_folded(b)) or (yours - words_folded(a)):
        return False
    return likeness(a, b) >= SAME


def covers(a: str, b: str) -> bool:
    """Whether `a` says all that `b` says, and more: a compound statement and one of its parts."""
    if signs_of(a) != signs_of(b):
        return False
    ours, theirs = words_of(a), words_of(b)
    return len(theirs) >= 2 and theirs < ours and numbers_of(b) <= numbers_of(a)


@lru_cache(maxsize=8192)
def words_folded(text: str) -> frozenset[str]:
    """The bare words of a statement, case-folded."""
    return frozenset(re.findall(r"[\w'’]+", text.casefold()))
