"""The leg of vectors: which records of some buckets are nearest to a question.

A bucket's vectors are compared exactly while they are few; above `LARGE` by an index of that bucket's own (see
`recall.services.vector_indexes`). So nobody's rows push another's out of an approximate answer, and writing to a
small bucket costs no graph. The code chooses: the planner took the graph even for an owner of 20 rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

EACH_LEG: Final = 150
"""Records that the vectors choose; the figures of `recall.logic.fusion` were taken with that many."""
LARGE: Final = 10_000
"""Records of a bucket from which on it is given an index: 50,000 of 384 dimensions are compared exactly in 60 ms,
20,000 in 46 and 5,000 in 14 (beside other work), while an index answers in 14 whatever their number."""
MOST_DIMENSIONS: Final = 4000
"""What pgvector's index of half-precision vectors holds."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """A question's vector, and whose it is. `near` is what another store found nearest: (record, similarity)."""

    embedder: str
    value: Sequence[float]
    near: tuple[tuple[int, float], ...] | None = None


@dataclass(frozen=True, slots=True)
class Leg:
    """SQL of two parts: `nearest` selects what this leg chooses, as `id` and `far`; `distances` is joined to records
    `r` as `d`, whose `far` is the cosine distance to the question, NULL where none is known. Where not all records are
    candidates anyway, `r` has a `far` too, that of what was chosen, which is not computed again."""

    nearest: str
    distances: str
    given: dict[str, Any] = field(default_factory=dict)


_NONE: Final = "SELECT NULL::bigint AS id, NULL::float8 AS far WHERE false"


def leg_of(
    embedded: Embedded | None,
    *,
    counts: Mapping[int, int],
    kinds: Sequence[str] = (),
    bound: str = "",
    is_whole: bool = False,
) -> Leg:
    """The leg for these buckets (with their numbers of records).

    `kinds` empty means all; `bound` is a further condition on records as `r`, empty for none. With `is_whole` all
    records are candidates anyway.
    """
    if embedded is None:
        return Leg(_NONE, "LEFT JOIN (SELECT NULL::float8 AS far) d ON true")
    if embedded.near is not None:
        return _found_elsewhere(embedded.near, kinds, bound)
    dimensions = len(embedded.value)
    given = {
        "embedder": embedded.embedder,
        # As many digits as a half-precision number has, and one more: the text of all of them took a millisecond.
        "vector": f"[{','.join(f'{number:.5g}' for number in embedded.value)}]",
        "of": list(kinds),
        "leg": EACH_LEG,
    }
    # One of another size would break the comparison of all: it counts as none.
    fits = f"embedder = %(embedder)s AND vector_dims(value) = {dimensions:d}"
    distances = (
        f"LEFT JOIN LATERAL (SELECT value <=> %(vector)s::halfvec AS far FROM recall_vector"
        f" WHERE r.far IS NULL AND record_id = r.id AND {fits}) d ON true"
    )
    if is_whole:
        distances = (
            "LEFT JOIN (SELECT record_id, value <=> %(vector)s::halfvec AS far FROM recall_vector"
            f" WHERE bucket_id = ANY(%(buckets)s) AND {fits}) d ON d.record_id = r.id"
        )
        return Leg(_NONE, distances, given)
    large = [bucket for bucket, count in counts.items() if count >= LARGE and dimensions <= MOST_DIMENSIONS]
    given["exact"] = [bucket for bucket in counts if bucket not in large]
    wanted = f"{fits} AND kind = ANY(%(of)s)" if kinds else fits
    # `+ 0` keeps an index from answering where all are to be compared.
    legs = [_leg(f"bucket_id = ANY(%(exact)s) AND {wanted}", "(value <=> %(vector)s::halfvec) + 0", bound)]
    near = f"(value::halfvec({dimensions:d}) <=> %(vector)s::halfvec({dimensions:d}))"
    legs += [_leg(f"bucket_id = {bucket:d} AND {wanted}", near, bound) for bucket in large]
    nearest = f"SELECT id, far FROM ({' UNION ALL '.join(legs)}) legs ORDER BY far LIMIT %(leg)s"
    return Leg(nearest, distances, given)


def _leg(where: str, order: str, bound: str) -> str:
    if bound:
        where += f" AND EXISTS (SELECT 1 FROM recall_record r WHERE r.id = record_id AND {bound})"
    return f"(SELECT record_id AS id, {order} AS far FROM recall_vector WHERE {where} ORDER BY far LIMIT %(leg)s)"


def _found_elsewhere(near: Sequence[tuple[int, float]], kinds: Sequence[str], bound: str) -> Leg:
    """What another store answered is believed only where Postgres says that it lies in these buckets."""
    where = " AND r.kind = ANY(%(of)s)" if kinds else ""
    where += f" AND {bound}" if bound else ""
    told = "unnest(%(elsewhere)s::bigint[], %(far)s::float8[]) AS d(record_id, far)"
    return Leg(
        nearest=f"SELECT r.id, d.far FROM {told} JOIN recall_record r ON r.id = d.record_id"
        f" WHERE r.bucket_id = ANY(%(buckets)s){where}",
        distances=f"LEFT JOIN {told} ON d.record_id = r.id",
        given={
            "of": list(kinds),
            "elsewhere": [pk for pk, _ in near],
            "far": [1 - similarity for _, similarity in near],
        },
    )
