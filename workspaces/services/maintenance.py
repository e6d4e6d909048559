"""Upkeep: retention, and the keys of requests long answered. Other apps join with what is theirs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.utils import timezone

from workspaces.models import AuditEvent, IdempotencyKey, ModelUsage, Workspace
from workspaces.services.idempotency import KEPT
from workspaces.settings import effective
from workspaces.tenancy import Door, door

log = structlog.get_logger(__name__)

FORGET_HEARTBEATS: Final = timedelta(hours=1)

_JOINED: list[Callable[[datetime], None]] = []
_RETAINED: dict[type[Any], str] = {AuditEvent: "audit-days", ModelUsage: "usage-days"}


def join_retention(model: type[Any], key: str) -> None:
    """Adds a table of another app, which has `at`; `mate.memory.retention.<key>` says how many days it keeps."""
    _RETAINED[model] = key


def join_maintenance(work: Callable[[datetime], None]) -> None:
    """Adds upkeep of another app; it opens its own door and takes the time."""
    _JOINED.append(work)


def maintain(*, now: datetime | None = None) -> None:
    """Removes what its workspace's retention says has had its time. Safe to run twice at once."""
    now = now or timezone.now()
    with door(Door.MAINTENANCE):
        IdempotencyKey.unscoped.filter(created_at__lt=now - KEPT).delete()
        for workspace_id in Workspace.unscoped.values_list("pk", flat=True):
            settings = effective(workspace_id)
            for model, key in _RETAINED.items():
                kept = timedelta(days=settings.count(f"mate.memory.retention.{key}"))
                model.unscoped.filter(workspace_id=workspace_id, at__lt=now - kept).delete()
    for work in _JOINED:
        work(now)
    log.info("maintenance.done")
