"""The always-on block: what every prompt says of the person and of how they want to be helped."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from memory.logic.structured import ALWAYS_ON, Shown, always_on_block
from memory.models import Entry
from memory.queries import current_entries, shown_of
from workspaces.access import Opened
from workspaces.models import GLOBAL_BUCKET_ID
from workspaces.settings import Effective

_M: Final = "mate.memory."
LOOKED_AT: Final = 1000
"""Newest entries that are looked at where a bound is set: a turn's cost does not grow with the store."""


def always_on_text(opened: Opened, *, settings: Effective, now: datetime) -> str:
    """The block of the `user` and `feedback` entries within reach, "" while there are none.

    A person's own entry goes before a shared one of its type and key. The same bytes until an entry changes or
    expires. Inside `tenant(…)`; one query, two above `LOOKED_AT` entries.
    """
    max_chars = settings.count(_M + "system-block-max-chars")
    max_per_type = settings.count(_M + "system-block-max-entries-per-type")
    rows = current_entries(opened.reach, now=now).filter(type__in=ALWAYS_ON)
    found = list(rows[:LOOKED_AT] if max_chars or max_per_type else rows)
    beyond = rows.count() - len(found) if (max_chars or max_per_type) and len(found) == LOOKED_AT else 0
    entries = _nearest_first(found, opened)
    return always_on_block(entries, max_chars=max_chars, max_per_type=max_per_type, beyond=beyond)


def _nearest_first(found: list[Entry], opened: Opened) -> list[Shown]:
    """Of entries of one type and key, only that of the nearest bucket."""
    rank = {opened.agent.team.id: 1, GLOBAL_BUCKET_ID: 2}
    nearest: dict[tuple[str, str], Shown] = {}
    for entry in sorted(found, key=lambda one: rank.get(one.bucket_id, 0)):
        nearest.setdefault((entry.type, entry.key), shown_of(entry))
    return list(nearest.values())
