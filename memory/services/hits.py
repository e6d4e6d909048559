"""Keeping count of what was recalled: dreams promote what is needed again and again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime

from memory.models import RecallHit
from memory.types import RecallItem
from recall.logic.folding import folded
from workspaces.types import BucketRef


def record_hits(
    own: BucketRef,
    items: Sequence[RecallItem],
    *,
    query: str,
    source: RecallHit.HitSource,
    now: datetime,
    turn_id: int | None = None,
) -> None:
    """Counts the items as recalled for this question, in one insert. Inside the caller's `tenant(…)`."""
    if not items:
        return
    digest = hashlib.sha256(" ".join(folded(query).split()).encode()).hexdigest()[:32]
    RecallHit.objects.insert(
        RecallHit(
            workspace_id=own.workspace_id,
            bucket_id=own.id,
            at=now,
            source=source,
            query_hash=digest,
            turn_id=turn_id,
            item=item.id[:200],
            kind=item.kind[:64],
            source_id=item.record_source,
            content_hash=item.content_hash,
            rank=rank,
            score=item.score,
        )
        for rank, item in enumerate(items)
    )
