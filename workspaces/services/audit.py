"""The audit trail: who did what, to what, from where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils import timezone

from workspaces.models import AuditEvent


def record_audit(
    workspace_id: int,
    *,
    actor: str,
    action: str,
    target: str = "",
    address: str = "",
    detail: Mapping[str, Any] | None = None,
) -> None:
    """Appends one event in the caller's transaction, so that act and trace commit together."""
    AuditEvent.objects.create(
        workspace_id=workspace_id,
        at=timezone.now(),
        actor=actor[:200],
        action=action,
        target=target[:400],
        address=address[:64],
        detail=dict(detail or {}),
    )
