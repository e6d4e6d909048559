"""The trace of each change of a fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from facts.models import Fact, FactRevision
from workspaces.types import BucketRef

TRACED: Final = (
    "statement",
    "subject",
    "predicate",
    "object",
    "category",
    "metadata",
    "confidence",
    "valid_from",
    "valid_to",
    "expires_at",
    "retired_at",
    "retired_why",
    "superseded_by_id",
    "derived_from",
)
"""What a revision tells. Trust is no part of it: votes and evidence are rows of their own."""


@dataclass(frozen=True, slots=True)
class By:
    """Who changes facts, why and when."""

    actor: str
    now: datetime
    reason: str = ""
    run_id: int | None = None


def fields_of(fact: Fact) -> dict[str, Any]:
    """A fact's traced fields, as JSON holds them."""
    found = {name: getattr(fact, name) for name in TRACED}
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in found.items()
    }


def trace(bucket: BucketRef, fact: Fact, op: FactRevision.Op, *, before: Mapping[str, Any], by: By) -> None:
    """Writes what changed; `fact.revision` is the number of the new state. Inside `tenant(…)`."""
    after = fields_of(fact)
    changed = [name for name in after if before.get(name) != after[name]]
    FactRevision.objects.create(
        workspace_id=bucket.workspace_id,
        bucket_id=bucket.id,
        fact=fact,
        number=fact.revision,
        op=op.value,
        before={name: before[name] for name in changed if name in before},
        after={name: after[name] for name in changed},
        actor=by.actor[:200],
        reason=by.reason[:300],
        run_id=by.run_id,
        at=by.now,
    )
