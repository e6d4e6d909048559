"""Schedules: when each job of each agent is due. `workspaces.services.tick` picks what is.

An app joins a job at start; every agent has a row for each. The row's own cron and zone hold, else the setting's
cron and the workspace's zone. What cannot be read is told in the row's note, and what stands behind it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from django.db import connection

from workspaces.errors import BadInput, NotFound
from workspaces.logic.cron import Cron, last_until, next_after, parse_cron
from workspaces.logic.registry import SETTINGS
from workspaces.logic.zones import check_zone, jitter_of
from workspaces.models import Schedule, Workspace
from workspaces.services.audit import record_audit
from workspaces.settings import Effective, effective
from workspaces.tenancy import Door, door, workspace

FALLBACK_ZONE: Final = "UTC"
CLOCK_SLACK: Final = timedelta(days=1)
"""A last due time further ahead than this was written by a clock that ran wrong, and holds nothing back."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job that agents have on a schedule.

    When it is due, `topic` is emitted into the agent's shared bucket with the payload `{"job", "night", "dueAt"}`:
    `night` is the local day that it is due for (YYYY-MM-DD), `dueAt` the time in UTC. Its handler may be given one
    night twice, and makes one run of it (`Run.night` is unique for a bucket and kind). `cron_key` and `enabled_key`
    are full keys of settings; the second is asked when it is due.
    """

    name: str
    topic: str
    cron_key: str
    enabled_key: str


_JOBS: dict[str, Job] = {}


def join_job(job: Job) -> None:
    """Adds a job; called from an app's `ready()`, once for each name. Agents get their rows at the next start or
    within the hour."""
    if job.name in _JOBS:
        raise ValueError(f"The job {job.name!r} is joined twice.")
    for key, kind in ((job.cron_key, "cron"), (job.enabled_key, "bool")):
        if SETTINGS[key].kind != kind:
            raise ValueError(f"{key} is no setting of the kind {kind}.")
    _JOBS[job.name] = job


def jobs() -> Mapping[str, Job]:
    """All jobs, by name."""
    return dict(sorted(_JOBS.items()))


@dataclass(frozen=True, slots=True)
class Plan:
    """What a row goes by. `text` is the cron as written, `note` what was wrong, empty if nothing."""

    cron: Cron
    text: str
    zone: ZoneInfo
    is_on: bool
    note: str = ""

    @property
    def by(self) -> str:
        """What `Schedule.planned_by` keeps."""
        return f"{self.text} {self.zone.key}"


def plan_of(row: Schedule, *, settings: Effective, zone: str, now: datetime) -> Plan:
    """What holds for a row, in a workspace with that time zone. Never raises for what a person wrote."""
    job = _JOBS[row.job]
    default = str(SETTINGS[job.cron_key].default)
    notes: list[str] = []
    zone_in_force = _first_zone([row.timezone, zone], notes)
    for text in [row.cron, settings.text(job.cron_key)]:
        if text:
            try:
                cron = _firing(text, zone_in_force, now)
            except ValueError as bad:
                notes.append(f"The cron {text!r} cannot be used: {bad}.")
            else:
                break
    else:
        text, cron = default, parse_cron(default)
    if notes:
        notes.append(f"{text} in {zone_in_force.key} holds instead.")
    return Plan(cron, text, zone_in_force, settings.flag(job.enabled_key), " ".join(notes)[:500])


def _first_zone(names: list[str], notes: list[str]) -> ZoneInfo:
    for name in names:
        if name in available_timezones():
            return ZoneInfo(name)
        if name:
            notes.append(f"There is no time zone {name!r}.")
    return ZoneInfo(FALLBACK_ZONE)


def _firing(text: str, zone: ZoneInfo, now: datetime) -> Cron:
    """The parsed expression; raises `ValueError` also for one that never fires."""
    cron = parse_cron(text)
    if next_after(cron, now, zone) is None:
        raise ValueError("it never fires")
    return cron


def current_plan(row: Schedule, *, now: datetime) -> Plan:
    """What holds for a row now. Two queries; inside `tenant(…)`, `workspace(…)` or the operator's door."""
    zone = Workspace.unscoped.values_list("timezone", flat=True).get(pk=row.workspace_id)
    return plan_of(row, settings=effective(row.workspace_id, row.agent_id), zone=zone, now=now)


def due_for(row: Schedule, plan: Plan, *, now: datetime) -> datetime:
    """The time that a due row is due for: of several that were missed, the last. Without the agent's jitter."""
    assert row.next_due_at is not None  # noqa: S101 - it is due
    shift = jitter_of(row.agent_id)
    return last_until(plan.cron, now - shift, plan.zone, since=row.next_due_at - shift)


def move_on(row: Schedule, plan: Plan, *, now: datetime) -> None:
    """Sets when the row is due next, and saves it. One that is overdue stays so; one that is off is never due.

    A clock that was put back makes nothing due again that was queued before.
    """
    shift = jitter_of(row.agent_id)
    is_overdue = row.next_due_at is not None and row.next_due_at <= now
    if not row.enabled:
        row.next_due_at = None
    elif not is_overdue:
        after = now - shift
        if row.last_due_at is not None and row.last_due_at <= now + CLOCK_SLACK:
            after = max(after, row.last_due_at - shift)
        following = next_after(plan.cron, after, plan.zone)
        row.next_due_at = None if following is None else following + shift
    row.planned_by, row.note = plan.by, plan.note
    row.save(update_fields=["next_due_at", "last_due_at", "planned_by", "note"])


