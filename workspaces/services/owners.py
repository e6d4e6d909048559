"""People whom agents remember, and their buckets."""

from __future__ import annotations

from django.utils import timezone

from workspaces.models import Bucket, Owner
from workspaces.types import BucketRef, Scope


def make_bucket(team: BucketRef, owner_key: str) -> int:
    """The id of that person's PERSONAL bucket with that agent, made if it is new.

    Inside `workspace(…)`. Safe when many ask at once: one row each, by the constraints.
    """
    now = timezone.now()
    Owner.unscoped.bulk_create(
        [Owner(workspace_id=team.workspace_id, key=owner_key, created_at=now)], ignore_conflicts=True
    )
    owner = Owner.objects.of_workspace(team.workspace_id).get(key=owner_key)
    Bucket.unscoped.bulk_create(
        [
            Bucket(
                workspace_id=team.workspace_id,
                scope=Scope.PERSONAL.value,
                agent_id=team.agent_id,
                owner=owner,
                created_at=now,
            )
        ],
        ignore_conflicts=True,
    )
    return int(
        Bucket.objects.of_workspace(team.workspace_id)
        .values_list("pk", flat=True)
        .get(agent_id=team.agent_id, owner=owner)
    )


def name_owner(workspace_id: int, owner_key: str, name: str) -> None:
    """Sets what a person is called. Inside `workspace(…)` or `tenant(…)` of it."""
    Owner.objects.of_workspace(workspace_id).filter(key=owner_key).exclude(name=name).update(name=name)
