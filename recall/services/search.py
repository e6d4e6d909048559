"""Hybrid search over the buckets of a reach, in one statement: words and vectors, and what stands next to them.

The words that choose candidates are the rare ones; all words score them. In a small reach every record is a
candidate and vectors are compared exactly.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection

from recall.logic.cues import asks_when, speakers_named
from recall.logic.fusion import Candidate, Question, rank
from recall.logic.lexemes import QueryTerms, name_terms, query_terms
from recall.logic.marks import ASKS, TIMED
from recall.logic.times import date_cues, days_of
from recall.logic.weights import Frequencies, rare_terms, score, term_weights
from recall.models import BucketCount, Speaker
from recall.services.dense import Embedded, leg_of
from recall.services.index import bucket_lexeme
from recall.types import Found, RecordKind

SMALL: Final = 2000
"""Records of a reach up to which each is a candidate: measured, words alone find 1.8 more of 100 sessions."""
MOST_CHOSEN: Final = 2000
"""Records that the rare words may choose: scoring those with all words costs 1 to 3 ms."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for. `kinds` empty means all; `since` and `until` bound when a record was said."""

    query: str
    asked_at: datetime
    limit: int = 10
    kinds: Collection[RecordKind] = ()
    since: datetime | None = None
    until: datetime | None = None
    asker: str | None = None
    agent: str | None = None


