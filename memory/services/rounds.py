"""Rounds of structured consolidation: whose entries have their turn, and what came of it.

Each night, and when asked: a run for an agent's shared bucket and for the next owners in a fair rotation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import Count
from django.utils import timezone

from memory.models import Entry
from workspaces import outbox
from workspaces.models import Bucket, OutboxMessage, Run, Schedule
from workspaces.outbox import Delivery
from workspaces.services.schedules import Job
from workspaces.settings import Effective, effective
from workspaces.tenancy import tenant, workspace
from workspaces.types import BucketRef, Reach, RunStatus

_M: Final = "mate.memory.structured-consolidation-"
KIND: Final = "structured-consolidation"
TOPIC: Final = "memory.consolidate"
JOB: Final = Job(KIND, TOPIC, cron_key=_M + "cron", enabled_key=_M + "enabled")
TYPES: Final = ("user", "feedback")
"""The types that are part of every prompt, and so the ones whose number matters."""
LOOKED_AT: Final = 500
"""Owners whose entries are counted at a time, on the way to the next ones with enough of them."""
_ACTIVE: Final = (RunStatus.QUEUED.value, RunStatus.RUNNING.value)


def least_entries(settings: Effective) -> int:
    """Entries of a type below which it is left alone; one has nothing to be merged with."""
    return max(settings.count(_M + "min-entries"), 2)


@dataclass(frozen=True, slots=True)
class Round:
    """The shared bucket's run, and those of the owners whose turn it was. `deferred`: more owners have their turn
    in the next round."""

    shared: Run
    owners: tuple[BucketRef, ...]
    deferred: bool


def queue_consolidation(
    bucket: BucketRef, *, trigger: str, actor: str, night: date | None = None, subject: str = ""
) -> Run:
    """A run for one bucket, or the one that is active there, or the night's. Inside `tenant(…)`."""
    now = timezone.now()
    run = Run(
        workspace_id=bucket.workspace_id,
        bucket_id=bucket.id,
        kind=KIND,
        trigger=trigger,
        actor=actor,
        night=night,
        subject=subject,
        created_at=now,
    )
    try:
        with transaction.atomic():
            run.save(force_insert=True)
    except IntegrityError:
        rows = Run.objects.of(bucket).filter(kind=KIND)
        there: Run | None = (
            rows.filter(status__in=_ACTIVE).first()
            or rows.filter(**({"night": night} if night else {})).order_by("-pk").first()
        )
        if there is None:
            raise
        return there
    outbox.emit(bucket, TOPIC, key=f"run:{run.pk}", payload={"run": run.pk})
    return run


def queue_round(
    team: BucketRef, *, trigger: str, actor: str, night: date | None = None, delivery: Delivery | None = None
) -> Round | None:
    """Runs for an agent's shared bucket and the next owners that have enough entries, at most
    `…-max-owners-per-run` of them (0: all), beginning where the last round ended.

    Opens its own transaction, and holds the schedule's row: rounds go one after the other. With a `delivery` a
    round is made once for its message, else None.
    """
    with workspace(team.workspace_id):
        settings = effective(team.workspace_id, team.agent_id)
        schedule = (
            Schedule.objects.of_workspace(team.workspace_id)
            .select_for_update(no_key=True)
            .get_or_create(agent_id=team.agent_id, job=KIND, defaults={"workspace_id": team.workspace_id})[0]
        )
        with tenant(team):
            if delivery is not None and _is_made(delivery):
                return None
            shared = queue_consolidation(team, trigger=trigger, actor=actor, night=night)
            if delivery is not None:
                delivery.note(made=shared.pk)
        chosen, deferred = _next_owners(team, settings, after=schedule.cursor)
        for owner in sorted(chosen, key=lambda one: one.id):
            with tenant(owner):
                queue_consolidation(
                    owner, trigger=trigger, actor=actor, night=night, subject=f"run:{shared.pk}"
                )
        if chosen:
            schedule.cursor = chosen[-1].id
            schedule.save(update_fields=["cursor"])
    return Round(shared, tuple(chosen), deferred)


def _is_made(delivery: Delivery) -> bool:
    """Whether an earlier delivery of the message, that ended before its time, has made the round."""
    payloads = OutboxMessage.unscoped.filter(pk=delivery.message_id).values_list("payload", flat=True)
    payload = payloads.first()
    return payload is None or "made" in payload


def _next_owners(team: BucketRef, settings: Effective, *, after: int) -> tuple[list[BucketRef], bool]:
    """The owners' buckets whose turn it is, in turn, and whether there are more. Once around at most."""
    most = settings.count(_M + "max-owners-per-run")
    least = least_entries(settings)
    chosen: list[BucketRef] = []
    for low, high in ((after, None), (0, after)):
        at = low
        while True:
            page = _owners(team, above=at, upto=high)
            for bucket in _with_enough(team, page, least=least):
                if most and len(chosen) == most:
                    return chosen, True
                chosen.append(bucket)
            if len(page) < LOOKED_AT:
                break
            at = page[-1].id
    return chosen, False


def _owners(team: BucketRef, *, above: int, upto: int | None) -> list[BucketRef]:
    rows = Bucket.objects.of_workspace(team.workspace_id).filter(
        agent_id=team.agent_id, owner__isnull=False, pk__gt=above
    )
    if upto is not None:
        rows = rows.filter(pk__lte=upto)
    return [row.ref() for row in rows.select_related("owner").order_by("pk")[:LOOKED_AT]]


def _with_enough(team: BucketRef, page: Sequence[BucketRef], *, least: int) -> list[BucketRef]:
    if not page:
        return []
    reach = Reach(team.workspace_id, tuple(one.id for one in page))
    with tenant(reach):
        counted = (
            Entry.objects.within(reach)
            .filter(type__in=TYPES, deleted_at=None)
            .values("bucket_id", "type")
            .annotate(n=Count("pk"))
            .filter(n__gte=least)
        )
        enough = {row["bucket_id"] for row in counted}
    return [one for one in page if one.id in enough]


# --- what came of it ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Outcome:
    """What runs have done so far. `owners` counts owners' buckets that were worked, `pending` runs under way."""

    owners: int
    updated: int
    before: int
    after: int
    pending: int
    failed: int


def outcome_of(runs: Sequence[Run], *, shared_bucket: int) -> Outcome:
    """Those runs together."""
    told = [told_of(run, kind) for run in runs for kind in TYPES]
    worked = (RunStatus.STORED.value, RunStatus.NOTHING.value)
    return Outcome(
        owners=sum(1 for run in runs if run.bucket_id != shared_bucket and run.status in worked),
        updated=sum(one["updated"] for one in told),
        before=sum(one["before"] for one in told),
        after=sum(one["after"] for one in told),
        pending=sum(1 for run in runs if run.status in _ACTIVE),
        failed=sum(1 for run in runs if run.status == RunStatus.FAILED.value),
    )


def told_of(run: Run, kind: str) -> dict[str, Any]:
    """How far the run got with that type."""
    fresh: dict[str, Any] = {
        "upto": "",
        "isDone": False,
        "before": 0,
        "after": 0,
        "updated": 0,
        "notes": [],
        "why": "",
    }
    return fresh | dict(run.result.get(kind, {}))
