"""What people think of what was recalled, and what trust makes of it.

An item is named as recall names it: `fact:12`, `entry:3`, `message:7`, `file:12:40` (the line). Of a file the vote is
kept with the hash of the words, so that it stays with them when they move.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from facts.errors import item_not_found
from facts.logic.trust import HELPFUL, UNHELPFUL
from facts.models import Fact, Feedback
from facts.queries import fact_within, votes_on
from facts.services.learn import settle_trust
from facts.services.locks import lock_facts
from recall.services.index import place_of, set_trust, trust_text
from recall.types import RecordKind
from workspaces.errors import NotFound
from workspaces.types import BucketRef, Reach

NEUTRAL: Final = 0.5
"""The trust of what nothing is known of: it moves nothing in the ranking."""

BaseTrust = Callable[[BucketRef, int], float | None]
_bases: dict[RecordKind, BaseTrust] = {}


def join_base_trust(kind: RecordKind, base: BaseTrust) -> None:
    """What things of this kind are trusted before anybody votes; called in the apps' `ready()`."""
    _bases[kind] = base


@dataclass(frozen=True, slots=True)
class Item:
    """A recalled item that is there: its bucket, and the name under which its votes are kept."""

    bucket_id: int
    kind: RecordKind
    source_id: int
    part: int
    content: str = ""

    @property
    def key(self) -> str:
        """As its votes name it."""
        place = f":{self.content}" if self.kind is RecordKind.FILE else ""
        return f"{self.kind.value}:{self.source_id}{place}"


@dataclass(frozen=True, slots=True)
class Votes:
    """How an item stands after a vote. `trust` is what was counted, before decay; None: nobody has voted."""

    item: str
    helpful: int
    unhelpful: int
    trust: float | None


def item_named(reach: Reach, recall_id: str) -> Item:
    """The item of that id within reach; raises `NotFound`. Inside `tenant(…)`."""
    kind, source_id, part = _parsed(recall_id)
    if kind is RecordKind.FACT:
        try:
            return Item(fact_within(reach, source_id).bucket_id, kind, source_id, 0)
        except NotFound as missing:
            raise item_not_found(recall_id) from missing
    place = place_of(reach.buckets, kind, source_id, part)
    if place is None:
        raise item_not_found(recall_id)
    return Item(place.bucket_id, kind, source_id, part, place.content_hash)


def _parsed(recall_id: str) -> tuple[RecordKind, int, int]:
    kind, *numbers = recall_id.split(":")
    wanted = 2 if kind == RecordKind.FILE else 1
    is_whole = len(numbers) == wanted and all(
        one.isascii() and one.isdigit() and len(one) <= 18 for one in numbers
    )
    if kind not in set(RecordKind) or not is_whole or (wanted == 2 and int(numbers[1]) >= 2**31):
        raise item_not_found(recall_id)
    return RecordKind(kind), int(numbers[0]), int(numbers[1]) if wanted == 2 else 0


def vote(bucket: BucketRef, item: Item, *, voter: str, helpful: bool | None, now: datetime) -> Votes:
    """One person's vote on an item of this bucket; another replaces it, None withdraws it.

    Inside `tenant(…)`; takes `lock_facts`, so that votes at once are all counted.
    """
    lock_facts(bucket)
    mine = Feedback.objects.of(bucket).filter(item=item.key, voter=voter)
    if helpful is None:
        mine.delete()
    elif not mine.update(helpful=helpful, at=now):
        Feedback.objects.create(
            workspace_id=bucket.workspace_id,
            bucket_id=bucket.id,
            item=item.key,
            voter=voter,
            helpful=helpful,
            at=now,
        )
    good, bad = votes_on(bucket, [item.key]).get(item.key, (0, 0))
    return Votes(item.key, good, bad, _settled(bucket, item, good, bad))


def _settled(bucket: BucketRef, item: Item, helpful: int, unhelpful: int) -> float | None:
    if item.kind is RecordKind.FACT:
        fact = Fact.objects.of(bucket).select_for_update().get(pk=item.source_id)
        settle_trust(bucket, fact)
        fact.save(update_fields=["trust"])
        set_trust(item.kind, item.source_id, 0, trust=fact.trust, trusted_at=fact.confirmed_at)
        return float(fact.trust)
    trust = _voted(bucket, item, helpful, unhelpful)
    if item.kind is RecordKind.FILE:
        trust_text(bucket.id, item.kind, item.source_id, item.content, trust)
    else:
        set_trust(item.kind, item.source_id, item.part, trust=trust)
    return trust


def _voted(bucket: BucketRef, item: Item, helpful: int, unhelpful: int) -> float | None:
    base = _bases[item.kind](bucket, item.source_id) if item.kind in _bases else None
    if not helpful and not unhelpful:
        return base
    trust = (NEUTRAL if base is None else base) + HELPFUL * helpful - UNHELPFUL * unhelpful
    return min(1.0, max(0.0, trust))


def reapply_votes(bucket: BucketRef) -> int:
    """Sets the trust of all that was voted on anew: after the index was made anew. Inside `tenant(…)`."""
    keys = list(Feedback.objects.of(bucket).order_by("item").values_list("item", flat=True).distinct())
    votes = votes_on(bucket, keys)
    for key in keys:
        kind, source_id, *content = key.split(":")
        if RecordKind(kind) is not RecordKind.FACT:
            item = Item(bucket.id, RecordKind(kind), int(source_id), 0, content[0] if content else "")
            _settled(bucket, item, *votes[key])
    return len(keys)
