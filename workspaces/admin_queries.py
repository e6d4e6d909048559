"""Overviews for those who administer a workspace: numbers and times, never a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from django.db.models import Count, Max, Q, QuerySet, Sum
from django.db.models.functions import TruncDate

from workspaces.models import AuditEvent, Bucket, File, ModelUsage, Owner, PersonalAccessToken, Run
from workspaces.tenancy import tenant
from workspaces.types import Reach

_Dated = TypeVar("_Dated", AuditEvent, ModelUsage)


@dataclass(frozen=True, slots=True)
class OwnerOverview:
    """A person, with how many agents remember them, in how many files, and when last something changed."""

    id: int
    key: str
    name: str
    timezone: str
    agents: int
    files: int
    last_at: datetime | None
    created_at: datetime


def owners_of(workspace_id: int, *, search: str = "") -> QuerySet[Owner]:
    """The people of a workspace by key, those whose key or name holds `search`. Inside `workspace(…)`."""
    rows: QuerySet[Owner] = Owner.objects.of_workspace(workspace_id)
    if search:
        rows = rows.filter(Q(key__icontains=search) | Q(name__icontains=search))
    return rows.order_by("key")


def owner_overviews(workspace_id: int, owners: Sequence[Owner]) -> list[OwnerOverview]:
    """The overviews of one page of people. Three queries; opens its own sight of their buckets."""
    buckets: Mapping[int, int] = dict(
        Bucket.objects.of_workspace(workspace_id).filter(owner__in=owners).values_list("pk", "owner_id")
    )
    reach = Reach(workspace_id, tuple(buckets))
    with tenant(reach):
        files = File.objects.within(reach).filter(deleted_at=None, head__gt=0).values("bucket_id")
        counted = {row["bucket_id"]: row for row in files.annotate(files=Count("pk"), at=Max("updated_at"))}
        runs = Run.objects.within(reach).values("bucket_id").annotate(at=Max("created_at"))
        ran = dict(runs.values_list("bucket_id", "at"))
    made = []
    for owner in owners:
        own = [bucket for bucket, whose in buckets.items() if whose == owner.pk]
        times = [counted[one]["at"] for one in own if one in counted] + [
            ran[one] for one in own if one in ran
        ]
        made.append(
            OwnerOverview(
                id=owner.pk,
                key=owner.key,
                name=owner.name,
                timezone=owner.timezone,
                agents=len(own),
                files=sum(counted[one]["files"] for one in own if one in counted),
                last_at=max(times, default=None),
                created_at=owner.created_at,
            )
        )
    return made


def tokens_of(workspace_id: int, *, user_id: int | None) -> QuerySet[PersonalAccessToken]:
    """Tokens, newest first; of one user, or of all. Never asks for the hash. Inside `workspace(…)`."""
    rows: QuerySet[PersonalAccessToken] = PersonalAccessToken.objects.of_workspace(workspace_id)
    if user_id is not None:
        rows = rows.filter(user_id=user_id)
    return rows.select_related("user").defer("sha256").order_by("-pk")


def audit_of(
    workspace_id: int,
    *,
    actor: str = "",
    action: str = "",
    start: datetime | None = None,
    end: datetime | None = None,
) -> QuerySet[AuditEvent]:
    """Audit events, newest first, from `start` (included) to `end` (excluded). Inside `workspace(…)`.

    `action` may be a family such as `file`, which stands for `file.written`, `file.deleted` and so on.
    """
    rows: QuerySet[AuditEvent] = AuditEvent.objects.of_workspace(workspace_id)
    if actor:
        rows = rows.filter(actor=actor)
    if action:
        rows = rows.filter(Q(action=action) | Q(action__startswith=f"{action}."))
    return _within(rows, start, end).order_by("-at", "-pk")


def usage_of(
    workspace_id: int, *, zone: ZoneInfo, start: datetime | None = None, end: datetime | None = None
) -> QuerySet[Any, Any]:
    """What models were asked, by day of that time zone, purpose and model, newest first.

    Inside `door(Door.METRICS)`: it sums over all buckets of the workspace, and shows none.
    """
    rows = _within(ModelUsage.unscoped.filter(workspace_id=workspace_id), start, end)
    grouped = rows.annotate(day=TruncDate("at", tzinfo=zone)).values("day", "purpose", "model")
    return grouped.annotate(
        calls=Count("pk"),
        failed=Count("pk", filter=~Q(error="")),
        input_tokens_sum=Sum("input_tokens"),
        output_tokens_sum=Sum("output_tokens"),
        cost_usd_sum=Sum("cost_usd"),
    ).order_by("-day", "purpose", "model")


def _within(rows: QuerySet[_Dated], start: datetime | None, end: datetime | None) -> QuerySet[_Dated]:
    if start is not None:
        rows = rows.filter(at__gte=start)
    if end is not None:
        rows = rows.filter(at__lt=end)
    return rows
