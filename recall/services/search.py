"""Hybrid search over the buckets of a reach, in one statement: words and vectors, and what stands next to them.

In a small reach every record is a candidate, and vectors are compared exactly. In a larger one the rare words of the
question choose records, all its words score those, and the best by words and by vectors are the candidates, with
what stands beside the very best.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import numpy as np
from django.db import connection

from recall.logic.arrays import Bools, Floats, Ints
from recall.logic.cues import asks_when, same_name, speakers_named
from recall.logic.fusion import NO_DAY, Candidates, Question, rank, weighed
from recall.logic.lexemes import QueryTerms, name_terms, query_terms
from recall.logic.marks import ASKS, TIMED
from recall.logic.times import DateCue, date_cues, days_of
from recall.logic.weights import LENGTH, SATURATION, Frequencies, rare_terms, score, term_weights
from recall.services.dense import EACH_LEG, Embedded, leg_of
from recall.services.index import bucket_lexeme
from recall.types import Found, RecordKind

SMALL: Final = 2000
"""Records of a reach up to which each is a candidate: measured, words alone find 1.8 more of 100 sessions."""
MOST_CHOSEN: Final = 2000
"""Records that the rare words may choose: scoring those with all words costs 1 to 3 ms."""
WITH_NEIGHBOURS: Final = 40
"""The best of each leg whose neighbours are candidates too: what answers a question often shares no word with it."""
STATISTICS_S: Final = 60
"""How long Postgres' statistics are taken for current; it renews them itself when a tenth of a table has changed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for. `kinds` empty means all; `since` and `until` bound when a record was said.

    Trust that decays is halved each `trust_half_life_days`; None: none does.
    """

    query: str
    asked_at: datetime
    limit: int = 10
    kinds: Collection[RecordKind] = ()
    since: datetime | None = None
    until: datetime | None = None
    asker: str | None = None
    agent: str | None = None
    trust_half_life_days: float | None = None


def search(buckets: Sequence[int], wanted: Wanted, *, embedded: Embedded | None = None) -> list[Found]:
    """The best records of these buckets, best first. Two statements; no bucket's row is seen that is not named."""
    counts, speakers = _known_of(buckets) if buckets else ({}, set())
    if not any(counts.values()):
        return []
    asked = _ask(wanted, speakers)
    if sum(counts.values()) <= SMALL:
        rows = _all_rows(counts, wanted, asked, embedded)
        weights = _weights(asked, rows.frequencies(asked.terms_asked))
    else:
        frequencies = _statistics(buckets, asked.terms_asked)
        weights = _weights(asked, frequencies)
        rows = _best_rows(counts, wanted, asked, embedded, frequencies)
    return _ranked(rows, wanted, asked, weights)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the question says: its terms, the speakers it names, the times it is about. Each of `terms_asked` has a
    bit in a mask of 63."""

    terms: QueryTerms
    named: tuple[str, ...]
    same: tuple[str, ...]
    left_out: frozenset[str]
    terms_asked: tuple[str, ...]
    dates: tuple[DateCue, ...]


def _known_of(buckets: Sequence[int]) -> tuple[dict[int, int], set[str]]:
    """How many records each bucket has, and who speaks in them."""
    counts: dict[int, int] = {}
    speakers: set[str] = set()
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, {"buckets": list(buckets)})
        for bucket, records, name in cursor.fetchall():
            if name is None:
                counts[bucket] = records
            else:
                speakers.add(name)
    return counts, speakers


_KNOWN: Final = """
SELECT bucket_id, records, NULL::text AS name FROM recall_bucketcount WHERE bucket_id = ANY(%(buckets)s)
UNION ALL
(SELECT NULL, NULL, name FROM recall_speaker WHERE bucket_id = ANY(%(buckets)s) LIMIT 500)
"""


def _ask(wanted: Wanted, speakers: Collection[str]) -> _Asked:
    named = speakers_named(wanted.query, speakers, asker=wanted.asker, agent=wanted.agent)
    dates = date_cues(wanted.query, asked_on=wanted.asked_at.date())
    terms = query_terms(wanted.query, days=days_of(dates), speakers=named)
    return _Asked(
        terms=terms,
        named=named,
        same=tuple(name for name in speakers if len(named) == 1 and same_name(name, named[0])),
        left_out=frozenset(term for name in named for term in name_terms(name)),
        terms_asked=tuple(dict.fromkeys((*terms.terms, *terms.speakers)))[:62],
        dates=dates,
    )


def _weights(asked: _Asked, frequencies: Frequencies) -> tuple[float, ...]:
    """What each of the terms asked for is worth."""
    weights = term_weights(asked.terms, frequencies, name_terms=asked.left_out)
    return tuple(weights.get(term, 0.0) for term in asked.terms_asked)


# --- what Postgres is asked -------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rows:
    """Records as arrays side by side."""

    id: Ints
    bucket: Ints
    kind: Ints
    source: Ints
    part: Ints
    thread: Ints
    position: Ints
    day: Ints
    size: Ints
    root: Ints
    held: Ints
    marks: Ints
    trust: Floats
    far: Floats
    content: Any
    """The hashes of the records' texts, an array of bytes."""

    def __len__(self) -> int:
        return len(self.id)

    def frequencies(self, terms: Sequence[str]) -> Frequencies:
        """In how many of these records each term is."""
        bits = (self.held[:, None] >> np.arange(len(terms))) & 1
        return Frequencies(
            total=max(1, len(self)), known=dict(zip(terms, bits.sum(axis=0).tolist(), strict=True))
        )


