"""Keeping the index current: records follow their source in the transaction that wrote it.

The caller's transaction; no tenant is known here, only bucket ids.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import Exists, OuterRef, QuerySet

from recall.logic.lexemes import lexemes_of, size_of
from recall.models import BucketCount, Gone, Record, Speaker, Vector
from recall.types import RecordKind, Unit


def content_hash(text: str) -> str:
    """What a record's text is recognised by, without keeping it."""
    return hashlib.sha256(" ".join(text.split()).encode()).hexdigest()[:32]


def bucket_lexeme(bucket_id: int) -> str:
    """The lexeme that names a bucket: no word can be it."""
    return f"@{bucket_id}"


def put_units(bucket_id: int, units: Sequence[Unit]) -> None:
    """Adds records; one that is there already (kind, source, part) is replaced, and with another text its vectors go.

    One statement, whatever their number.
    """
    if not units:
        return
    with connection.cursor() as cursor:
        cursor.execute(_PUT, [json.dumps([_row(bucket_id, unit) for unit in units])])
        [fresh] = cursor.fetchone()
    speakers = {unit.speaker for unit in units if unit.speaker}
    Speaker.objects.bulk_create(
        [Speaker(bucket_id=bucket_id, name=name) for name in sorted(speakers)], ignore_conflicts=True
    )
    _count(bucket_id, fresh)


def set_trust(
    kind: RecordKind, source_id: int, part: int, *, trust: float | None, trusted_at: datetime | None = None
) -> int:
    """What a record is trusted from now on (None: nothing is known); how many there were, 0 or 1."""
    rows = Record.objects.filter(kind=kind.value, source_id=source_id, part=part)
    return rows.update(trust=trust, trusted_at=trusted_at)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a record stands: its bucket, and the hash of its text."""

    bucket_id: int
    content_hash: str


def place_of(buckets: Sequence[int], kind: RecordKind, source_id: int, part: int) -> Place | None:
    """The record of that name in these buckets, None where there is none."""
    rows = Record.objects.filter(bucket_id__in=buckets, kind=kind.value, source_id=source_id, part=part)
    found = rows.values_list("bucket_id", "content_hash").first()
    return Place(found[0], found[1].strip()) if found else None


def trust_text(bucket_id: int, kind: RecordKind, source_id: int, content: str, trust: float | None) -> int:
    """As `set_trust`, for the records of a source with that text, wherever in it they stand by now."""
    rows = Record.objects.filter(
        bucket_id=bucket_id, kind=kind.value, source_id=source_id, content_hash=content
    )
    return rows.update(trust=trust, trusted_at=None)


def replace_source(bucket_id: int, kind: RecordKind, source_id: int, units: Sequence[Unit]) -> None:
    """The records of a source become these. One whose text is unchanged keeps its row, and so its vector."""
    rows = Record.objects.filter(kind=kind.value, source_id=source_id)
    old: dict[str, list[Record]] = {}
    for row in rows.defer("lexemes").order_by("part"):
        old.setdefault(row.content_hash, []).append(row)
    fresh: list[Unit] = []
    moved: list[Record] = []
    for unit in units:
        same = old.get(content_hash(unit.text))
        if not same:
            fresh.append(unit)
            continue
        row = same.pop(0)
        if (row.part, row.position) != (unit.part, unit.position):
            row.part, row.position = unit.part, unit.position
            moved.append(row)
    gone = [row.pk for same in old.values() for row in same]
    if gone:
        _count(bucket_id, -Record.objects.filter(pk__in=gone).delete()[1].get("recall.Record", 0))
    if moved:
        # Out of each other's way first: parts are unique.
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE recall_record SET part = -part - 1 WHERE id = ANY(%s)", [[row.pk for row in moved]]
            )
        Record.objects.bulk_update(moved, ["part", "position"])
    put_units(bucket_id, fresh)


def refresh_thread(bucket_id: int, kind: RecordKind, thread: int, units: Sequence[Unit]) -> None:
    """The records of a thread become exactly these, made anew; a vector stays where the text does."""
    put_units(bucket_id, units)
    known = {(unit.source_id, unit.part) for unit in units}
    rows = Record.objects.filter(kind=kind.value, thread=thread, bucket_id=bucket_id)
    gone = [
        pk for pk, source, part in rows.values_list("pk", "source_id", "part") if (source, part) not in known
    ]
    Record.objects.filter(pk__in=gone).delete()


def keep_threads(bucket_id: int, kind: RecordKind, threads: Sequence[int]) -> None:
    """Removes a bucket's records of this kind that belong to no other thread than these."""
    Record.objects.filter(bucket_id=bucket_id, kind=kind.value).exclude(thread__in=threads).delete()


