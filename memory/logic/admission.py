"""The gate in front of entries and facts: what a model or a rule proposes is stored only with the owner's own words
behind it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Final

from memory.logic import echo, salience
from memory.logic.structured import MAX_CONTENT
from memory.logic.transcript import Line
from recall.logic.combining import nfkc
from workspaces.logic.tokens import cjk_share

ENTRY_FLOOR: Final = 0.7
"""Least confidence of an entry: it may stand in every prompt (as earlier systems, research 3.5)."""
FACT_FLOOR: Final = 0.5
"""Least confidence of a fact: its trust ranks it."""
ONGOING: Final = timedelta(days=90)
"""How long an entry about something that goes on is kept without being said again."""
TRANSIENT: Final = frozenset({"transient", "turn", "session", "temporary", "momentary"})
DURABLE: Final = frozenset({"durable", "permanent", "stable", "long-term", "lasting"})


class Refusal(StrEnum):
    """Why something proposed is not stored."""

    UNSURE = "low_confidence"
    TRANSIENT = "transient"
    TURN_LOCAL = "turn_local"
    NO_QUOTE = "no_quote"
    NOT_SAID = "quote_not_in_owners_lines"
    NOT_OWNER = "message_not_the_owners"
    UNGROUNDED = "name_nobody_said"
    ECHO = "echo"
    ORDER = "instruction_shaped"
    EXPIRED = "expired"
    EMPTY = "empty"
    TOO_LONG = "too_long"


@dataclass(frozen=True, slots=True)
class Candidate:
    """What is proposed. `place` is its number in the answer, by which its proposer finds it again."""

    place: int
    content: str
    confidence: float
    durability: str
    quote: str
    message_ids: tuple[int, ...]
    expires_on: date | None = None


@dataclass(frozen=True, slots=True)
class Admitted:
    """What may be stored, the owner's lines that say it, and until when it holds (None: no end)."""

    place: int
    lines: tuple[Line, ...]
    expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class Refused:
    """What may not, and why."""

    place: int
    why: Refusal


@dataclass(frozen=True, slots=True)
class Admission:
    """The gate's verdict on all that was proposed."""

    admitted: tuple[Admitted, ...]
    refused: tuple[Refused, ...]

    def counts(self) -> Counter[str]:
        """How many were refused, by reason."""
        return Counter(one.why.value for one in self.refused)


@dataclass(frozen=True, slots=True)
class Ground:
    """What was said in the window: all lines, and what had been put before the agent. `owner` is their name."""

    lines: tuple[Line, ...]
    injected: tuple[str, ...]
    owner: str

    def own(self) -> list[Line]:
        """The owner's lines."""
        return [line for line in self.lines if line.is_owner]


def admit(
    candidates: Iterable[Candidate], ground: Ground, *, floor: float, now: datetime, ongoing: timedelta | None
) -> Admission:
    """Judges each. With `ongoing`, what is not durable expires after that time at the latest."""
    said = {line.message_id: _folded(salience.own_words(line.text)) for line in ground.own()}
    admitted: list[Admitted] = []
    refused: list[Refused] = []
    for one in candidates:
        verdict = _judge(one, ground, said, floor=floor, now=now)
        if isinstance(verdict, Refusal):
            refused.append(Refused(one.place, verdict))
        else:
            expires_at = _end(one, now=now, ongoing=ongoing)
            admitted.append(Admitted(one.place, verdict, expires_at))
    return Admission(tuple(admitted), tuple(refused))


def _judge(
    one: Candidate, ground: Ground, said: dict[int, str], *, floor: float, now: datetime
) -> Refusal | tuple[Line, ...]:
    """The lines that say it, or why it stays out."""
    if not any(char.isalnum() for char in one.content):
        return Refusal.EMPTY
    if len(one.content) > MAX_CONTENT:
        return Refusal.TOO_LONG
    if salience.is_instruction_shaped(one.content) or salience.is_instruction_shaped(one.quote):
        return Refusal.ORDER
    lines = _evidence(one, ground, said)
    if isinstance(lines, Refusal):
        return lines
    return _worth(one, ground, floor=floor, now=now) or lines