_HASH: Final = 32
_KINDS: Final = tuple(RecordKind)
_ASKING, _TIMING, _SAID, _IN_BOUNDS = 1, 2, 4, 8
_KIND = f"array_position(ARRAY[{', '.join(repr(kind.value) for kind in _KINDS)}], r.kind::text)"
_NUMBERS: Final = {
    "id": "r.id",
    "bucket": "r.bucket_id",
    "kind": _KIND,
    "source": "r.source_id",
    "part": "r.part",
    "thread": f"coalesce(r.thread * {len(_KINDS) + 1} + {_KIND}, -1)",
    "position": "r.position",
    "day": f"coalesce((r.at AT TIME ZONE 'UTC')::date - DATE '1970-01-01', {NO_DAY + 1} - 1)",
    "size": "r.size",
    "root": "coalesce(r.root, -1)",
    "held": "{held}",
    "marks": "{marks}",
}
# As it stands now: without a moment from which it decays, or a half-life, the power is NULL.
_TRUST: Final = (
    "coalesce(r.trust * power(0.5, greatest(0, extract(epoch FROM %(asked_at)s - r.trusted_at)::float8)"
    " / (86400 * %(half_life)s::float8)), r.trust, 'NaN')"
)
_REALS: Final = {"trust": _TRUST, "far": "coalesce({far}, 'NaN')"}
# Numbers travel as bytes, a column at a time: two thousand rows of values took ten times as long to read.
_COLUMNS: Final = ", ".join(
    [f"string_agg(int8send(({what})::bigint), '') AS {name}" for name, what in _NUMBERS.items()]
    + [f"string_agg(float8send(({what})::float8), '') AS {name}" for name, what in _REALS.items()]
    + [f"string_agg(rpad(r.content_hash, {_HASH}), '') AS content"]
)


_ARRAYS: Final = dict.fromkeys(_NUMBERS, ">i8") | dict.fromkeys(_REALS, ">f8")


def _all_rows(counts: Mapping[int, int], wanted: Wanted, asked: _Asked, embedded: Embedded | None) -> _Rows:
    """Every record of a small reach, of the kinds that are wanted: others would only blur what is usual."""
    leg = leg_of(embedded, counts=counts, is_whole=True)
    sql = "SELECT {columns} FROM recall_record r {distances} WHERE r.bucket_id = ANY(%(buckets)s)"
    sql += " AND r.kind = ANY(%(kinds)s)" if wanted.kinds else ""
    sql = sql.format(columns=_COLUMNS.replace("{far}", "d.far"), distances=leg.distances)
    return _read(sql, wanted, asked, leg.given, list(counts))


def _best_rows(
    counts: Mapping[int, int],
    wanted: Wanted,
    asked: _Asked,
    embedded: Embedded | None,
    frequencies: Frequencies,
) -> _Rows:
    """The best records of a larger reach, by words and by vectors, and what stands beside the very best."""
    bound = _bound(wanted)
    leg = leg_of(embedded, counts=counts, kinds=[kind.value for kind in wanted.kinds], bound=_in_time(wanted))
    given = leg.given | {
        "choose": _choice(list(counts), asked, frequencies),
        "most": MOST_CHOSEN,
        "leg": EACH_LEG,
        "near": WITH_NEIGHBOURS,
    }
    points = " + ".join(
        f"(CASE WHEN r.lexemes @@ %(t{n})s::tsquery THEN {weight!r}::float8 ELSE 0 END)"
        for n, weight in enumerate(_weights(asked, frequencies))
        if weight
    )
    sql = _BEST.format(
        columns=_COLUMNS.replace("{far}", "r.far, d.far"),
        bound=f" AND {bound}" if bound else "",
        points=points or "0",
        nearest=leg.nearest,
        distances=leg.distances,
    )
    return _read(sql, wanted, asked, given, list(counts))