def keep_sources(bucket_id: int, kind: RecordKind, sources: Sequence[int]) -> None:
    """Removes a bucket's records of this kind that stand for no other source than these."""
    Record.objects.filter(bucket_id=bucket_id, kind=kind.value).exclude(source_id__in=sources).delete()


def recount(bucket_id: int) -> int:
    """Sets a bucket's counter, and who speaks in it, by what is there; gives the number of records."""
    rows = Record.objects.filter(bucket_id=bucket_id)
    count = rows.count()
    BucketCount.objects.update_or_create(bucket_id=bucket_id, defaults={"records": count})
    speaking = rows.exclude(speaker="").values("speaker").distinct()
    Speaker.objects.filter(bucket_id=bucket_id).exclude(name__in=speaking).delete()
    return count


def remove_sources(kind: RecordKind, source_ids: Iterable[int]) -> None:
    """Removes all that stands for these sources, vectors included."""
    rows = Record.objects.filter(kind=kind.value, source_id__in=list(source_ids))
    for bucket_id, count in _by_bucket(rows.values_list("bucket_id", flat=True)).items():
        _count(bucket_id, -count)
    rows.delete()


def remove_bucket(bucket_id: int) -> None:
    """Removes all that stands for a bucket."""
    Record.objects.filter(bucket_id=bucket_id).delete()
    Speaker.objects.filter(bucket_id=bucket_id).delete()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM recall_bucketcount WHERE bucket_id = %s", [bucket_id])


@dataclass(frozen=True, slots=True)
class Waiting:
    """A record that has no vector yet, named by its source."""

    record_id: int
    kind: RecordKind
    source_id: int
    part: int
    content_hash: str
    speaker: str


def without_vector(bucket_id: int, *, embedder: str, store: str = "", limit: int) -> list[Waiting]:
    """The first records of a bucket that have no vector by this embedder in this store ("" for here)."""
    rows = (
        _lacking(embedder, store)
        .filter(bucket_id=bucket_id)
        .order_by("pk")
        .values_list("pk", "kind", "source_id", "part", "content_hash", "speaker")[:limit]
    )
    return [
        Waiting(pk, RecordKind(kind), source_id, part, digest, speaker)
        for pk, kind, source_id, part, digest, speaker in rows
    ]


def buckets_without_vector(*, embedder: str, store: str = "", limit: int) -> list[int]:
    """Buckets in which some records have no vector by this embedder in this store."""
    rows = _lacking(embedder, store).values_list("bucket_id", flat=True).distinct()
    return sorted(rows[:limit])


def count_without_vector(*, embedder: str, store: str = "") -> int:
    """How many records have no vector by this embedder in this store."""
    return _lacking(embedder, store).count()


def drop_vectors(embedder: str) -> int:
    """Removes all vectors by an embedder, some thousands at a time; gives how many."""
    count = 0
    while rows := list(Vector.objects.filter(embedder=embedder).values_list("pk", flat=True)[:5000]):
        count += Vector.objects.filter(pk__in=rows).delete()[0]
    return count


def _lacking(embedder: str, store: str) -> QuerySet[Record]:
    there = Vector.objects.filter(record=OuterRef("pk"), embedder=embedder, store__in=[store, Vector.NOWHERE])
    return Record.objects.filter(~Exists(there))


def put_vectors(
    bucket_id: int, *, embedder: str, vectors: Sequence[tuple[int, Sequence[float] | None]], store: str = ""
) -> None:
    """Stores vectors of records; those whose record is gone meanwhile are left out.

    With a `store` that one holds the values, and here stands only that it does. None stands for a record that has
    nothing to embed.
    """
    ids = [pk for pk, _ in vectors]
    known = dict(Record.objects.filter(pk__in=ids).values_list("pk", "kind"))
    # One that lay elsewhere moves.
    Vector.objects.filter(record__in=known, embedder=embedder).exclude(store=store).delete()
    Vector.objects.bulk_create(
        [
            Vector(
                record_id=pk,
                bucket_id=bucket_id,
                kind=known[pk],
                embedder=embedder,
                store=Vector.NOWHERE if value is None else store,
                value=None if value is None or store else list(value),
            )
            for pk, value in vectors
            if pk in known
        ],
        ignore_conflicts=True,
    )
    if store:
        Gone.objects.bulk_create(
            [Gone(record_id=pk, embedder=embedder, store=store) for pk in ids if pk not in known]
        )


