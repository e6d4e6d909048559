"""Reads of the workspaces app. Inside the caller's `tenant(…)` or `workspace(…)`."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from django.db.models import Case, IntegerField, QuerySet, Value, When

from workspaces.errors import NotFound
from workspaces.logic.names import clean_name
from workspaces.models import GLOBAL_BUCKET_ID, File, Owner, Revision, Workspace
from workspaces.types import BucketRef, Reach


def files_within(reach: Reach) -> QuerySet[File]:
    """The files that a reader sees, by prompt order and name; deleted ones are not there."""
    files: QuerySet[File] = File.objects.within(reach).filter(deleted_at=None, head__gt=0)
    return files.order_by("sort_order", "name")


def file_for_reading(reach: Reach, name: str, *, own: BucketRef | None) -> File:
    """The file of that name: the owner's own first, else the shared one, else the global one; or `NotFound`."""
    name = clean_name(name)
    order = Case(
        When(bucket_id=own.id if own else 0, then=Value(0)),
        When(bucket_id=GLOBAL_BUCKET_ID, then=Value(2)),
        default=Value(1),
        output_field=IntegerField(),
    )
    found = files_within(reach).filter(name=name).order_by(order).first()
    if found is None:
        raise NotFound("file_not_found", f"There is no file {name!r}.")
    return found


def prompt_files(team: BucketRef) -> list[File]:
    """The enabled files of GLOBAL and TEAM, global ones first, then by order: the same bytes until one changes."""
    reach = Reach(team.workspace_id, (team.id, GLOBAL_BUCKET_ID))
    files = files_within(reach).filter(enabled=True)
    return sorted(files, key=lambda file: (file.bucket_id != GLOBAL_BUCKET_ID, file.sort_order, file.name))


def content_at(file: File, number: int) -> str:
    """The whole content as it stood after that revision; empty for 0. Reads back to the last full write."""
    if number <= 0:
        return ""
    parts: list[str] = []
    for revision in (
        Revision.unscoped.filter(bucket_id=file.bucket_id, file_id=file.pk, number__lte=number)
        .order_by("-number")
        .iterator(chunk_size=200)
    ):
        parts.append(revision.content)
        if revision.kind != Revision.Kind.APPEND:
            break
    return "".join(reversed(parts))


def zone_of(workspace_id: int, owner_key: str | None) -> ZoneInfo:
    """The owner's own time zone, else the workspace's."""
    own = (
        Owner.objects.of_workspace(workspace_id)
        .filter(key=owner_key)
        .values_list("timezone", flat=True)
        .first()
        if owner_key
        else None
    )
    return ZoneInfo(own or Workspace.unscoped.values_list("timezone", flat=True).get(pk=workspace_id))


def language_of(workspace_id: int) -> str:
    """The workspace's language: `en` or `zh`."""
    return str(Workspace.unscoped.values_list("language", flat=True).get(pk=workspace_id))


def owner_name(workspace_id: int, owner_key: str | None) -> str:
    """What the person is called; empty if unknown."""
    if not owner_key:
        return ""
    rows = Owner.objects.of_workspace(workspace_id).filter(key=owner_key)
    return str(rows.values_list("name", flat=True).first() or "")
