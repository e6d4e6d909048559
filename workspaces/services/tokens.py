"""Personal access tokens: made once, shown once, revocable at once."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Final

from django.utils import timezone

from workspaces.errors import BadInput, Forbidden, NotFound
from workspaces.models import Agent, PersonalAccessToken
from workspaces.services.audit import record_audit
from workspaces.types import Grant

PREFIX: Final = "mm_"
_SHOWN: Final = 10
"""Characters of a token that are kept for display."""


def issue_token(
    workspace_id: int,
    *,
    user_id: int,
    name: str,
    grants: Iterable[str],
    agent_ids: Iterable[int] | None = None,
    namespace: str = "",
    expires_at: datetime | None = None,
    within: Collection[Grant] = tuple(Grant),
    actor: str,
    address: str = "",
) -> tuple[PersonalAccessToken, str]:
    """A new token and its secret (`mm_` + 43 characters), which is nowhere kept. Inside `workspace(…)`.

    Raises `BadInput` for an unknown grant, an agent of another workspace, an expiry in the past; `Forbidden`
    for a grant that is not `within` what the one who makes it has.
    """
    if not name.strip():
        raise BadInput("bad_name", "A token needs a name.", field="name")
    checked = _check_grants(grants)
    if above := [grant for grant in checked if grant not in within]:
        raise Forbidden("grant_needed", f"You have not the grant {above[0]!r} yourself.")
    _check_namespace(namespace)
    now = timezone.now()
    if expires_at is not None and expires_at <= now:
        raise BadInput("bad_expiry", f"The expiry {expires_at.isoformat()} has passed.", field="expiresAt")
    wanted = None if agent_ids is None else sorted(set(agent_ids))
    if wanted is not None:
        known = set(
            Agent.objects.of_workspace(workspace_id).filter(pk__in=wanted).values_list("pk", flat=True)
        )
        if missing := set(wanted) - known:
            raise BadInput(
                "agent_not_found", f"There is no agent {min(missing)} in this workspace.", field="agents"
            )
    secret = PREFIX + secrets.token_urlsafe(32)
    token: PersonalAccessToken = PersonalAccessToken.objects.create(
        workspace_id=workspace_id,
        user_id=user_id,
        name=name.strip(),
        prefix=secret[:_SHOWN],
        sha256=hashlib.sha256(secret.encode()).hexdigest(),
        grants=checked,
        agent_ids=wanted,
        namespace=namespace,
        expires_at=expires_at,
        created_at=now,
    )
    record_audit(
        workspace_id,
        actor=actor,
        action="token.issued",
        target=f"token:{token.pk}",
        address=address,
        detail={"name": token.name, "grants": checked},
    )
    return token, secret


def revoke_token(
    workspace_id: int, token_id: int, *, actor: str, user_id: int | None = None, address: str = ""
) -> None:
    """Ends a token at once; `user_id` limits it to that user's own. Raises `NotFound`. Twice is no error."""
    rows = PersonalAccessToken.objects.of_workspace(workspace_id).filter(pk=token_id)
    if user_id is not None:
        rows = rows.filter(user_id=user_id)
    if not rows.exists():
        raise NotFound("token_not_found", f"There is no token {token_id}.")
    if rows.filter(revoked_at=None).update(revoked_at=timezone.now()):
        record_audit(
            workspace_id, actor=actor, action="token.revoked", target=f"token:{token_id}", address=address
        )


def _check_grants(grants: Iterable[str]) -> list[str]:
    known = {grant.value for grant in Grant}
    wanted = set(grants)
    if unknown := wanted - known:
        raise BadInput(
            "bad_grant",
            f"{min(unknown)!r} is no grant; there are {', '.join(sorted(known))}.",
            field="grants",
        )
    if not wanted:
        raise BadInput("bad_grant", "A token needs at least one grant.", field="grants")
    return [grant.value for grant in Grant if grant.value in wanted]


def _check_namespace(namespace: str) -> None:
    if (
        len(namespace) > 64
        or "/" in namespace
        or not namespace.isprintable()
        or namespace != namespace.strip()
    ):
        raise BadInput(
            "bad_namespace",
            f"The namespace {namespace!r} must be at most 64 printable characters without a slash.",
            field="namespace",
        )