def gone_by_place(*, limit: int) -> dict[tuple[str, str], list[tuple[int, int]]]:
    """What was deleted here and may lie in another store: by embedder and store, (row, record) each."""
    rows = list(Gone.objects.order_by("pk").values_list("embedder", "store", "pk", "record_id")[:limit])
    # One that was put there again since is wanted there.
    wanted = set(
        Vector.objects.filter(record__in=[record for *_, record in rows]).values_list(
            "embedder", "store", "record_id"
        )
    )
    Gone.objects.filter(
        pk__in=[pk for embedder, store, pk, record in rows if (embedder, store, record) in wanted]
    ).delete()
    found: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for embedder, store, pk, record in rows:
        if (embedder, store, record) not in wanted:
            found.setdefault((embedder, store), []).append((pk, record))
    return found


def drop_gone(rows: Sequence[int]) -> None:
    """Forgets that these were to be deleted elsewhere: they are."""
    Gone.objects.filter(pk__in=rows).delete()


_PUT = """
WITH given AS (
  SELECT * FROM json_to_recordset(%s::json) AS g(
    bucket_id bigint, kind text, source_id bigint, part int, thread bigint, position int, speaker text,
    at timestamptz, lexemes text[], size int, trust float8, trusted_at timestamptz, root bigint, content_hash text)
), stale AS (
  DELETE FROM recall_vector v USING recall_record r, given g
  WHERE r.kind = g.kind AND r.source_id = g.source_id AND r.part = g.part
    AND r.content_hash <> g.content_hash AND v.record_id = r.id
), put AS (
  INSERT INTO recall_record (bucket_id, kind, source_id, part, thread, position, speaker, at, lexemes, size, trust,
    trusted_at, root, content_hash)
  SELECT bucket_id, kind, source_id, part, thread, position, speaker, at, array_to_tsvector(lexemes), size, trust,
    trusted_at, root, content_hash FROM given
  ON CONFLICT (kind, source_id, part) DO UPDATE SET
    bucket_id = excluded.bucket_id, thread = excluded.thread, position = excluded.position,
    speaker = excluded.speaker, at = excluded.at, lexemes = excluded.lexemes, size = excluded.size,
    trust = excluded.trust, trusted_at = excluded.trusted_at, root = excluded.root, content_hash = excluded.content_hash
  RETURNING xmax = 0 AS is_fresh
)
SELECT count(*) FILTER (WHERE is_fresh) FROM put
"""


def _row(bucket_id: int, unit: Unit) -> dict[str, Any]:
    words = lexemes_of(unit.text, when=unit.at.date() if unit.at else None, speaker=unit.speaker or None)
    return {
        "bucket_id": bucket_id,
        "kind": unit.kind.value,
        "source_id": unit.source_id,
        "part": unit.part,
        "thread": unit.thread,
        "position": unit.position,
        "speaker": unit.speaker[:128],
        "at": unit.at.isoformat() if unit.at else None,
        "lexemes": [bucket_lexeme(bucket_id), *words],
        "size": size_of(words),
        "trust": unit.trust,
        "trusted_at": unit.trusted_at.isoformat() if unit.trusted_at else None,
        "root": unit.root,
        "content_hash": content_hash(unit.text),
    }


def _count(bucket_id: int, change: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO recall_bucketcount (bucket_id, records) VALUES (%s, greatest(%s, 0))"
            " ON CONFLICT (bucket_id) DO UPDATE SET records = greatest(recall_bucketcount.records + %s, 0)",
            [bucket_id, change, change],
        )


def _by_bucket(ids: Iterable[int]) -> dict[int, int]:
    found: dict[int, int] = {}
    for bucket_id in ids:
        found[bucket_id] = found.get(bucket_id, 0) + 1
    return found
