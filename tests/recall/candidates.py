"""Candidates of a ranking, written down one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

import numpy as np

from recall.logic.fusion import NO_DAY, Candidates, Question, rank


@dataclass(frozen=True, slots=True)
class Row:
    """One candidate. `terms` are the places of the question's terms that it holds."""

    id: str
    thread: str | None = None
    position: int = 0
    dense: float | None = None
    lexical: float | None = None
    terms: tuple[int, ...] = ()
    asks: bool = False
    timed: bool = False
    said: bool = False
    at: datetime | None = None
    size: int = 0
    trust: float | None = None
    root: str | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Placed:
    """A row in its place."""

    id: str
    score: float
    why: dict[str, float]


def candidates_of(rows: Sequence[Row]) -> Candidates:
    """The rows as arrays. Their ids order as their texts do."""

    def numbers(values):
        return np.asarray(list(values), dtype=np.int64)

    def reals(values):
        return np.asarray([np.nan if value is None else value for value in values], dtype=np.float64)

    def flags(values):
        return np.asarray(list(values), dtype=np.bool_)

    def names(values, none):
        known = sorted({value for value in values if value is not None})
        return [none(n) if value is None else known.index(value) for n, value in enumerate(values)]

    ids = sorted(row.id for row in rows)
    return Candidates(
        id=numbers(ids.index(row.id) for row in rows),
        thread=numbers(names([row.thread for row in rows], lambda _: -1)),
        position=numbers(row.position for row in rows),
        dense=reals(row.dense for row in rows),
        lexical=reals(row.lexical for row in rows),
        held=numbers(sum(1 << term for term in row.terms) for row in rows),
        asks=flags(row.asks for row in rows),
        timed=flags(row.timed for row in rows),
        said=flags(row.said for row in rows),
        day=numbers((row.at.date() - date(1970, 1, 1)).days if row.at else NO_DAY for row in rows),
        size=numbers(row.size for row in rows),
        trust=reals(row.trust for row in rows),
        root=numbers(names([row.root for row in rows], lambda _: -1)),
        content=numbers(names([row.content for row in rows], lambda n: 1000 + n)),
    )


def ranked(question: Question, rows: Sequence[Row], **options: object) -> list[Placed]:
    """The rows, best first."""
    return [
        Placed(rows[one.index].id, one.score, one.why)
        for one in rank(question, candidates_of(rows), **options)
    ]
