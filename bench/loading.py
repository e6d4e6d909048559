"""A corpus put straight into the product's tables by COPY, as the owner of the tables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from functools import cache, lru_cache
from typing import Any, LiteralString

import numpy as np
import psycopg
from psycopg import sql

from bench.synthetic import (
    A_TALK,
    BEGIN,
    DIMENSIONS,
    OWNERS,
    Chunk,
    Corpus,
    Numbers,
    lines,
    owner_name,
)
from recall.logic.lexemes import lexemes_of, size_of

FIRST_ID = 1_000_000_000
"""Ids of loaded rows start here, far above what the product's own counters reach meanwhile."""
CHUNK = 20_000


@dataclass(frozen=True)
class Tenant:
    """Where a corpus was loaded to. `buckets` are those of all owners, then the team's."""

    workspace: int
    agent: int
    agent_name: str
    embedder: str
    buckets: Numbers

    def reach(self, owner: int) -> list[int]:
        """The buckets that an owner's search looks into and that hold anything."""
        return [int(self.buckets[owner]), int(self.buckets[OWNERS])]


def load(owner: psycopg.Connection[Any], agent: int, corpus: Corpus, *, embedder: str) -> Tenant:
    """Owners, buckets, conversations, messages, records and vectors; statistics are gathered at the end."""
    tenant = _tenant(owner, agent, embedder)
    _owners(owner, tenant)
    _talks(owner, tenant, corpus)
    with _without_index(owner, "record_words"):
        for number in range(-(-corpus.records // CHUNK)):
            chunk = corpus.chunk(number, CHUNK)
            _messages(owner, tenant, chunk, corpus)
            _records(owner, tenant, chunk, corpus)
            _vectors(owner, tenant, chunk)
    _counts(owner, tenant, corpus)
    owner.execute("VACUUM ANALYZE")
    return tenant


def _tenant(owner: psycopg.Connection[Any], agent: int, embedder: str) -> Tenant:
    row = owner.execute("SELECT workspace_id, name FROM workspaces_agent WHERE id = %s", [agent]).fetchone()
    team = owner.execute(
        "SELECT id FROM workspaces_bucket WHERE agent_id = %s AND scope = 'TEAM'", [agent]
    ).fetchone()
    assert row is not None, agent
    assert team is not None, "the first run makes a bucket for the team"
    buckets = np.append(FIRST_ID + np.arange(OWNERS), team[0])
    return Tenant(row[0], agent, row[1], embedder, buckets)


def _owners(owner: psycopg.Connection[Any], tenant: Tenant) -> None:
    ids = [FIRST_ID + number for number in range(OWNERS)]
    _copy(
        owner,
        "COPY workspaces_owner (id, workspace_id, key, name, timezone, created_at) FROM STDIN",
        lines(
            [
                (pk, tenant.workspace, f"api:{owner_name(number)}", "", "", BEGIN)
                for number, pk in enumerate(ids)
            ]
        ),
    )
    _copy(
        owner,
        "COPY workspaces_bucket (id, workspace_id, scope, agent_id, owner_id, created_at) FROM STDIN",
        lines([(pk, tenant.workspace, "PERSONAL", tenant.agent, pk, BEGIN) for pk in ids]),
    )


def _first_talks(corpus: Corpus) -> Numbers:
    """The number of each owner's first conversation."""
    talks = -(-corpus.sizes // A_TALK)
    return np.asarray(np.cumsum(talks) - talks)


def _talks(owner: psycopg.Connection[Any], tenant: Tenant, corpus: Corpus) -> None:
    """Conversations that extraction has worked through."""
    rows = []
    for number, (size, first) in enumerate(zip(corpus.sizes, _first_talks(corpus), strict=True)):
        for talk in range(-(-int(size) // A_TALK)):
            length = min(A_TALK, int(size) - talk * A_TALK)
            seen = FIRST_ID + corpus.records
            rows.append(
                (
                    FIRST_ID + int(first) + talk, tenant.workspace, tenant.buckets[number], f"talk-{talk}",
                    "import", "", seen, length, 0, seen, BEGIN, BEGIN,
                )
            )  # fmt: skip
    _copy(
        owner,
        "COPY memory_conversation (id, workspace_id, bucket_id, external_id, source, title, extracted_upto, length,"
        " skip_told_upto, last_message, created_at, last_at) FROM STDIN",
        lines(rows),
    )


def _messages(owner: psycopg.Connection[Any], tenant: Tenant, chunk: Chunk, corpus: Corpus) -> None:
    firsts = _first_talks(corpus)
    rows = []
    for index, (number, who, place) in enumerate(_each(chunk)):
        is_owner = place % 2 == 0
        rows.append(
            (
                FIRST_ID + number, tenant.workspace, tenant.buckets[who],
                FIRST_ID + int(firsts[who]) + place // A_TALK, "user" if is_owner else "assistant",
                "" if is_owner else tenant.agent_name, is_owner, chunk.texts[index], 20, False,
                chunk.at(index), BEGIN,
            )
        )  # fmt: skip
    _copy(
        owner,
        "COPY memory_message (id, workspace_id, bucket_id, conversation_id, role, speaker, is_owner, content, tokens,"
        " failed, at, created_at) FROM STDIN",
        lines(rows),
    )


def _records(owner: psycopg.Connection[Any], tenant: Tenant, chunk: Chunk, corpus: Corpus) -> None:
    firsts = _first_talks(corpus)
    rows = []
    for index, (number, who, place) in enumerate(_each(chunk)):
        at, text = chunk.at(index), chunk.texts[index]
        speaker = "" if place % 2 == 0 else tenant.agent_name
        found = record_lexemes(text, at.date(), speaker)
        bucket = int(tenant.buckets[who])
        lexemes = " ".join(f"'{lexeme}'" for lexeme in [f"@{bucket}", *found])
        rows.append(
            (
                FIRST_ID + number, bucket, "message", FIRST_ID + number, 0,
                FIRST_ID + int(firsts[who]) + place // A_TALK, place % A_TALK, speaker, at, lexemes,
                size_of(found), None, FIRST_ID + number, hashlib.sha256(text.encode()).hexdigest()[:32],
            )
        )  # fmt: skip
    _copy(
        owner,
        "COPY recall_record (id, bucket_id, kind, source_id, part, thread, position, speaker, at, lexemes, size,"
        " trust, root, content_hash) FROM STDIN",
        lines(rows),
    )


def record_lexemes(text: str, when: date, speaker: str) -> set[str]:
    """What `lexemes_of` finds in a made-up text, each word looked at once only."""
    return {*_framing(when, speaker), *(lexeme for word in text.split() for lexeme in of_word(word))}


@cache
def of_word(word: str) -> tuple[str, ...]:
    return tuple(lexemes_of(word))


@lru_cache(maxsize=4096)
def _framing(when: date, speaker: str) -> tuple[str, ...]:
    return tuple(lexemes_of("", when=when, speaker=speaker or None))


def _vectors(owner: psycopg.Connection[Any], tenant: Tenant, chunk: Chunk) -> None:
    """In COPY's binary form, where every row has the same length: a whole chunk is one array."""
    name = tenant.embedder.encode()
    row = np.dtype(
        [
            ("fields", ">i2"),
            ("id_length", ">i4"), ("id", ">i8"),
            ("record_length", ">i4"), ("record", ">i8"),
            ("bucket_length", ">i4"), ("bucket", ">i8"),
            ("kind_length", ">i4"), ("kind", "S7"),
            ("name_length", ">i4"), ("name", f"S{len(name)}"),
            ("value_length", ">i4"), ("dimensions", ">i2"), ("unused", ">i2"), ("value", ">f2", (DIMENSIONS,)),
        ]
    )  # fmt: skip
    rows = np.zeros(len(chunk.numbers), dtype=row)
    rows["fields"] = 6
    rows["kind_length"], rows["kind"] = 7, b"message"
    rows["id_length"] = rows["record_length"] = rows["bucket_length"] = 8
    rows["id"] = rows["record"] = FIRST_ID + chunk.numbers
    rows["bucket"] = tenant.buckets[chunk.owners]
    rows["name_length"], rows["name"] = len(name), name
    rows["value_length"], rows["dimensions"] = 4 + 2 * DIMENSIONS, DIMENSIONS
    rows["value"] = chunk.vectors
    _copy(
        owner,
        "COPY recall_vector (id, record_id, bucket_id, kind, embedder, value) FROM STDIN (FORMAT BINARY)",
        b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff",
    )


def _counts(owner: psycopg.Connection[Any], tenant: Tenant, corpus: Corpus) -> None:
    for bucket, size in zip(tenant.buckets, corpus.sizes, strict=True):
        owner.execute(
            "INSERT INTO recall_bucketcount (bucket_id, records) VALUES (%s, %s)"
            " ON CONFLICT (bucket_id) DO UPDATE SET records = recall_bucketcount.records + excluded.records",
            [int(bucket), int(size)],
        )
        owner.execute(
            "INSERT INTO recall_speaker (bucket_id, name) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            [int(bucket), tenant.agent_name],
        )


def _each(chunk: Chunk) -> Iterator[tuple[int, int, int]]:
    """Number, owner and place of each record."""
    return zip(chunk.numbers.tolist(), chunk.owners.tolist(), chunk.places.tolist(), strict=True)


def _copy(owner: psycopg.Connection[Any], statement: LiteralString, data: str | bytes) -> None:
    with owner.cursor() as cursor, cursor.copy(statement) as copy:
        copy.write(data)


@contextmanager
def _without_index(owner: psycopg.Connection[Any], name: str) -> Iterator[None]:
    """An index is made faster afterwards than it grows row by row."""
    made = owner.execute("SELECT pg_get_indexdef(%s::regclass)", [name]).fetchone()
    assert made
    owner.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    owner.execute(made[0])
