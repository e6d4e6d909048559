"""What of a plugin's answer is put before the agent: well-formed items, as many characters as it may have. Pure.

Plugins pass on what other services answer. Nothing of it is trusted to be of the right type, finite, or short.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import islice
from typing import Any, Final

from memory.logic.blocks import line_of, where_of
from memory.types import RecallItem
from workspaces.logic.texts import storable
from workspaces.types import Scope

MOST_ITEMS: Final = 200
"""Items of one answer that are looked at."""
MAX_WORD: Final = 200
"""Characters of an id, a speaker, or a value of a source."""
MAX_VALUES: Final = 20
LEAST_TEXT: Final = 20
"""Characters below which a cut item says nothing."""
_SCOPES: Final = frozenset(scope.value for scope in Scope)


@dataclass(frozen=True, slots=True)
class Picked:
    """The items that stand, and what became of the others: `cut` for want of room, `malformed` for their form."""

    items: tuple[RecallItem, ...] = ()
    shortened: int = 0
    cut: int = 0
    malformed: int = 0

    def told(self, *, max_chars: int) -> str:
        """What was done to the answer, in words; empty for nothing."""
        told = []
        if self.shortened or self.cut:
            told.append(
                f"cut to {max_chars} characters ({self.shortened} items shortened, {self.cut} left out)"
            )
        if self.malformed:
            told.append(f"{self.malformed} malformed items dropped")
        return "; ".join(told)


def pick(answer: object, *, provider: str, max_chars: int) -> Picked:
    """The items of a plugin's answer that fit into a block of so many characters. Raises nothing for its form.

    Ids are put under the plugin's name, so that none passes for a row of ours. The last item that has room is
    shortened, the rest is left out; no text is looked at beyond what is kept of it.
    """
    if isinstance(answer, str | bytes | Mapping) or not isinstance(answer, Iterable):
        return Picked(malformed=0 if answer is None else 1)
    kept: list[RecallItem] = []
    left = max_chars
    shortened = cut = malformed = 0
    for one in islice(answer, MOST_ITEMS):
        item = _clean(one, provider=provider, max_chars=max_chars)
        if item is None:
            malformed += 1
            continue
        room = left - len(line_of(where_of(item), "")) - 2  # a space before the text, a line's end after it
        if room < min(LEAST_TEXT, len(item.text)):
            cut += 1
            continue
        if len(item.text) > room:
            item = replace(item, text=item.text[: room - 1].rstrip() + "…")
            shortened += 1
        left = room - len(item.text)
        kept.append(item)
    return Picked(tuple(kept), shortened, cut, malformed)


def _clean(one: object, *, provider: str, max_chars: int) -> RecallItem | None:
    """The item in our own types; None for one without a name, a text or a finite score."""
    if not isinstance(one, RecallItem) or not isinstance(one.text, str) or not isinstance(one.id, str):
        return None
    score = _finite(one.score)
    # A little more than may stay, so that the cut is seen.
    text = storable(one.text[: max_chars + LEAST_TEXT]).strip()
    if score is None or not text or not one.id.strip():
        return None
    name = _word(one.id)
    speaker = _word(one.speaker) if isinstance(one.speaker, str) else ""
    return RecallItem(
        id=name if name.startswith(f"{provider}:") else f"{provider}:{name}",
        kind=_word(one.kind) if isinstance(one.kind, str) and one.kind.strip() else provider,
        text=text,
        score=round(score, 4),
        scope=one.scope if one.scope in _SCOPES else Scope.TEAM.value,
        at=_moment(one.at),
        speaker=speaker or None,
        source=_source(one.source),
        why={
            _word(key): number
            for key, value in islice(_pairs(one.why), MAX_VALUES)
            if (number := _finite(value)) is not None
        },
    )


def _source(given: object) -> dict[str, Any]:
    source: dict[str, Any] = {}
    for key, value in islice(_pairs(given), MAX_VALUES):
        if isinstance(value, str):
            source[_word(key)] = _word(value)
        elif isinstance(value, bool) or value is None:
            source[_word(key)] = value
        elif (number := _finite(value)) is not None:
            source[_word(key)] = value if isinstance(value, int) else number
    return source


def _pairs(given: object) -> Iterable[tuple[str, Any]]:
    if not isinstance(given, Mapping):
        return ()
    return ((key, value) for key, value in given.items() if isinstance(key, str))


def _word(text: str) -> str:
    return " ".join(storable(text[:MAX_WORD]).split())


def _finite(value: object) -> float | None:
    """The number, if it is one that JSON and Postgres hold."""
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15:
        return None
    return float(value) if math.isfinite(value) else None


def _moment(given: object) -> str | None:
    if not isinstance(given, str):
        return None
    try:
        datetime.fromisoformat(given)
    except ValueError:
        return None
    return given
