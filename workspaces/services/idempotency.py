"""A repeated request gets the first answer: `Idempotency-Key`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from workspaces.crypto import seal, unseal
from workspaces.errors import BadInput, Conflict, Unprocessable
from workspaces.models import IdempotencyKey
from workspaces.tenancy import workspace

KEPT: Final = timedelta(hours=24)
"""How long an answer is kept for its key."""
ABANDONED: Final = timedelta(minutes=15)
"""After this a request that never answered is taken for dead, and may be sent again."""


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """What the first request with this key was answered."""

    status: int
    body: Any


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to be the first request with this key."""

    row_id: int
    workspace_id: int
    key: str


def claim_key(
    workspace_id: int, *, caller: str, key: str, request: bytes, now: datetime
) -> Claim | FirstAnswer:
    """Either the first answer, or the right to give it. Its own transaction.

    Raises `Conflict` while the first request still runs, `Unprocessable` when it asked something else.
    """
    if not 1 <= len(key) <= 255 or not key.isprintable():
        raise BadInput("bad_idempotency_key", "Idempotency-Key must have 1 to 255 printable characters.")
    digest = hashlib.sha256(request).hexdigest()
    with workspace(workspace_id):
        with connection.cursor() as cursor:
            cursor.execute(_INSERT, [workspace_id, caller, key, digest, now])
            made = cursor.fetchone()
        if made is not None:
            return Claim(made[0], workspace_id, key)
        row = (
            IdempotencyKey.objects.of_workspace(workspace_id).select_for_update().get(caller=caller, key=key)
        )
        is_abandoned = row.status is None and row.created_at < now - ABANDONED
        if row.created_at < now - KEPT or (is_abandoned and row.request_sha256 != digest):
            # Another row, so that nothing the first request stored passes for this one's.
            row.delete()
            with connection.cursor() as cursor:
                cursor.execute(_INSERT, [workspace_id, caller, key, digest, now])
                return Claim(cursor.fetchone()[0], workspace_id, key)
        if is_abandoned:
            # The same row: what the dead one stored is recognised by it.
            row.created_at = now
            row.save(update_fields=["created_at"])
            return Claim(row.pk, workspace_id, key)
    if row.request_sha256 != digest:
        raise Unprocessable(
            "idempotency_key_reused", f"Idempotency-Key {key!r} was used for another request."
        )
    if row.status is None:
        raise Conflict("request_in_progress", f"The first request with Idempotency-Key {key!r} still runs.")
    return FirstAnswer(row.status, unseal(row.body))


_INSERT: Final = """
INSERT INTO workspaces_idempotencykey (workspace_id, caller, key, request_sha256, body, created_at)
VALUES (%s, %s, %s, %s, '', %s) ON CONFLICT (workspace_id, caller, key) DO NOTHING RETURNING id
"""


def keep_answer(claim: Claim, *, status: int, body: Any) -> None:
    """Keeps the answer for who repeats the request. Its own transaction."""
    with workspace(claim.workspace_id):
        IdempotencyKey.objects.of_workspace(claim.workspace_id).filter(pk=claim.row_id).update(
            status=status, body=seal(body)
        )


def release_key(claim: Claim) -> None:
    """Gives the key back after a failure that a repetition may cure; an answer that was kept stays.

    Its own transaction. The row stays, since something may have been stored under it.
    """
    with workspace(claim.workspace_id):
        IdempotencyKey.objects.of_workspace(claim.workspace_id).filter(pk=claim.row_id, status=None).update(
            created_at=timezone.now() - 2 * ABANDONED
        )


def is_expired(created_at: datetime, *, now: datetime | None = None) -> bool:
    """Whether maintenance may remove a key."""
    return created_at < (now or timezone.now()) - KEPT
