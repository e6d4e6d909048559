"""What a question gives away besides its words and times: whom it names and whether it asks for a time."""

from __future__ import annotations

import re
from collections.abc import Collection

from recall.logic.dates import MONTHS
from recall.logic.folding import WINDOWED, folded, normalized, without_accents
from recall.logic.stopwords import QUESTION_WORDS, STOP_WORDS

_WHEN = re.compile(
    r"(?<!\w)(?:when|what (?:date|day|month|year|time)|which (?:date|day|month|year)|how long|since when|wann|seit wann"
    r"|quand|cuándo|cuando|quando|когда|как давно)(?!\w)"
    "|什么时候|哪一?[天年月日]|几[月号点]|何时|多久|多长时间|いつ|언제"
)
_I_SAID = re.compile(
    r"\b(?:did|have|had) i (?:say|said|tell|told|mention|mentioned|ask|asked)\b"
    r"|\bi (?:said|told|mentioned)\b|我(?:说|提|讲|告诉)"
)
_YOU_SAID = re.compile(
    r"\b(?:did|have|had) you (?:say|said|tell|told|suggest|suggested|recommend|recommended|advise|advised)\b"
    r"|\byou (?:said|told|suggested|recommended|advised)\b|你(?:说|提|讲|建议|推荐|告诉)"
)
_COMMON = STOP_WORDS["english"] | QUESTION_WORDS | MONTHS.keys()


def speakers_named(
    question: str,
    speakers: Collection[str],
    *,
    asker: str | None = None,
    agent: str | None = None,
) -> tuple[str, ...]:
    """Those of `speakers` whom the question names, by their whole name, by a part that only one of them has, or
    by how such a part begins (Mel for Melanie); `asker` where it says "I said", and `agent` where it says "you
    suggested". A name that is a common word (Will, May) counts where it has a capital inside a sentence. Sorted.
    """
    compared = without_accents(folded(question))
    capitals = _capitals(question)
    owners: dict[str, set[str]] = {}
    for name in filter(str.strip, speakers):
        for part in {_plain(name), *_name_parts(name)}:
            owners.setdefault(part, set()).add(name)
    named = {
        name
        for part, names in owners.items()
        if _stands_in(part, compared) and (part not in _COMMON or part in capitals)
        for name in names
        if len(names) == 1 or part == _plain(name)
    }
    for short in capitals - owners.keys() - _COMMON:
        longer = {name for part, names in owners.items() if part.startswith(short) for name in names}
        named |= longer if len(longer) == 1 else set()
    if asker and _I_SAID.search(compared):
        named.add(asker)
    if agent and _YOU_SAID.search(compared):
        named.add(agent)
    return tuple(sorted(named))


def same_name(one: str | None, other: str | None) -> bool:
    """Whether two names are one when folded."""
    return one is not None and other is not None and (one == other or _plain(one) == _plain(other))


def asks_when(question: str) -> bool:
    """Whether the question asks for a time."""
    return _WHEN.search(folded(question)) is not None


def _capitals(question: str) -> frozenset[str]:
    """The question's words of at least three letters with a capital, folded, but for the first one."""
    words = re.findall(r"[^\W\d_]+", normalized(question))[1:]
    return frozenset(without_accents(folded(word)) for word in words if len(word) >= 3 and word[0].isupper())


def _plain(name: str) -> str:
    return " ".join(without_accents(folded(name)).split())


def _name_parts(name: str) -> frozenset[str]:
    """Parts that may stand for the name: of at least three letters, or two signs of a script without spaces."""
    parts = _plain(name).replace(".", " ").split()
    return frozenset(
        part for part in parts if len(part) >= 3 or (len(part) >= 2 and re.match(f"[{WINDOWED}]", part))
    )


def _stands_in(name: str, text: str) -> bool:
    if not name:
        return False
    if re.search(f"[{WINDOWED}]", name):
        return name in text
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) is not None