_RECORD: Final = (
    "id bucket_id kind source_id part thread position speaker at lexemes size trust trusted_at root"
    " content_hash"
)
# A record is read where it is met, and a distance computed once: what the vectors chose is not looked up again. A
# neighbour of two of the best may come twice.
_BEST: Final = f"""
WITH chosen AS MATERIALIZED (
  SELECT r.id, r.size, {{points}} AS points FROM recall_record r
  WHERE r.lexemes @@ %(choose)s::tsquery{{bound}} LIMIT %(most)s
), worded AS (
  SELECT id, row_number() OVER (ORDER BY points / (1 + {SATURATION}::float8 * (1 - {LENGTH}::float8
    + {LENGTH}::float8 * size / greatest(1, (SELECT avg(size::float8) FROM chosen)))) DESC, id) AS place FROM chosen
), near AS MATERIALIZED (
  SELECT id, far, row_number() OVER (ORDER BY far, id) AS place FROM ({{nearest}}) n
), found AS MATERIALIZED (
  SELECT id, min(place) AS place, min(far) AS far FROM (
    SELECT id, place, NULL::float8 AS far FROM worded WHERE place <= %(leg)s UNION ALL SELECT id, place, far FROM near
  ) legs GROUP BY id
), everything AS (
  SELECT found.far, {", ".join(f"r.{name}" for name in _RECORD.split())}
  FROM found JOIN recall_record r ON r.id = found.id
  UNION ALL
  SELECT NULL, {", ".join(f"n.{name}" for name in _RECORD.split())}
  FROM found JOIN recall_record f ON f.id = found.id AND found.place <= %(near)s
  JOIN recall_record n ON n.kind = f.kind AND n.thread = f.thread AND n.bucket_id = f.bucket_id
    AND n.position BETWEEN f.position - 2 AND f.position + 2
  WHERE n.id NOT IN (SELECT id FROM found)
)
SELECT {{columns}} FROM everything r {{distances}}
"""


def _read(sql: str, wanted: Wanted, asked: _Asked, given: Mapping[str, Any], buckets: Sequence[int]) -> _Rows:
    terms = asked.terms_asked
    held = " | ".join(
        f"(CASE WHEN r.lexemes @@ %(t{n})s::tsquery THEN {1 << n}::bigint ELSE 0 END)"
        for n in range(len(terms))
    )
    # Most records hold none of the words: one look tells.
    held = f"CASE WHEN r.lexemes @@ %(any)s::tsquery THEN {held} ELSE 0 END" if held else "0"
    marks = (
        f"CASE WHEN r.lexemes @@ %(asks)s::tsquery THEN {_ASKING} ELSE 0 END"
        f" | CASE WHEN r.lexemes @@ %(timed)s::tsquery THEN {_TIMING} ELSE 0 END"
        f" | CASE WHEN r.speaker = ANY(%(same)s) THEN {_SAID} ELSE 0 END"
        # A neighbour that was only lent an ear must itself be of the kinds and times that are looked for.
        f" | CASE WHEN {_bound(wanted) or 'true'} THEN {_IN_BOUNDS} ELSE 0 END"
    )
    everything = {
        "buckets": buckets,
        "kinds": [kind.value for kind in wanted.kinds],
        "since": wanted.since,
        "until": wanted.until,
        "asked_at": wanted.asked_at,
        "half_life": wanted.trust_half_life_days,
        "asks": _quoted(ASKS),
        "timed": _quoted(TIMED),
        "same": list(asked.same),
        "any": " | ".join(map(_quoted, terms)),
        **{f"t{n}": _quoted(term) for n, term in enumerate(terms)},
        **given,
    }
    with connection.cursor() as cursor:
        cursor.execute(sql.replace("{held}", held).replace("{marks}", marks), everything)
        row = cursor.fetchone()
    arrays: dict[str, Any] = {
        name: np.frombuffer(value or b"", dtype=kind).astype(kind[1:])
        for (name, kind), value in zip(_ARRAYS.items(), row[:-1], strict=True)
    }
    arrays["content"] = np.frombuffer((row[-1] or "").encode(), dtype=f"S{_HASH}")
    _, first = np.unique(arrays["id"], return_index=True)
    return _Rows(**{name: values[first] for name, values in arrays.items()})