def search(buckets: Sequence[int], wanted: Wanted, *, embedded: Embedded | None = None) -> list[Found]:
    """The best records of these buckets, best first. Three statements; no bucket's row is seen that is not named."""
    if not buckets:
        return []
    counts = dict(BucketCount.objects.filter(bucket_id__in=buckets).values_list("bucket_id", "records"))
    total = sum(counts.values())
    if not total:
        return []
    asked = _ask(buckets, wanted)
    rows = _rows(counts, wanted, asked, embedded, is_small=total <= SMALL)
    return _ranked(rows, wanted, asked, total)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the question says: its terms, the speakers it names, the times it is about."""

    terms: QueryTerms
    named: tuple[str, ...]
    left_out: frozenset[str]
    columns: tuple[str, ...]
    dates: tuple[Any, ...]


def _ask(buckets: Sequence[int], wanted: Wanted) -> _Asked:
    speakers = set(Speaker.objects.filter(bucket_id__in=buckets).values_list("name", flat=True)[:500])
    named = speakers_named(wanted.query, speakers, asker=wanted.asker, agent=wanted.agent)
    dates = date_cues(wanted.query, asked_on=wanted.asked_at.date())
    terms = query_terms(wanted.query, days=days_of(dates), speakers=named)
    left_out = frozenset(term for name in named for term in name_terms(name))
    # A bit of a 63-bit mask for each; the marks are always asked for.
    columns = tuple(dict.fromkeys((*_MARKS, *terms.terms, *terms.speakers)))[:62]
    return _Asked(terms, named, left_out, columns, dates)


@dataclass(frozen=True, slots=True)
class _Row:
    record_id: int
    bucket_id: int
    kind: str
    source_id: int
    part: int
    thread: int
    position: int
    speaker: str
    at: datetime | None
    size: int
    trust: float | None
    root: int | None
    content_hash: str
    mask: int
    distance: float | None


def _rows(
    counts: Mapping[int, int], wanted: Wanted, asked: _Asked, embedded: Embedded | None, *, is_small: bool
) -> list[_Row]:
    buckets = list(counts)
    bound = _bound(wanted)
    leg = leg_of(embedded, counts=counts, bound=bound, is_whole=is_small)
    given: dict[str, Any] = {
        "buckets": buckets,
        "kinds": [kind.value for kind in wanted.kinds],
        "since": wanted.since,
        "until": wanted.until,
        "most": MOST_CHOSEN,
        **leg.given,
        **{f"t{n}": _quoted(term) for n, term in enumerate(asked.columns)},
        "any": " | ".join(map(_quoted, asked.columns[len(_MARKS) :])),
    }
    where = "r.bucket_id = ANY(%(buckets)s)"
    if not is_small:
        given["choose"] = _choice(buckets, asked)
        where = "r.lexemes @@ %(choose)s::tsquery"
    chosen = f"SELECT r.id FROM recall_record r WHERE {where}{' AND ' + bound if bound else ''}"
    sql = _SEARCH.format(
        chosen=chosen if is_small else chosen + " LIMIT %(most)s",
        nearest=leg.nearest,
        distances=leg.distances,
        mask=_mask(len(asked.columns)),
    )
    with connection.cursor() as cursor:
        cursor.execute(sql, given)
        return [_Row(*row) for row in cursor.fetchall()]


def _bound(wanted: Wanted) -> str:
    """The condition on records that is wanted, empty for none."""
    parts = ["r.kind = ANY(%(kinds)s)"] if wanted.kinds else []
    parts += ["r.at >= %(since)s"] if wanted.since else []
    parts += ["r.at < %(until)s"] if wanted.until else []
    return " AND ".join(parts)


def _mask(columns: int) -> str:
    """A bit for each column. Most records hold none of the words: one look tells."""
    bits = [
        f"(CASE WHEN r.lexemes @@ %(t{n})s::tsquery THEN {1 << n}::bigint ELSE 0 END)" for n in range(columns)
    ]
    marks, words = bits[: len(_MARKS)], bits[len(_MARKS) :]
    if words:
        marks.append(f"(CASE WHEN r.lexemes @@ %(any)s::tsquery THEN {' | '.join(words)} ELSE 0 END)")
    return " | ".join(marks)


_MARKS: Final = (ASKS, TIMED)
_SEARCH: Final = """
WITH chosen AS MATERIALIZED ({chosen}), nearest AS MATERIALIZED ({nearest}),
found AS MATERIALIZED (SELECT id FROM chosen UNION SELECT id FROM nearest),
near AS (
  SELECT n.id FROM found JOIN recall_record f ON f.id = found.id
  JOIN recall_record n ON n.kind = f.kind AND n.thread = f.thread AND n.bucket_id = f.bucket_id
    AND n.position BETWEEN f.position - 2 AND f.position + 2
),
everything AS (SELECT id FROM found UNION SELECT id FROM near)
SELECT r.id, r.bucket_id, r.kind, r.source_id, r.part, r.thread, r.position, r.speaker, r.at, r.size, r.trust,
  r.root, r.content_hash, {mask}, d.far
