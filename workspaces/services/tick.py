"""The tick: each minute, queues what schedules say is due. Several at once do no harm."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final

import structlog
from django.db.models import Q
from django.utils import timezone

from workspaces import outbox
from workspaces.logic.zones import jitter_of
from workspaces.models import Bucket, Schedule
from workspaces.services.schedules import current_plan, due_for, jobs, move_on
from workspaces.tenancy import Door, door, tenant
from workspaces.types import BucketRef

log = structlog.get_logger(__name__)

BATCH: Final = 200
"""Rows of one transaction: some 2,000 statements, about a second."""
MAX_BATCHES: Final = 20
"""Batches of each kind in one tick; what is left comes a minute later."""


def tick(*, now: datetime | None = None) -> int:
    """Queues what is due, then plans the rows that have to be; returns how many were queued.

    A row that is due is locked, queued and moved on in one transaction, and passed over by any tick beside it: no
    time is queued twice, and of those missed during a downtime the last is queued, once.
    """
    now = now or timezone.now()
    queued = _in_batches(lambda: _queue_due(now))
    _in_batches(lambda: _plan_waiting(now))
    if queued:
        log.info("tick.queued", rows=queued)
    return queued


def _in_batches(work: Callable[[], int]) -> int:
    done = 0
    for _ in range(MAX_BATCHES):
        worked = work()
        done += worked
        if worked < BATCH:
            break
    return done


def _queue_due(now: datetime) -> int:
    with door(Door.OUTBOX):
        rows = _locked(Q(enabled=True, next_due_at__lte=now), order="next_due_at")
        teams = _teams_of(rows)
        for row in rows:
            with tenant(teams[row.agent_id]):
                _queue(row, teams[row.agent_id], now=now)
    return len(rows)


def _queue(row: Schedule, team: BucketRef, *, now: datetime) -> None:
    plan = current_plan(row, now=now)
    due = due_for(row, plan, now=now)
    night = due.astimezone(plan.zone).date().isoformat()
    if plan.is_on and row.agent.enabled:
        outbox.emit(
            team,
            jobs()[row.job].topic,
            key=f"{row.job}:{night}",
            payload={"job": row.job, "night": night, "dueAt": due.isoformat()},
        )
    row.last_due_at, row.next_due_at = due + jitter_of(row.agent_id), None
    move_on(row, plan, now=now)


def _plan_waiting(now: datetime) -> int:
    with door(Door.OUTBOX):
        rows = _locked(Q(planned_by=""), order="pk")
        teams = _teams_of(rows)
        for row in rows:
            with tenant(teams[row.agent_id]):
                move_on(row, current_plan(row, now=now), now=now)
    return len(rows)


def _locked(which: Q, *, order: str) -> list[Schedule]:
    rows = Schedule.unscoped.select_for_update(skip_locked=True, no_key=True, of=("self",))
    return list(rows.select_related("agent").filter(which, job__in=list(jobs())).order_by(order)[:BATCH])


def _teams_of(rows: list[Schedule]) -> dict[int, BucketRef]:
    shared = Bucket.unscoped.select_related("owner").filter(
        agent_id__in={row.agent_id for row in rows}, owner=None
    )
    return {ref.agent_id: ref for ref in (bucket.ref() for bucket in shared) if ref.agent_id is not None}
