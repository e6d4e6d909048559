"""Upkeep of the memory app: turns that a dead process left open, summaries that have run out."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from memory.models import ContextSummary, Turn
from workspaces.tenancy import Door, door

ABANDONED: Final = timedelta(minutes=15)
"""After this a turn that was never closed is taken for interrupted: longer than any model is waited for."""


def close_abandoned(now: datetime) -> None:
    """Closes turns whose process died, and removes summaries that no longer hold."""
    with door(Door.MAINTENANCE):
        Turn.unscoped.filter(status=Turn.Status.STARTED, started_at__lt=now - ABANDONED).update(
            status=Turn.Status.INTERRUPTED, finished_at=now, error="the process ended"
        )
        ContextSummary.unscoped.filter(expires_at__lt=now).delete()