FROM everything e JOIN recall_record r ON r.id = e.id
{distances}
"""


def _choice(buckets: Sequence[int], asked: _Asked) -> str:
    """The words that choose: the rare ones of the question, within these buckets."""
    terms = [term for term in asked.terms.terms if term not in asked.left_out] or [*asked.terms.terms]
    rare = rare_terms(terms, _statistics(buckets, asked.terms.terms))
    where = " | ".join(_quoted(bucket_lexeme(bucket)) for bucket in buckets)
    return f"({where}) & ({' | '.join(_quoted(term) for term in rare)})" if rare else f"({where})"


def _quoted(lexeme: str) -> str:
    """A lexeme as tsquery reads it literally."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _statistics(buckets: Sequence[int], terms: Sequence[str]) -> Frequencies:
    """How common lexemes are, in millionths, from what Postgres knows for nothing; counted where it does not yet."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats"
            " WHERE schemaname = 'public' AND tablename = 'recall_record' AND attname = 'lexemes'"
        )
        row = cursor.fetchone()
    if row is None or row[0] is None:
        return _counted(buckets, terms)
    known = {term: round(share * 1_000_000) for term, share in zip(row[0], row[1], strict=False)}
    return Frequencies(total=1_000_000, known=known)


def _counted(buckets: Sequence[int], terms: Sequence[str]) -> Frequencies:
    """Before the first ANALYZE: the same, counted in these buckets."""
    counts = ", ".join("count(*) FILTER (WHERE lexemes @@ %s::tsquery)" for _ in terms)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT count(*){', ' + counts if counts else ''} FROM recall_record WHERE bucket_id = ANY(%s)",
            [*map(_quoted, terms), list(buckets)],
        )
        total, *found = cursor.fetchone()
    return Frequencies(total=total, known=dict(zip(terms, found, strict=True)))


def _ranked(rows: Sequence[_Row], wanted: Wanted, asked: _Asked, total: int) -> list[Found]:
    held = {row.record_id: _held(row.mask, asked.columns) for row in rows}
    frequencies: dict[str, int] = {}
    for terms in held.values():
        for term in terms:
            frequencies[term] = frequencies.get(term, 0) + 1
    weights = term_weights(
        asked.terms, Frequencies(total=max(total, len(rows)), known=frequencies), name_terms=asked.left_out
    )
    mean = sum(row.size for row in rows) / max(1, len(rows))
    lexical = {
        row.record_id: score(held[row.record_id], weights, size=row.size, mean_size=mean) for row in rows
    }
    question = Question(
        weights=weights,
        speaker=asked.named[0] if len(asked.named) == 1 else None,
        dates=asked.dates,
        asks_when=asks_when(wanted.query),
        asked_at=wanted.asked_at,
    )
    by_id = {row.record_id: row for row in rows}
    heard = _heard(rows, lexical)
    ranked = rank(question, _candidates(rows, lexical, held), limit=None)
    shown = [
        one for one in ranked if one.candidate.id in heard and _may_show(by_id[one.candidate.id], wanted)
    ]
    return [_found(by_id[one.candidate.id], one.score, one.why) for one in shown[: wanted.limit]]  # type: ignore[index]


def _heard(rows: Sequence[_Row], lexical: dict[int, float]) -> set[int]:
    """Records that share a word with the question, stand within two of one that does, or were compared by vector.

    In a small reach all records are candidates; what has nothing to do with the question is no answer to it.
    """
    places = {
        (row.kind, row.thread, row.position + step)
        for row in rows
        if lexical[row.record_id] > 0
        for step in range(-2, 3)
    }
    return {
        row.record_id
        for row in rows
        if row.distance is not None or (row.kind, row.thread, row.position) in places
    }


def _candidates(
    rows: Sequence[_Row], lexical: dict[int, float], held: dict[int, dict[str, int]]
) -> list[Candidate]:
    return [
        Candidate(
            id=row.record_id,
            thread=(row.kind, row.thread),
            position=row.position,
            speaker=row.speaker or None,
            at=row.at,
            dense=None if row.distance is None else 1 - row.distance,
            lexical=lexical[row.record_id],
            lexemes=held[row.record_id],
            size=row.size,
            trust=row.trust,
            root=row.root,
            content_hash=row.content_hash,
        )
        for row in rows
    ]


def _held(mask: int, columns: Sequence[str]) -> dict[str, int]:
    return {term: 1 for n, term in enumerate(columns) if mask >> n & 1}


def _may_show(row: _Row, wanted: Wanted) -> bool:
    """A neighbour that was only lent an ear must itself be of the kinds and times that are looked for."""
    if wanted.kinds and row.kind not in {kind.value for kind in wanted.kinds}:
        return False
    if wanted.since is not None and (row.at is None or row.at < wanted.since):
        return False
    return wanted.until is None or (row.at is not None and row.at < wanted.until)


def _found(row: _Row, points: float, why: dict[str, float]) -> Found:
    return Found(
        record_id=row.record_id,
        bucket_id=row.bucket_id,
        kind=RecordKind(row.kind),
        source_id=row.source_id,
        part=row.part,
        content_hash=row.content_hash,
        score=points,
        why=why,
    )
