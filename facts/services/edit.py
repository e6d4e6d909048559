"""A person changes what a fact says, or how long it holds."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from facts.errors import (
    already_known,
    check_statement,
    fact_is_retired,
    fact_not_found,
    forgotten,
    stale_fact,
)
from facts.logic.normal import fingerprint
from facts.models import Evidence, Fact, FactRevision
from facts.services.indexing import index_facts
from facts.services.learn import settle_trust
from facts.services.locks import lock_facts
from facts.services.revisions import By, fields_of, trace
from facts.services.tombstones import forgotten_among
from facts.types import Source
from workspaces.errors import BadInput
from workspaces.logic.redact import redact
from workspaces.types import BucketRef


def edit_fact(
    bucket: BucketRef,
    fact_id: int,
    changes: Mapping[str, Any],
    *,
    source: Source,
    by: By,
    base: int | None = None,
) -> Fact:
    """Sets fields of a current fact of this bucket, with a revision; a new statement has `source` as its evidence.

    Inside `tenant(…)`; takes `lock_facts`. Raises `NotFound`; `Conflict` "stale_revision" when it is not at revision
    `base`, "fact_retired", "already_known" when another says the same, "forgotten" for what a person had forgotten;
    `BadInput`. What changes nothing writes nothing.
    """
    lock_facts(bucket)
    fact: Fact | None = Fact.objects.of(bucket).select_for_update().filter(pk=fact_id).first()
    if fact is None:
        raise fact_not_found(fact_id)
    if base is not None and base != fact.revision:
        raise stale_fact(fact.revision, fields_of(fact))
    if fact.retired_at is not None:
        raise fact_is_retired(fact.pk)
    before = fields_of(fact)
    old = fact.statement
    for name, value in changes.items():
        setattr(fact, name, value)
    if "statement" in changes:
        fact.statement = redact(check_statement(fact.statement)).text
    if fact.valid_from and fact.valid_to and fact.valid_to < fact.valid_from:
        raise BadInput("bad_range", "`validTo` is before `validFrom`.", field="validTo")
    if fields_of(fact) == before:
        return fact
    if fact.statement != old:
        _restate(bucket, fact, source=source, now=by.now)
    fact.revision += 1
    fact.updated_at = by.now
    try:
        with transaction.atomic():
            fact.save()
    except IntegrityError as twin:
        raise _twin_of(bucket, fact) from twin
    trace(bucket, fact, FactRevision.Op.UPDATE, before=before, by=by)
    index_facts(bucket, [fact])
    return fact


def _restate(bucket: BucketRef, fact: Fact, *, source: Source, now: datetime) -> None:
    """The fact says something else: by the word of whoever says so now, and of nobody before."""
    if forgotten_among(bucket, [fact.statement]):
        raise forgotten()
    fact.fingerprint = fingerprint(fact.statement)
    Evidence.objects.of(bucket).update_or_create(
        fact=fact,
        root=source.root,
        defaults={
            "workspace_id": bucket.workspace_id,
            "bucket_id": bucket.id,
            "kind": source.kind.value,
            "quote": fact.statement[:2000],
            "speaker": source.speaker,
            "at": source.at,
            "created_at": now,
        },
    )
    settle_trust(bucket, fact, at=now)


def _twin_of(bucket: BucketRef, fact: Fact) -> Exception:
    twin = (
        Fact.objects.of(bucket)
        .filter(fingerprint=fact.fingerprint, retired_at=None)
        .exclude(pk=fact.pk)
        .first()
    )
    return already_known(twin.pk if twin else fact.pk)
