"""Facts in the index of recall: findable by word in the transaction that wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from django.db.models import Min

from facts.models import Evidence, Fact
from recall.services.index import put_units, remove_sources
from recall.types import RecordKind, Unit
from workspaces.services.vectors import ask_for_vectors
from workspaces.types import BucketRef


def fact_units(bucket: BucketRef, facts: Sequence[Fact]) -> list[Unit]:
    """What stands for these facts. One goes back to the first message it was learned from, so that recall shows
    one of the two. One query."""
    rows = (
        Evidence.objects.of(bucket)
        .filter(fact__in=[fact.pk for fact in facts])
        .values("fact_id")
        .annotate(message=Min("message_id"), said=Min("at"))
    )
    origins = {row["fact_id"]: (row["message"], row["said"]) for row in rows}
    units = []
    for fact in facts:
        message, said = origins.get(fact.pk, (None, None))
        units.append(
            Unit(
                kind=RecordKind.FACT,
                source_id=fact.pk,
                part=0,
                text=fact.statement,
                thread=None,
                position=0,
                speaker=fact.subject[:128],
                at=fact.valid_from or said or fact.learned_at,
                trust=fact.trust,
                trusted_at=fact.confirmed_at,
                root=message,
            )
        )
    return units


def index_facts(bucket: BucketRef, facts: Sequence[Fact]) -> None:
    """Adds these facts to the index, or brings them up to date there; asks for their vectors."""
    current = [fact for fact in facts if fact.retired_at is None]
    if current:
        put_units(bucket.id, fact_units(bucket, current))
        ask_for_vectors(bucket)


def unindex_facts(ids: Iterable[int]) -> None:
    """Takes facts out of the index."""
    remove_sources(RecordKind.FACT, ids)
