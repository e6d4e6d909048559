"""Vectors: of a question when it is asked, of records when the embedder has time.

A question that cannot be embedded is searched by words, and the answer says so; a record whose vector is late is
found by its words meanwhile.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

import structlog
from django.conf import settings
from django.utils import timezone

from facts.models import Fact
from integrations.clients.embed.build import make_embedder
from integrations.clients.embed.embedder import Embedder, cleaned
from integrations.clients.errors import ProviderError
from integrations.clients.vectors.base import Item, VectorStore
from integrations.clients.vectors.build import make_store
from integrations.clients.vectors.names import index_name
from memory.models import Entry, Message
from memory.services.indexing import embedded_text, entry_text
from recall.services.dense import EACH_LEG, Embedded
from recall.services.index import (
    Waiting,
    buckets_without_vector,
    content_hash,
    drop_gone,
    gone_by_place,
    put_vectors,
    without_vector,
)
from recall.types import RecordKind
from workspaces.access import open_for_job
from workspaces.logic.passages import Source, passages_of
from workspaces.models import Bucket, File
from workspaces.outbox import Delivery
from workspaces.services.vectors import ask_for_vectors
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

log = structlog.get_logger(__name__)

QUESTION_TIMEOUT_S: Final = 1.5
"""A question waits no longer for its vector; words answer then (measured: 18 ms, p95 111 beside a batch)."""
RECORDS_TIMEOUT_S: Final = 90.0
BATCH: Final = 32
"""Records of one delivery: a second or two of the local embedder's time."""
MOST_BUCKETS: Final = 1000
MOST_GONE: Final = 5000
"""Of one round of upkeep."""
_REFUSALS: Final = frozenset({"bad_request", "context_too_large"})


def embed_question(
    text: str, *, buckets: Sequence[int], kinds: Sequence[str] = ()
) -> tuple[Embedded | None, str]:
    """The question's vector, with what a store of vectors outside Postgres finds near it in these buckets; or why
    there is none. Outside any transaction; waits at most `QUESTION_TIMEOUT_S` for each."""
    try:
        embedder = embedder_named(settings.MATE_EMBEDDER, QUESTION_TIMEOUT_S)
        if embedder is None or not cleaned(text):
            return None, ""
        value = embedder.embed_query(text)
        store = store_of(embedder.name, QUESTION_TIMEOUT_S)
        near = store.query(value, buckets=buckets, kinds=kinds, limit=EACH_LEG) if store else None
    except ProviderError as error:
        return None, f"by words only: {error}"
    found = None if near is None else tuple((one.id, one.similarity) for one in near)
    return Embedded(embedder.name, value, found), ""


def handle_embedding(delivery: Delivery) -> None:
    """The handler of `recall.embed`: gives some of a bucket's records the vectors that they lack.

    One batch a delivery; the rest comes again at once, behind whatever has waited longer, so that a long import
    keeps nobody's extraction waiting.
    """
    bucket, reach = open_for_job(delivery.bucket_id)
    embedder = embedder_named(settings.MATE_EMBEDDER, RECORDS_TIMEOUT_S)
    made = make_vectors(bucket, embedder) if embedder else []
    has_more = len(made) == BATCH
    closing = delivery.deferring(reach, until=timezone.now()) if has_more else delivery.finishing(reach)
    with closing:
        if embedder is not None:
            put_vectors(bucket.id, embedder=embedder.name, vectors=made, store=store_name())


def make_vectors(bucket: BucketRef, embedder: Embedder) -> list[tuple[int, list[float] | None]]:
    """Vectors of up to `BATCH` records of a bucket that lack one; None for one that has nothing to embed, or whose
    text the embedder refuses for good. A store outside Postgres holds them already. Outside any transaction; raises
    `ProviderError` when embedder or store cannot be reached.
    """
    with tenant(bucket):
        waiting = without_vector(bucket.id, embedder=embedder.name, store=store_name(), limit=BATCH)
        texts = _texts(bucket, waiting)
    made: dict[int, list[float] | None] = {one.record_id: None for one in waiting}
    ready = [(one.record_id, text) for one, text in zip(waiting, texts, strict=True) if cleaned(text)]
    made |= _embedded(embedder, ready)
    store = store_of(embedder.name, RECORDS_TIMEOUT_S)
    if store is not None and ready:
        items = [
            Item(one.record_id, bucket.id, one.kind.value, value)
            for one in waiting
            if (value := made[one.record_id]) is not None
        ]
        if items:
            store.ensure(len(items[0].value))
            store.put(items)
    return list(made.items())


def _embedded(embedder: Embedder, texts: Sequence[tuple[int, str]]) -> dict[int, list[float] | None]:
    """A vector for each. A text that is refused for good costs only its own, as long as others are taken: when all
    are refused, it is not the texts."""
    if not texts:
        return {}
    try:
        vectors = embedder.embed_passages([text for _, text in texts])
    except ProviderError as error:
        if error.kind not in _REFUSALS or len(texts) == 1:
            raise
        return _one_by_one(embedder, texts, error)
    return {pk: list(vector) for (pk, _), vector in zip(texts, vectors, strict=True)}


