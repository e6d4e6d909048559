"""Closing facts, and taking that back. A closed fact stays, with its history; only *forget* deletes."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import IntegrityError, transaction

from facts.models import Fact, FactRevision
from facts.services.indexing import index_facts, unindex_facts
from facts.services.locks import lock_facts
from facts.services.revisions import By, fields_of, trace
from workspaces.errors import Conflict
from workspaces.types import BucketRef


def retire_facts(
    bucket: BucketRef,
    facts: Iterable[Fact],
    *,
    why: Fact.Retired,
    actor: str,
    now: datetime,
    reason: str = "",
    run_id: int | None = None,
    superseded_by: Fact | None = None,
    valid_to: datetime | None = None,
) -> int:
    """Closes those of the facts that are open, and takes them out of recall; how many. Inside `tenant(…)`, under
    `lock_facts`. `valid_to` says until when it was true, where the world changed."""
    lock_facts(bucket)
    ids = [fact.pk for fact in facts]
    rows = list(
        Fact.objects.of(bucket).select_for_update().filter(pk__in=ids, retired_at=None).order_by("pk")
    )
    by = By(actor, now, reason, run_id)
    for fact in rows:
        before = fields_of(fact)
        fact.retired_at, fact.retired_why = now, why.value
        fact.superseded_by = superseded_by
        if valid_to is not None and (fact.valid_from is None or fact.valid_from <= valid_to):
            fact.valid_to = valid_to
        fact.revision += 1
        fact.updated_at = now
        fact.save()
        trace(bucket, fact, FactRevision.Op.RETIRE, before=before, by=by)
    unindex_facts(fact.pk for fact in rows)
    return len(rows)


def restore_facts(
    bucket: BucketRef,
    facts: Iterable[Fact],
    *,
    actor: str,
    now: datetime,
    reason: str = "",
    run_id: int | None = None,
) -> int:
    """Opens closed facts again as they stood before they were closed; how many. Inside `tenant(…)`.

    Raises `Conflict` "fact_is_there" when another fact says the same meanwhile: then nothing is opened.
    """
    lock_facts(bucket)
    ids = [fact.pk for fact in facts]
    rows = list(
        Fact.objects.of(bucket)
        .select_for_update()
        .filter(pk__in=ids, retired_at__isnull=False)
        .order_by("pk")
    )
    by = By(actor, now, reason, run_id)
    for fact in rows:
        before = fields_of(fact)
        closing = (
            FactRevision.objects.of(bucket)
            .filter(fact=fact, op=FactRevision.Op.RETIRE)
            .order_by("-number")
            .first()
        )
        fact.retired_at, fact.retired_why, fact.superseded_by = None, "", None
        if closing is not None and "valid_to" in closing.before:
            until = closing.before["valid_to"]
            fact.valid_to = datetime.fromisoformat(until) if until else None
        fact.revision += 1
        fact.updated_at = now
        try:
            with transaction.atomic():
                fact.save()
        except IntegrityError as twin:
            raise Conflict(
                "fact_is_there",
                f"Another fact says {fact.statement!r} by now; close that one first.",
                factId=fact.pk,
            ) from twin
        trace(bucket, fact, FactRevision.Op.RESTORE, before=before, by=by)
    index_facts(bucket, rows)
    return len(rows)
