"""Outbox topics of the facts app."""

from __future__ import annotations

from facts.services.contradictions import handle_check
from facts.services.news import CHECK, PROJECT
from facts.services.project import handle_projection
from workspaces import outbox


def register_topics() -> None:
    """Called once at start."""
    outbox.register(CHECK, family="check", handle=handle_check)
    outbox.register(PROJECT, family="project", handle=handle_projection)