def _bound(wanted: Wanted) -> str:
    """The condition on records that is wanted, empty for none."""
    parts = ["r.kind = ANY(%(kinds)s)"] if wanted.kinds else []
    return " AND ".join(parts + ([in_time] if (in_time := _in_time(wanted)) else []))


def _in_time(wanted: Wanted) -> str:
    parts = ["r.at >= %(since)s"] if wanted.since else []
    return " AND ".join(parts + (["r.at < %(until)s"] if wanted.until else []))


def _choice(buckets: Sequence[int], asked: _Asked, frequencies: Frequencies) -> str:
    """The words that choose: the rare ones of the question, within these buckets."""
    terms = [term for term in asked.terms.terms if term not in asked.left_out] or [*asked.terms.terms]
    rare = rare_terms(terms, frequencies)
    where = " | ".join(_quoted(bucket_lexeme(bucket)) for bucket in buckets)
    return f"({where}) & ({' | '.join(_quoted(term) for term in rare)})" if rare else f"({where})"


def _quoted(lexeme: str) -> str:
    """A lexeme as tsquery reads it literally."""
    escaped = lexeme.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"


def _statistics(buckets: Sequence[int], terms: Sequence[str]) -> Frequencies:
    """How common lexemes are, in millionths, from what Postgres knows for nothing; counted where it does not yet."""
    known = _known(int(time.monotonic() // STATISTICS_S))
    if known is None:
        _known.cache_clear()
        return _counted(buckets, terms)
    return known


@functools.lru_cache(maxsize=1)
def _known(_minute: int) -> Frequencies | None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT most_common_elems::text::text[], most_common_elem_freqs FROM pg_stats"
            " WHERE schemaname = 'public' AND tablename = 'recall_record' AND attname = 'lexemes'"
        )
        row = cursor.fetchone()
    if row is None or row[0] is None:
        return None
    known = {term: round(share * 1_000_000) for term, share in zip(row[0], row[1], strict=False)}
    # What is not among the commonest is rarer than any of them.
    return Frequencies(total=1_000_000, known=known, unknown=max(1, min(known.values(), default=2) // 2))


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


# --- from rows to a ranking -------------------------------------------------------------------------------


def _ranked(rows: _Rows, wanted: Wanted, asked: _Asked, weights: Sequence[float]) -> list[Found]:
    if not len(rows):
        return []
    words = weighed(rows.held, weights)
    lexical = score(words, size=rows.size)
    candidates = Candidates(
        id=rows.id,
        thread=rows.thread,
        position=rows.position,
        dense=1 - rows.far,
        lexical=lexical,
        held=rows.held,
        asks=(rows.marks & _ASKING) > 0,
        timed=(rows.marks & _TIMING) > 0,
        said=(rows.marks & _SAID) > 0,
        day=rows.day,
        size=rows.size,
        trust=rows.trust,
        root=rows.root,
        content=np.unique(rows.content, return_inverse=True)[1],
    )
    question = Question(
        weights=tuple(
            0.0 if term.startswith("s:") else weight
            for term, weight in zip(asked.terms_asked, weights, strict=True)
        ),
        dates=asked.dates,
        names_speaker=len(asked.named) == 1,
        asks_when=asks_when(wanted.query),
        asked_on=wanted.asked_at.date(),
    )
    showable = _is_heard(rows, words) & ((rows.marks & _IN_BOUNDS) > 0)
    ranked = rank(question, candidates, limit=wanted.limit, showable=showable)
    return [_found(rows, one.index, one.score, one.why) for one in ranked]


def _is_heard(rows: _Rows, words: Floats) -> Bools:
    """Records that share a word with the question, stand within two of one that does, or were compared by vector.

    In a small reach all records are candidates; what has nothing to do with the question is no answer to it.
    """
    shares = words > 0
    heard = ~np.isnan(rows.far) | shares
    if heard.all():
        return np.asarray(heard)
    places = set(zip(rows.thread[shares].tolist(), rows.position[shares].tolist(), strict=True))
    near = {(thread, position + step) for thread, position in places if thread >= 0 for step in range(-2, 3)}
    for index in np.flatnonzero(~heard).tolist():
        heard[index] = (int(rows.thread[index]), int(rows.position[index])) in near
    return np.asarray(heard)


def _found(rows: _Rows, index: int, points: float, why: dict[str, float]) -> Found:
    return Found(
        record_id=int(rows.id[index]),
        bucket_id=int(rows.bucket[index]),
        kind=_KINDS[int(rows.kind[index]) - 1],
        source_id=int(rows.source[index]),
        part=int(rows.part[index]),
        content_hash=rows.content[index].decode().strip(),
        score=points,
        why=why,
    )
