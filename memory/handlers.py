"""Outbox topics of the memory app."""

from __future__ import annotations

from memory.services.consolidate import handle_consolidation
from memory.services.embedding import handle_embedding
from memory.services.extract import handle_extraction
from memory.services.rounds import TOPIC as CONSOLIDATE
from memory.services.sync import SYNC, handle_sync
from memory.services.turns import EXTRACT
from workspaces import outbox
from workspaces.services.vectors import EMBED


def register_topics() -> None:
    """Called once at start."""
    outbox.register(EXTRACT, family="extract", handle=handle_extraction)
    outbox.register(CONSOLIDATE, family="consolidate", handle=handle_consolidation)
    outbox.register(EMBED, family="embed", handle=handle_embedding)
    outbox.register(SYNC, family="sync", handle=handle_sync)
