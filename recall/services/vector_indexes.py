"""Indexes of vectors: one for each bucket that is too large to compare exactly, built while all goes on.

They are no part of the migrations: which buckets grow large is known only in life, and building takes minutes. Their
names tell what they are for, so that nothing else needs to remember it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import connections

from recall.models import BucketCount
from recall.services.dense import LARGE, MOST_DIMENSIONS

LINKS: Final = 24
EFFORT: Final = 200
"""m and ef_construction. Measured: pgvector's defaults stay at .94 of the exact ten, these reach .995 to 1.000."""
_LOCK: Final = 0x6D61746507
_NAME: Final = re.compile(r"vector_near_(\d+)_([0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Wanted:
    """An index that should be there: of a bucket's vectors by one embedder, all of one size."""

    bucket: int
    embedder: str
    dimensions: int
    records: int

    @property
    def name(self) -> str:
        """What it is called in Postgres."""
        digest = hashlib.sha256(f"{self.embedder}\n{self.dimensions}".encode()).hexdigest()[:12]
        return f"vector_near_{self.bucket}_{digest}"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the building of an index is: `done` of `total` blocks and rows, 0 of 0 before it begins."""

    phase: str
    done: int
    total: int


class BusyError(Exception):
    """Somebody else is building indexes."""


def update(
    *, using: str, tell: Callable[[str, Wanted | None], None] = lambda *_: None
) -> tuple[list[Wanted], list[str]]:
    """Builds what is missing, concurrently, and drops what is not needed any more or was left half built.

    `using` is the connection of the role that owns the tables, in no transaction. Gives what was built and the names
    of what was dropped; raises `BusyError` while another process does the same. `tell` hears each step before it
    begins: "drop" or "build" with the index.
    """
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        if not cursor.fetchone()[0]:
            raise BusyError("Vector indexes are being built by another process.")
        try:
            wanted = {one.name: one for one in _wanted(using)}
            there = _there(using)
            dropped = [name for name, is_valid in there.items() if name not in wanted or not is_valid]
            for name in dropped:
                tell("drop", wanted.get(name))
                cursor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            # The statements' time limit is for requests; a graph of a million takes a while.
            cursor.execute("SET statement_timeout = 0")
            missing = [one for name, one in wanted.items() if name not in there or name in dropped]
            for one in missing:
                tell("build", one)
                cursor.execute(_sql(one), [one.embedder])
        finally:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    return missing, dropped


def progress(*, using: str) -> Progress:
    """How far a build is that goes on now; asked through another connection than that of `update`."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT p.phase, greatest(p.tuples_done, p.blocks_done), greatest(p.tuples_total, p.blocks_total)"
            " FROM pg_stat_progress_create_index p JOIN pg_class c ON c.oid = p.relid"
            " WHERE c.relname = 'recall_vector' LIMIT 1"
        )
        row = cursor.fetchone()
    return Progress(*row) if row else Progress("", 0, 0)


def _wanted(using: str) -> list[Wanted]:
    large = dict(
        BucketCount.objects.using(using).filter(records__gte=LARGE).values_list("bucket_id", "records")
    )
    found = []
    with connections[using].cursor() as cursor:
        for bucket, records in sorted(large.items()):
            cursor.execute(
                "SELECT embedder, vector_dims(value) FROM recall_vector"
                " WHERE bucket_id = %s AND value IS NOT NULL GROUP BY 1, 2 HAVING count(*) >= %s",
                [bucket, LARGE // 2],
            )
            found += [
                Wanted(bucket, embedder, dimensions, records)
                for embedder, dimensions in cursor.fetchall()
                if dimensions <= MOST_DIMENSIONS
            ]
    return found


def _there(using: str) -> dict[str, bool]:
    """The indexes there are, and whether each is whole: one whose building was broken off is not."""
    with connections[using].cursor() as cursor:
        cursor.execute(
            "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
            " WHERE i.indrelid = 'recall_vector'::regclass"
        )
        return {name: is_valid for name, is_valid in cursor.fetchall() if _NAME.fullmatch(name)}


def _sql(one: Wanted) -> str:
    return (
        f"CREATE INDEX CONCURRENTLY {one.name} ON recall_vector"
        f" USING hnsw ((value::halfvec({one.dimensions:d})) halfvec_cosine_ops)"
        f" WITH (m = {LINKS}, ef_construction = {EFFORT})"
        f" WHERE bucket_id = {one.bucket:d} AND embedder = %s AND vector_dims(value) = {one.dimensions:d}"
    )