# --- rows ---------------------------------------------------------------------------------------------------

_MAKE: Final = """
INSERT INTO workspaces_schedule (workspace_id, agent_id, job, cron, timezone, enabled, cursor, planned_by, note)
SELECT a.workspace_id, a.id, j.job, '', '', true, 0, '', ''
FROM workspaces_agent a CROSS JOIN unnest(%s::text[]) AS j(job)
WHERE (%s::bigint IS NULL OR a.id = %s)
  AND NOT EXISTS (SELECT FROM workspaces_schedule s WHERE s.agent_id = a.id AND s.job = j.job)
ON CONFLICT (agent_id, job) DO NOTHING
"""


def make_schedules(agent_id: int) -> None:
    """A row of each job for a new agent. Inside `workspace(…)` or the operator's door; again, it does nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_MAKE, [list(_JOBS), agent_id, agent_id])


def make_missing_schedules() -> int:
    """Rows of every job for every agent that lacks one; returns how many were made. Opens its own door."""
    with door(Door.OUTBOX), connection.cursor() as cursor:
        cursor.execute(_MAKE, [list(_JOBS), None, None])
        return int(cursor.rowcount)


def plan_anew(workspace_id: int | None, *, cron_key: str | None = None, agent_id: int | None = None) -> None:
    """Has the next tick compute anew when rows are due: those of a workspace (None: all), of an agent, of the jobs
    with that cron setting. In the transaction of whoever changed what they go by."""
    rows = Schedule.unscoped.all()
    if workspace_id is not None:
        rows = rows.filter(workspace_id=workspace_id)
    if agent_id is not None:
        rows = rows.filter(agent_id=agent_id)
    if cron_key is not None:
        rows = rows.filter(job__in=[job.name for job in _JOBS.values() if job.cron_key == cron_key], cron="")
    rows.update(planned_by="")


REVIEWED: Final = 500
"""Rows of one transaction of the review."""


def review_schedules(now: datetime) -> None:
    """Makes the rows that lack, and has planned anew what a changed environment or a clock that ran wrong left
    planned by something else. Hourly; in short transactions."""
    make_missing_schedules()
    last = 0
    while True:
        with door(Door.OUTBOX):
            rows = list(
                Schedule.unscoped.filter(pk__gt=last, job__in=list(_JOBS))
                .exclude(planned_by="")
                .order_by("pk")[:REVIEWED]
            )
            stale = [row.pk for row in rows if _is_stale(row, now=now)]
            Schedule.unscoped.filter(pk__in=stale).update(planned_by="")
        if not rows:
            return
        last = rows[-1].pk


def _is_stale(row: Schedule, *, now: datetime) -> bool:
    with workspace(row.workspace_id):
        plan = current_plan(row, now=now)
    if plan.by != row.planned_by or plan.note != row.note:
        return True
    following = next_after(plan.cron, now, plan.zone)
    return (
        row.next_due_at is not None
        and following is not None
        and row.next_due_at > following + 2 * CLOCK_SLACK
    )


# --- changes by people --------------------------------------------------------------------------------------


def change_schedule(
    workspace_id: int,
    agent_id: int,
    job: str,
    *,
    now: datetime,
    actor: str,
    address: str = "",
    cron: str | None = None,
    zone: str | None = None,
    enabled: bool | None = None,
) -> Schedule:
    """Changes what is given; an empty cron or zone lets the setting's or the workspace's hold. Audited.

    Inside `workspace(…)` or the operator's door. Raises `NotFound` "schedule_not_found", `BadInput` "bad_cron" or
    "bad_timezone". What was missed while it was off is not made up for.
    """
    rows = Schedule.objects.of_workspace(workspace_id).filter(agent_id=agent_id, job=job)
    row: Schedule | None = rows.select_for_update(no_key=True).first()
    if row is None or job not in _JOBS:
        raise NotFound("schedule_not_found", f"The agent {agent_id} has no job {job!r} on a schedule.")
    if zone:
        check_zone(zone)
    if cron:
        _check_cron(cron, now)
    given = {"cron": cron and cron.strip(), "timezone": zone, "enabled": enabled}
    changed = {field: value for field, value in given.items() if value is not None}
    for field, value in changed.items():
        setattr(row, field, value)
    row.save(update_fields=list(changed))
    move_on(row, current_plan(row, now=now), now=now)
    record_audit(
        workspace_id,
        actor=actor,
        action="schedule.changed",
        target=f"agent:{agent_id}/schedule:{job}",
        address=address,
        detail=changed,
    )
    return row


MAX_CRON: Final = 100
"""Characters of a row's own cron, as in its column."""


def _check_cron(text: str, now: datetime) -> None:
    try:
        if len(text) > MAX_CRON:
            raise ValueError(f"it has more than {MAX_CRON} characters")
        _firing(text, ZoneInfo(FALLBACK_ZONE), now)
    except ValueError as bad:
        raise BadInput(
            "bad_cron",
            f"{text[:100]!r} cannot be used: {bad}. Wanted is a cron expression of five fields, or six in the"
            " Quartz form (`0 30 3 * * ?`).",
            field="cron",
        ) from bad
