"""Reads of facts. Inside `tenant(…)`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final

from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import Coalesce, Least

from facts.errors import fact_not_found
from facts.models import Contradiction, Evidence, Fact, FactRevision, Feedback
from workspaces.errors import NotFound
from workspaces.types import BucketRef, Reach

MOST_COUNTED: Final = 10_000
"""How far a list is counted: at a million facts an exact count reads a million index entries at every page."""
MOST_MATCHES: Final = 200
"""Retired facts that a search by words adds; those that hold come from recall."""


def current_facts(reach: Reach) -> QuerySet[Fact]:
    """The facts within reach that hold."""
    rows: QuerySet[Fact] = Fact.objects.within(reach).filter(retired_at=None)
    return rows


def fact_within(reach: Reach, fact_id: int) -> Fact:
    """The fact of that id, also a retired one: its history can be read; raises `NotFound`."""
    rows: QuerySet[Fact] = Fact.objects.within(reach).filter(pk=fact_id).select_related("bucket__owner")
    found = rows.first()
    if found is None:
        raise fact_not_found(fact_id)
    return found


def holding(rows: QuerySet[Fact], *, now: datetime) -> QuerySet[Fact]:
    """Those of the facts that hold at this moment: not retired, not expired, within their range."""
    return rows.filter(
        Q(expires_at=None) | Q(expires_at__gt=now),
        Q(valid_from=None) | Q(valid_from__lte=now),
        Q(valid_to=None) | Q(valid_to__gt=now),
        retired_at=None,
    )


def true_at(rows: QuerySet[Fact], moment: datetime) -> QuerySet[Fact]:
    """What was true at a moment, also what was superseded since.

    A fact that does not say from when it is true holds from when it was said or learned, whichever was first; one
    that does not say until when, until it was superseded. What was retired as wrong or unfounded was never true.
    """
    said = (
        Evidence.unscoped.filter(fact=OuterRef("pk"))
        .order_by()
        .values("fact")
        .annotate(said=Min("at"))
        .values("said")
    )
    return (
        rows.filter(retired_why__in=["", Fact.Retired.SUPERSEDED])
        .alias(
            begins=Coalesce("valid_from", Least("learned_at", Coalesce(Subquery(said), "learned_at"))),
            ends=Coalesce("valid_to", "retired_at"),
        )
        .filter(Q(ends=None) | Q(ends__gt=moment), begins__lte=moment)
    )


@dataclass(frozen=True, slots=True)
class FactsWanted:
    """Which facts a list shows. `ids` is what a search found, best first; None for all, newest first."""

    category: str | None = None
    tier: str | None = None
    includes_retired: bool = False
    as_of: datetime | None = None
    ids: tuple[int, ...] | None = None


class FactList(Sequence[Fact]):
    """The facts of a list, to be paged: newest first, or in the order in which they were found.

    Each bucket gives its own newest, which its index has in order; together they are merged. So a page costs its
    place in the list and not the size of the buckets.
    """

    ordered = True

    def __init__(self, reach: Reach, wanted: FactsWanted) -> None:
        self._reach, self._wanted = reach, wanted

    @cached_property
    def counted(self) -> int:
        """How many there are, as far as they are counted."""
        most = MOST_COUNTED + 1
        return sum(self._rows(bucket).order_by()[:most].count() for bucket in self._reach.buckets)

    def __len__(self) -> int:
        return min(self.counted, MOST_COUNTED)

    def __getitem__(self, place: Any) -> Any:
        start, stop = place.start or 0, place.stop
        if start >= stop:
            return []
        if self._wanted.ids is not None:
            known = {
                pk for bucket in self._reach.buckets for pk in self._rows(bucket).values_list("pk", flat=True)
            }
            ids = [pk for pk in self._wanted.ids if pk in known][start:stop]
        else:
            first, *rest = (self._newest(bucket, stop) for bucket in self._reach.buckets)
            rows = first.union(*rest, all=True).order_by("-learned_at", "-pk") if rest else first
            ids = [pk for pk, _ in rows[start:stop]]
        facts = Fact.objects.within(self._reach).filter(pk__in=ids).select_related("bucket__owner")
        by_id = {fact.pk: fact for fact in facts}
        return [by_id[pk] for pk in ids if pk in by_id]

    def _newest(self, bucket: int, most: int) -> QuerySet[Fact, tuple[int, datetime]]:
        return self._rows(bucket).order_by("-learned_at", "-pk").values_list("pk", "learned_at")[:most]

    def _rows(self, bucket: int) -> QuerySet[Fact]:
        wanted = self._wanted
        rows: QuerySet[Fact] = Fact.objects.within(Reach(self._reach.workspace_id, (bucket,)))
        if wanted.as_of is not None:
            rows = true_at(rows, wanted.as_of)
        elif not wanted.includes_retired:
            rows = rows.filter(retired_at=None)
        if wanted.category is not None:
            rows = rows.filter(category=wanted.category)
        if wanted.tier is not None:
            rows = rows.filter(tier=wanted.tier)
        return rows if wanted.ids is None else rows.filter(pk__in=wanted.ids)


def retired_matches(reach: Reach, words: str) -> list[int]:
    """The latest retired facts that hold each of these words: they stand in no index any more."""
    rows = Fact.objects.within(reach).exclude(retired_at=None)
    for word in words.split()[:16]:
        rows = rows.filter(statement__icontains=word)
    return list(rows.order_by("-retired_at", "-pk").values_list("pk", flat=True)[:MOST_MATCHES])


@dataclass(frozen=True, slots=True)
class Shown:
    """A fact with what a list shows of it."""

    fact: Fact
    evidence: tuple[Evidence, ...] = ()
    helpful: int = 0
    unhelpful: int = 0


def shown_with(facts: Sequence[Fact]) -> list[Shown]:
    """Facts with their evidence and votes. Two queries, however many there are."""
    by_fact: dict[int, list[Evidence]] = {}
    ids = [fact.pk for fact in facts]
    buckets = {fact.bucket_id for fact in facts}
    workspaces = {fact.workspace_id for fact in facts}
    if not ids:
        return []
    reach = Reach(max(workspaces), tuple(buckets))
    rows = Evidence.objects.within(reach).filter(fact_id__in=ids).select_related("file").order_by("pk")
    for row in rows:
        by_fact.setdefault(row.fact_id, []).append(row)
    votes = votes_on(reach, [f"fact:{pk}" for pk in ids])
    return [
        Shown(fact, tuple(by_fact.get(fact.pk, ())), *votes.get(f"fact:{fact.pk}", (0, 0))) for fact in facts
    ]


def votes_on(whose: BucketRef | Reach, items: Sequence[str]) -> dict[str, tuple[int, int]]:
    """How many found each item helpful, and how many not."""
    rows = (
        (Feedback.objects.of(whose) if isinstance(whose, BucketRef) else Feedback.objects.within(whose))
        .filter(item__in=items)
        .values("item")
        .annotate(good=Count("pk", filter=Q(helpful=True)), bad=Count("pk", filter=Q(helpful=False)))
    )
    return {row["item"]: (row["good"], row["bad"]) for row in rows}


def fact_revisions(fact: Fact) -> QuerySet[FactRevision]:
    """The changes of a fact, newest first."""
    rows: QuerySet[FactRevision] = FactRevision.objects.within(Reach(fact.workspace_id, (fact.bucket_id,)))
    return rows.filter(fact=fact).order_by("-number")


def contradiction_list(reach: Reach, *, is_open: bool) -> QuerySet[Contradiction]:
    """Contradictions within reach, the newest first; open ones only while both sides hold."""
    rows: QuerySet[Contradiction] = Contradiction.objects.within(reach).select_related(
        "a__bucket__owner", "b__bucket__owner"
    )
    is_waiting = Q(decision="", a__retired_at=None, b__retired_at=None)
    rows = rows.filter(is_waiting) if is_open else rows.exclude(decision="")
    return rows.order_by("-found_at", "-pk")


def contradiction_within(reach: Reach, contradiction_id: int) -> Contradiction:
    """The contradiction of that id; raises `NotFound`."""
    rows = Contradiction.objects.within(reach).select_related(
        "a__bucket__owner", "b__bucket__owner", "bucket"
    )
    found: Contradiction | None = rows.filter(pk=contradiction_id).first()
    if found is None:
        raise NotFound("contradiction_not_found", f"There is no contradiction {contradiction_id}.")
    return found