def _worth(one: Candidate, ground: Ground, *, floor: float, now: datetime) -> Refusal | None:
    """Why something that was said is still not worth keeping; None if it is."""
    if one.confidence < floor:
        return Refusal.UNSURE
    if one.durability in TRANSIENT:
        return Refusal.TRANSIENT
    if salience.is_turn_local(one.content) or salience.is_turn_local(one.quote):
        return Refusal.TURN_LOCAL
    if one.expires_on is not None and one.expires_on < now.date():
        return Refusal.EXPIRED
    return None if _is_grounded(one.content, ground) else Refusal.UNGROUNDED


def _evidence(one: Candidate, ground: Ground, said: dict[int, str]) -> Refusal | tuple[Line, ...]:
    quote = _folded(one.quote)
    if not _is_telling(quote):
        return Refusal.ECHO if _is_echo(one, ground) else Refusal.NO_QUOTE
    if any(number not in said for number in one.message_ids):
        return Refusal.ECHO if _is_echo(one, ground) else Refusal.NOT_OWNER
    wanted = set(one.message_ids) or set(said)
    lines = tuple(
        line for line in ground.own() if line.message_id in wanted and _holds(said[line.message_id], quote)
    )
    return lines or (Refusal.ECHO if _is_echo(one, ground) else Refusal.NOT_SAID)


def _is_echo(one: Candidate, ground: Ground) -> bool:
    """Whether it says again what memory had put before the agent."""
    return bool(echo.strip_echoes(one.content, ground.injected).removed) if ground.injected else False


def _end(one: Candidate, *, now: datetime, ongoing: timedelta | None) -> datetime | None:
    told = (
        datetime(one.expires_on.year, one.expires_on.month, one.expires_on.day, 23, 59, 59, tzinfo=now.tzinfo)
        if one.expires_on is not None
        else None
    )
    if ongoing is None or one.durability in DURABLE:
        return told
    return min(told, now + ongoing) if told is not None else now + ongoing


# --- words ------------------------------------------------------------------------------------------------

_WORD: Final = re.compile(r"\w+")
_NAME: Final = re.compile(r"(?<![.!?:;\n] )(?<!^)\b[A-Z][^\W\d_]+(?:['’-][A-Z]?[^\W\d_]+)*")
_words = str.split
_CALENDAR: Final = frozenset(
    _words(
        """
    january february march april may june july august september october november december
    monday tuesday wednesday thursday friday saturday sunday user owner english
    """
    )
)


def _folded(text: str) -> str:
    return " ".join(_WORD.findall(nfkc(text).casefold()))


def _is_telling(quote: str) -> bool:
    """Whether a quote is long enough to prove anything: two words, or two characters of a script without spaces."""
    return len(quote.split()) >= 2 or (not quote.isascii() and len(quote) >= 2)


def _holds(said: str, quote: str) -> bool:
    if cjk_share(quote) > 0.3:
        return quote.replace(" ", "") in said.replace(" ", "")
    return f" {quote} " in f" {said} "


def _is_grounded(content: str, ground: Ground) -> bool:
    """Whether every name in it was said by a person: what the agent alone named may be invented. Only for Latin
    script, which marks names."""
    everything = " ".join(line.text for line in ground.lines if line.role != "assistant" or line.is_owner)
    if cjk_share(everything) > 0.3:
        return True
    known = set(
        _folded(f"{everything} {ground.owner} {' '.join(line.name for line in ground.lines)}").split()
    )
    names = [part for name in _NAME.findall(content) for part in _folded(name).split()]
    return all(part in known or part in _CALENDAR or _stem(part) in known for part in names if len(part) > 1)


def _stem(word: str) -> str:
    return word.removesuffix("s")


def quotes_of(lines: Sequence[Line]) -> list[dict[str, object]]:
    """The lines as versions and changes keep them."""
    return [{"messageId": line.message_id, "speaker": line.name, "text": line.text[:500]} for line in lines]
