"""Facts by what they mean: recall's search, asked for facts alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from recall.services.dense import Embedded
from recall.services.search import Wanted, search
from recall.types import RecordKind

MOST_FOUND: Final = 200

Embeds = Callable[[str, Sequence[int], Sequence[str]], Embedded | None]
_embeds: list[Embeds] = []


def join_embedder(embeds: Embeds) -> None:
    """Who gives a question its vector; called in an app's `ready()`. Without one, words search."""
    _embeds[:] = [embeds]


def facts_about(
    buckets: Sequence[int], query: str, *, now: datetime, half_life_days: float | None
) -> list[int]:
    """The ids of the facts in these buckets that answer best, best first. Outside any transaction."""
    kinds = [RecordKind.FACT]
    embedded = _embeds[0](query, buckets, [kind.value for kind in kinds]) if _embeds else None
    wanted = Wanted(
        query=query, asked_at=now, limit=MOST_FOUND, kinds=kinds, trust_half_life_days=half_life_days
    )
    return [one.source_id for one in search(buckets, wanted, embedded=embedded)]
