"""Buckets: where memory is written."""

from __future__ import annotations

from typing import Final

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import TenantModel
from workspaces.types import BucketRef, Scope

GLOBAL_BUCKET_ID: Final = 1
"""The one GLOBAL bucket, of the reserved workspace."""


class Bucket(TenantModel):
    """An agent's own for one owner (PERSONAL), an agent's shared one (TEAM), or the one for all (GLOBAL)."""

    class ScopeChoice(models.TextChoices):
        PERSONAL = Scope.PERSONAL.value
        TEAM = Scope.TEAM.value
        GLOBAL = Scope.GLOBAL.value

    scope = models.CharField(max_length=8, choices=ScopeChoice)
    agent = models.ForeignKey("workspaces.Agent", null=True, on_delete=models.CASCADE, related_name="buckets")
    owner = models.ForeignKey("workspaces.Owner", null=True, on_delete=models.CASCADE, related_name="buckets")
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["agent", "owner"], nulls_distinct=False, name="bucket_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="bucket_in_workspace"),
            models.CheckConstraint(
                name="bucket_scope",
                condition=Q(scope="PERSONAL", agent__isnull=False, owner__isnull=False)
                | Q(scope="TEAM", agent__isnull=False, owner__isnull=True)
                | Q(scope="GLOBAL", agent__isnull=True, owner__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} bucket {self.pk}"

    def ref(self) -> BucketRef:
        """The bucket as a value; reads `owner`, so select it along."""
        return BucketRef(
            id=self.pk,
            workspace_id=self.workspace_id,
            scope=Scope(self.scope),
            agent_id=self.agent_id,
            owner_key=self.owner.key if self.owner is not None else None,
        )
