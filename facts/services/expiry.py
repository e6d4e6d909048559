"""Facts whose time is up leave recall, and stay in the history."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from facts.models import Fact
from facts.services.retire import retire_facts
from workspaces.tenancy import Door, door, tenant

MOST_EXPIRED: Final = 1000
"""Facts of one round of upkeep; what is left is filtered out where it is read."""


def retire_expired(now: datetime) -> None:
    """Retires facts whose `expires_at` is past. Upkeep; safe to run twice at once."""
    with door(Door.MAINTENANCE):
        stale = Fact.unscoped.filter(retired_at=None, expires_at__lte=now).select_related("bucket__owner")
        places = {one.bucket_id: one.bucket.ref() for one in stale.order_by("pk")[:MOST_EXPIRED]}
    for bucket in places.values():
        with tenant(bucket):
            retire_facts(
                bucket,
                Fact.objects.of(bucket).filter(retired_at=None, expires_at__lte=now)[:MOST_EXPIRED],
                why=Fact.Retired.EXPIRED,
                actor="job:upkeep",
                reason="Its time is up.",
                now=now,
            )
