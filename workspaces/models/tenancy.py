"""Managers of tenant tables: reads say whose rows they want."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from django.db import models
from django.db.models import QuerySet

from workspaces.types import BucketRef, Reach

M = TypeVar("M", bound=models.Model)


class UnscopedReadError(RuntimeError):
    """A tenant table was read without saying whose rows: use `within(reach)` or `of(bucket)`."""


class BucketManager(models.Manager[M]):
    """Reads of a table whose rows belong to a bucket. Made for use inside `with tenant(…)`."""

    def within(self, reach: Reach) -> QuerySet[M]:
        """The rows that a reader of that reach sees."""
        return super().get_queryset().filter(bucket_id__in=reach.buckets)

    def of(self, bucket: BucketRef) -> QuerySet[M]:
        """The rows of that one bucket."""
        return super().get_queryset().filter(bucket_id=bucket.id)

    def get_queryset(self) -> QuerySet[M]:
        raise UnscopedReadError(self.model.__name__)

    def create(self, **values: Any) -> M:
        """Inserts one row."""
        row = self.model(**values)
        row.save(force_insert=True)
        return row

    def insert(self, rows: Iterable[M]) -> list[M]:
        """Inserts many rows in one statement."""
        return super().get_queryset().bulk_create(list(rows))


class WorkspaceManager(models.Manager[M]):
    """Reads of a table whose rows belong to a workspace and to no bucket."""

    def of_workspace(self, workspace_id: int) -> QuerySet[M]:
        """The rows of that workspace."""
        return super().get_queryset().filter(workspace_id=workspace_id)

    def get_queryset(self) -> QuerySet[M]:
        raise UnscopedReadError(self.model.__name__)

    def create(self, **values: Any) -> M:
        """Inserts one row."""
        row = self.model(**values)
        row.save(force_insert=True)
        return row


class TenantModel(models.Model):
    """A row of a workspace. `workspace_id` is never NULL, so that composite keys hold."""

    workspace = models.ForeignKey("workspaces.Workspace", on_delete=models.CASCADE, related_name="+")

    unscoped = models.Manager["Any"]()
    objects: Any = WorkspaceManager()

    class Meta:
        abstract = True
        base_manager_name = "unscoped"
        default_manager_name = "unscoped"


class BucketModel(TenantModel):
    """A row of a bucket: `bucket_id = ANY(reach)` is its whole visibility."""

    bucket = models.ForeignKey("workspaces.Bucket", on_delete=models.CASCADE, related_name="+")

    objects: Any = BucketManager()

    class Meta(TenantModel.Meta):
        abstract = True
