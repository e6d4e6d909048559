"""Vectors: of a question when it is asked, of records when the embedder has time.

A question that cannot be embedded is searched by words, and the answer says so; a record whose vector is late is
found by its words meanwhile.
"""

from __future__ import annotations

import functools
from typing import Final

import structlog
from django.conf import settings
from django.utils import timezone

from integrations.clients.embed.build import make_embedder
from integrations.clients.embed.embedder import Embedder, cleaned
from integrations.clients.errors import ProviderError
from memory.models import Message
from memory.services.indexing import EMBED, embedded_text
from recall.services.dense import Embedded
from recall.services.index import Waiting, content_hash, put_vectors, without_vector
from recall.types import RecordKind
from workspaces.access import open_for_job
from workspaces.logic.passages import Source, passages_of
from workspaces.models import File
from workspaces.outbox import Delivery
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

log = structlog.get_logger(__name__)

QUESTION_TIMEOUT_S: Final = 1.5
"""A question waits no longer for its vector; words answer then (measured: 18 ms, p95 111 beside a batch)."""
RECORDS_TIMEOUT_S: Final = 90.0
BATCH: Final = 32
"""Records of one delivery: a second or two of the local embedder's time."""

__all__ = ["EMBED", "embed_question", "handle_embedding"]


def embed_question(text: str) -> tuple[Embedded | None, str]:
    """The question's vector, or why there is none. Outside any transaction; waits at most `QUESTION_TIMEOUT_S`."""
    try:
        embedder = _embedder(settings.MATE_EMBEDDER, QUESTION_TIMEOUT_S)
        if embedder is None or not cleaned(text):
            return None, ""
        return Embedded(embedder.name, embedder.embed_query(text)), ""
    except ProviderError as error:
        return None, f"by words only: {error}"


def handle_embedding(delivery: Delivery) -> None:
    """The handler of `recall.embed`: gives some of a bucket's records the vectors that they lack.

    One batch a delivery; the rest comes again at once, behind whatever has waited longer, so that a long import
    keeps nobody's extraction waiting.
    """
    bucket, reach = open_for_job(delivery.bucket_id)
    embedder = _embedder(settings.MATE_EMBEDDER, RECORDS_TIMEOUT_S)
    waiting: list[Waiting] = []
    ready: list[tuple[int, str]] = []
    vectors: list[list[float]] = []
    if embedder is not None:
        with tenant(bucket):
            waiting = without_vector(bucket.id, embedder=embedder.name, limit=BATCH)
            texts = _texts(bucket, waiting)
        ready = [(one.record_id, text) for one, text in zip(waiting, texts, strict=True) if cleaned(text)]
        vectors = embedder.embed_passages([text for _, text in ready]) if ready else []
    # What has no text to embed is found by its words, and asked for no more.
    has_more = len(waiting) == BATCH and len(ready) == BATCH
    closing = delivery.deferring(reach, until=timezone.now()) if has_more else delivery.finishing(reach)
    with closing:
        if embedder is not None:
            pairs = [(pk, vector) for (pk, _), vector in zip(ready, vectors, strict=True)]
            put_vectors(bucket.id, embedder=embedder.name, vectors=pairs)


def _texts(bucket: BucketRef, waiting: list[Waiting]) -> list[str]:
    """What each record says now, empty where its source has changed meanwhile. Inside `tenant(…)`."""
    by_kind: dict[RecordKind, set[int]] = {}
    for one in waiting:
        by_kind.setdefault(one.kind, set()).add(one.source_id)
    messages = {
        row.pk: row for row in Message.objects.of(bucket).filter(pk__in=by_kind.get(RecordKind.MESSAGE, ()))
    }
    lines: dict[tuple[int, str], str] = {}
    for file in File.objects.of(bucket).filter(pk__in=by_kind.get(RecordKind.FILE, ())):
        for passage in passages_of(Source(file.pk, file.name, "", file.content)):
            lines[file.pk, content_hash(passage.searched)] = passage.searched
    texts = []
    for one in waiting:
        if one.kind is RecordKind.MESSAGE:
            message = messages.get(one.source_id)
            texts.append(embedded_text(message.content, one.speaker, message.at) if message else "")
        else:
            texts.append(lines.get((one.source_id, one.content_hash), ""))
    return texts


@functools.lru_cache(maxsize=8)
def _embedder(name: str, timeout_s: float) -> Embedder | None:
    return make_embedder(
        name, data_dir=settings.DATA_DIR, openai_base_url=settings.OPENAI_BASE_URL, timeout_s=timeout_s
    )
