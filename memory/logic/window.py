"""What of a conversation still fits: where to cut, and never between a tool call and its result.

Every function answers with positions in the sequence it was given, so that callers keep their own
message type. A result whose call is not among the messages is never kept: a provider refuses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SMALL_WINDOW = 32_768
"""Below this many tokens a window is filled further before it is compacted, or it would be all the time."""

SMALL_WINDOW_RATIO = 0.85
TAIL_SHARE = 0.2
"""Share of the trigger that the newest messages may fill; exceeded by at most `TAIL_STRETCH`."""

TAIL_STRETCH = 1.5
MIN_SUMMARISED = 2
"""A summary of fewer messages costs more than it saves."""

LAST_TURNS = 2
LAST_MESSAGES = 2


@dataclass(frozen=True, slots=True)
class Sized:
    """One message as the window sees it: `calls` are calls it makes, `result_of` is the one it answers."""

    role: str
    tokens: int
    calls: tuple[str, ...] = ()
    result_of: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """`summarise` and `keep` are adjacent and cover all messages; `summarise` is empty when all may stay."""

    summarise: range
    keep: range

    @property
    def is_needed(self) -> bool:
        return len(self.summarise) > 0


def trigger_tokens(budget: int, trigger_ratio: float) -> int:
    """Tokens above which a conversation in a window of `budget` tokens is compacted."""
    ratio = max(trigger_ratio, SMALL_WINDOW_RATIO) if budget < SMALL_WINDOW else trigger_ratio
    return int(budget * ratio)


def plan_compaction(
    messages: Sequence[Sized],
    *,
    fixed_tokens: int,
    budget: int,
    trigger_ratio: float,
    preserve_pairs: int,
    protect_min: int,
) -> Plan:
    """Stage 1: which of the oldest messages to summarise.

    `fixed_tokens` is everything else in the prompt (system, tools, current message), `budget` the whole
    window. The tail grows from the end up to its share of the window, and holds at least
    `protect_min` messages and `preserve_pairs` questions with their answers, whichever is more.
    """
    count = len(messages)
    everything = Plan(range(0), range(count))
    trigger = trigger_tokens(budget, trigger_ratio)
    if fixed_tokens + sum(message.tokens for message in messages) <= trigger:
        return everything
    floor = max(protect_min, 2 * preserve_pairs)
    allowed = int(trigger * TAIL_SHARE * TAIL_STRETCH)
    cut, used = count, 0
    while cut > 0 and (count - cut < floor or used + messages[cut - 1].tokens <= allowed):
        cut -= 1
        used += messages[cut].tokens
    whole = _whole_cuts(messages)
    while not whole[cut]:
        cut -= 1
    if cut < MIN_SUMMARISED:
        return everything
    return Plan(range(cut), range(cut, count))


def emergency(messages: Sequence[Sized]) -> tuple[int, ...]:
    """Stage 2: the last two turns, when the provider itself said that the prompt is too long."""
    starts = [index for index, message in enumerate(messages) if message.role == "user"]
    no_turns = max(0, len(messages) - 2 * LAST_TURNS)
    cut = starts[-LAST_TURNS] if len(starts) >= LAST_TURNS else no_turns
    whole = _whole_cuts(messages)
    while not whole[cut]:
        cut -= 1
    return _kept(messages, cut)


def hard_trim(messages: Sequence[Sized], *, fixed_tokens: int, budget: int) -> tuple[int, ...]:
    """Stage 3: drops from the front until the rest fits `budget`; the last two always stay, fit or not."""
    whole = _whole_cuts(messages)
    last = max(0, len(messages) - LAST_MESSAGES)
    tokens = fixed_tokens + sum(messages[index].tokens for index in _kept(messages, 0))
    orphans = set(range(len(messages))) - set(_kept(messages, 0))
    best = 0
    for cut in range(last + 1):
        if whole[cut]:
            best = cut
            if tokens <= budget:
                break
        if cut not in orphans:
            tokens -= messages[cut].tokens if cut < len(messages) else 0
    return _kept(messages, best)


def _whole_cuts(messages: Sequence[Sized]) -> list[bool]:
    """For each position 0..n, whether a cut before it separates no call from its result."""
    call_at = _call_positions(messages)
    whole = [True] * (len(messages) + 1)
    earliest = len(messages)
    for index in range(len(messages) - 1, -1, -1):
        earliest = min(earliest, call_at.get(index, index))
        whole[index] = earliest >= index
    return whole


def _call_positions(messages: Sequence[Sized]) -> dict[int, int]:
    """Position of the call of each result that has one before it."""
    called: dict[str, int] = {}
    answered: dict[int, int] = {}
    for index, message in enumerate(messages):
        if message.result_of is not None and message.result_of in called:
            answered[index] = called[message.result_of]
        called.update(dict.fromkeys(message.calls, index))
    return answered


def _kept(messages: Sequence[Sized], cut: int) -> tuple[int, ...]:
    """Positions from `cut` on, without results that lack their call."""
    called: set[str] = set()
    kept: list[int] = []
    for index in range(cut, len(messages)):
        message = messages[index]
        if message.result_of is None or message.result_of in called:
            kept.append(index)
        called.update(message.calls)
    return tuple(kept)
