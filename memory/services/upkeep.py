"""Upkeep of the memory app: turns that a dead process left open, summaries that have run out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from memory.models import ContextSummary, Turn
from memory.services.turns import EXTRACT
from workspaces import outbox
from workspaces.access import open_for_job
from workspaces.tenancy import Door, door, tenant

ABANDONED: Final = timedelta(minutes=15)
"""After this a turn that was never closed is taken for interrupted: longer than any model is waited for."""


def close_abandoned(now: datetime) -> None:
    """Closes turns whose process died, announcing what was asked in them, and removes summaries that have run out."""
    with door(Door.MAINTENANCE):
        ContextSummary.unscoped.filter(expires_at__lt=now).delete()
        stale = Turn.unscoped.filter(status=Turn.Status.STARTED, started_at__lt=now - ABANDONED)
        buckets = sorted(set(stale.values_list("bucket_id", flat=True)))
    for bucket_id in buckets:
        bucket, reach = open_for_job(bucket_id)
        with tenant(reach):
            outbox.emit(bucket, EXTRACT, key="backlog")
            Turn.objects.of(bucket).filter(status=Turn.Status.STARTED, started_at__lt=now - ABANDONED).update(
                status=Turn.Status.INTERRUPTED, finished_at=now, error="the process ended"
            )
