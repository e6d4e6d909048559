"""From a request to the facts that its caller may read or change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from facts.models import Fact
from facts.queries import fact_within
from facts.types import Source, SourceKind
from workspaces.access import Opened, Principal, open_personal, open_shared, require
from workspaces.api.file_shapes import PERSONAL, SHARED
from workspaces.errors import Unprocessable
from workspaces.services.audit import record_audit
from workspaces.types import Reach, Role, Scope

HALF_LIFE: Final = "mate.memory.fact.trust-half-life-days"


def open_facts(
    principal: Principal, agent_id: int, given: Mapping[str, Any], *, writes: bool, makes: bool = False
) -> Opened:
    """The agent as the caller meets it; `bucket` narrows it to the shared or the person's own memory.

    Shared memory is written by members only.
    """
    if given.get("bucket") == SHARED:
        return open_shared(principal, agent_id, writes=writes)
    opened = open_personal(principal, agent_id, end_user_id=given.get("endUserId"), writes=makes)
    if given.get("bucket") == PERSONAL:
        opened = replace(opened, bucket=opened.own)
    if writes and opened.bucket is not None and opened.bucket.scope is not Scope.PERSONAL:
        require(principal, role=Role.MEMBER)
    return opened


def reach_of(opened: Opened, given: Mapping[str, Any]) -> Reach:
    """What is read: all within reach, or the one bucket that was named."""
    wanted = {SHARED: opened.agent.team, PERSONAL: opened.own}
    if given.get("bucket") not in wanted:
        return opened.reach
    bucket = wanted[given["bucket"]]
    return replace(opened.reach, buckets=(bucket.id,) if bucket else (), writes=())


def half_life_of(opened: Opened) -> int:
    """Days in which unconfirmed trust halves."""
    return opened.settings.count(HALF_LIFE)


def writable_fact(opened: Opened, fact_id: int) -> Fact:
    """The fact, which must be in the bucket that is written. Inside `tenant(…)`."""
    fact = fact_within(opened.reach, fact_id)
    if opened.bucket is None or fact.bucket_id != opened.bucket.id:
        raise Unprocessable(
            "fact_elsewhere",
            f"Fact {fact_id} is in {fact.bucket.scope} memory; name the bucket that it is in.",
            field="bucket",
        )
    return fact


def said_by(principal: Principal, statement: str, *, now: datetime) -> Source:
    """Who states a fact, as its evidence: one person counts once, however often they say it."""
    is_person = principal.token_id is None
    return Source(
        kind=SourceKind.PERSON if is_person else SourceKind.API,
        root=f"{'person' if is_person else 'api'}:{principal.actor}",
        at=now,
        quote=statement[:2000],
        speaker=principal.actor,
    )


def trace_read(opened: Opened, given: Mapping[str, Any], target: str) -> None:
    """Whoever reads another person's own memory on their behalf leaves a trace."""
    if "endUserId" in given and opened.own is not None:
        trace_fact(opened, "fact.read", f"bucket:{opened.own.id}/{target}")


def trace_fact(opened: Opened, action: str, target: str) -> None:
    """One audit event, in the caller's transaction."""
    record_audit(
        opened.agent.workspace_id,
        actor=opened.principal.actor,
        action=action,
        target=target,
        address=opened.principal.address,
    )
