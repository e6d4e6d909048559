"""How well a ranking found what was meant. Keys are any names of records; every share is of 1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass


def recall(ranked: Sequence[str], meant: Collection[str], k: int) -> float:
    """The share of what is meant among the first k."""
    return len({*ranked[:k]} & {*meant}) / len({*meant})


def hit(ranked: Sequence[str], meant: Collection[str], k: int) -> float:
    """1 when anything that is meant is among the first k."""
    return float(any(key in meant for key in ranked[:k]))


def reciprocal(ranked: Sequence[str], meant: Collection[str], k: int) -> float:
    """One over the place of the first that is meant, 0 when none is among the first k."""
    return next((1 / place for place, key in enumerate(ranked[:k], start=1) if key in meant), 0.0)


def first_of_each(keys: Iterable[str]) -> list[str]:
    """Keys in their order, each once: the sessions of ranked turns, say."""
    return list(dict.fromkeys(keys))


@dataclass(frozen=True)
class Graded:
    """Means over questions: recall at 5, 10 and 20, hits and reciprocal rank at 10, recall of sessions at 5."""

    questions: int
    at5: float
    at10: float
    at20: float
    hit10: float
    rank10: float
    sessions5: float


def grade(
    rankings: Sequence[Sequence[str]], meant: Sequence[Collection[str]], *, session_of: dict[str, str]
) -> Graded:
    """`rankings` and `meant` belong together, question by question."""
    rows = [
        (
            recall(ranked, want, 5),
            recall(ranked, want, 10),
            recall(ranked, want, 20),
            hit(ranked, want, 10),
            reciprocal(ranked, want, 10),
            recall(first_of_each(session_of[key] for key in ranked), {session_of[key] for key in want}, 5),
        )
        for ranked, want in zip(rankings, meant, strict=True)
    ]
    return Graded(len(rows), *(sum(column) / len(rows) for column in zip(*rows, strict=True)))
