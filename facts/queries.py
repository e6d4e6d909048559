"""Reads of facts. Inside `tenant(…)`."""

from __future__ import annotations

from django.db.models import QuerySet

from facts.models import Fact
from workspaces.types import Reach


def current_facts(reach: Reach) -> QuerySet[Fact]:
    """The facts within reach that hold."""
    rows: QuerySet[Fact] = Fact.objects.within(reach).filter(retired_at=None)
    return rows