def _one_by_one(
    embedder: Embedder, texts: Sequence[tuple[int, str]], error: ProviderError
) -> dict[int, list[float] | None]:
    made: dict[int, list[float] | None] = {}
    for pk, text in texts:
        try:
            made |= _embedded(embedder, [(pk, text)])
        except ProviderError as refused:
            if refused.kind not in _REFUSALS:
                raise
            made[pk] = None
            log.warning("embedding.refused", record=pk, error=str(refused))
    if all(value is None for value in made.values()):
        raise error
    return made


def ask_for_missing(_: datetime) -> None:
    """Asks for the vectors that buckets lack: after another embedder or store was chosen, or a process died between
    a write and its news. Upkeep; some buckets a time."""
    embedder = embedder_named(settings.MATE_EMBEDDER, RECORDS_TIMEOUT_S)
    if embedder is None:
        return
    for bucket_id in buckets_without_vector(embedder=embedder.name, store=store_name(), limit=MOST_BUCKETS):
        with suppress(Bucket.DoesNotExist):
            bucket, _reach = open_for_job(bucket_id)
            ask_for_vectors(bucket)


def clear_gone(_: datetime) -> None:
    """Takes out of stores outside Postgres what was deleted here. Upkeep; what fails is tried again the next time.

    Until then nothing of it is shown: what a store answers is believed only where Postgres has the record.
    """
    for (embedder, store), rows in gone_by_place(limit=MOST_GONE).items():
        if store == store_name():
            try:
                there = store_of(embedder, RECORDS_TIMEOUT_S)
                if there is not None:
                    there.delete([record for _, record in rows])
            except ProviderError as error:
                log.warning("vectors.not_deleted", store=store, error=str(error))
                continue
        # A store that is not configured any more cannot be asked.
        drop_gone([row for row, _ in rows])


def _texts(bucket: BucketRef, waiting: list[Waiting]) -> list[str]:
    """What each record says now, empty where its source has changed meanwhile. Inside `tenant(…)`."""
    by_kind: dict[RecordKind, set[int]] = {}
    for one in waiting:
        by_kind.setdefault(one.kind, set()).add(one.source_id)
    messages = {
        row.pk: row for row in Message.objects.of(bucket).filter(pk__in=by_kind.get(RecordKind.MESSAGE, ()))
    }
    told: dict[tuple[RecordKind, int, str], str] = {}
    for file in File.objects.of(bucket).filter(pk__in=by_kind.get(RecordKind.FILE, ())):
        for passage in passages_of(Source(file.pk, file.name, "", file.content)):
            told[RecordKind.FILE, file.pk, content_hash(passage.searched)] = passage.searched
    entries = Entry.objects.of(bucket).filter(pk__in=by_kind.get(RecordKind.ENTRY, ()), deleted_at=None)
    for entry in entries:
        told[RecordKind.ENTRY, entry.pk, content_hash(entry_text(entry))] = entry_text(entry)
    facts = Fact.objects.of(bucket).filter(pk__in=by_kind.get(RecordKind.FACT, ()), retired_at=None)
    for pk, statement in facts.values_list("pk", "statement"):
        told[RecordKind.FACT, pk, content_hash(statement)] = statement
    texts = []
    for one in waiting:
        if one.kind is RecordKind.MESSAGE:
            message = messages.get(one.source_id)
            texts.append(embedded_text(message.content, one.speaker, message.at) if message else "")
        else:
            texts.append(told.get((one.kind, one.source_id, one.content_hash), ""))
    return texts


def store_name() -> str:
    """Where vectors are kept: empty for Postgres itself."""
    return "" if settings.MATE_VECTOR_STORE == "pgvector" else str(settings.MATE_VECTOR_STORE)


@functools.lru_cache(maxsize=8)
def embedder_named(name: str, timeout_s: float) -> Embedder | None:
    """The embedder of that name (as in `MATE_EMBEDDER`); None for `none`."""
    return make_embedder(
        name, data_dir=settings.DATA_DIR, openai_base_url=settings.OPENAI_BASE_URL, timeout_s=timeout_s
    )


@functools.lru_cache(maxsize=16)
def store_of(embedder: str, timeout_s: float) -> VectorStore | None:
    """The store outside Postgres for an embedder's vectors; None where Postgres keeps them."""
    return make_store(
        settings.MATE_VECTOR_STORE,
        index=index_name(embedder),
        timeout_s=timeout_s,
        # Only AWS's own domains want their requests signed.
        region=os.environ.get("AWS_REGION") if ".amazonaws.com" in settings.MATE_VECTOR_STORE else None,
        username=settings.OPENSEARCH_USERNAME,
        password=settings.OPENSEARCH_PASSWORD,
    )
