"""Summaries of earlier turns, kept for half an hour so that they are not made each turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import structlog

from integrations.clients.errors import ProviderError
from memory.logic.transcript import build
from memory.models import ContextSummary, Conversation, Message
from memory.prompts.summarise import Summarise, SummariseGiven
from memory.queries import count_waiting
from memory.services.transcripts import lines_of
from memory.services.turns import EXTRACT
from workspaces import outbox
from workspaces.llm import ask
from workspaces.logic.tokens import estimate_message
from workspaces.queries import owner_name, zone_of
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

log = structlog.get_logger(__name__)

KEPT: Final = timedelta(minutes=30)
"""How long a summary holds (contract §4)."""


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary and the id of the last message it covers."""

    text: str
    upto: int


def summary_in_force(conversation: Conversation, *, now: datetime) -> Summary | None:
    """The latest summary that still holds. Inside the caller's `tenant(…)`."""
    row = (
        ContextSummary.unscoped.filter(
            bucket_id=conversation.bucket_id, conversation=conversation, expires_at__gt=now
        )
        .order_by("-upto_message")
        .first()
    )
    return None if row is None else Summary(row.text, row.upto_message)


def summarise_earlier(
    own: BucketRef,
    conversation: Conversation,
    old: Sequence[Message],
    *,
    previous: Summary | None,
    model: str,
    max_tokens: int,
    now: datetime,
) -> Summary | None:
    """A summary of `old` (and of what the previous one covered), stored; None when the model fails.

    What leaves the window is queued for extraction in the transaction that stores the summary.
    """
    with tenant(own):
        zone, called = zone_of(own.workspace_id, own.owner_key), owner_name(own.workspace_id, own.owner_key)
    lines = list(lines_of(old, zone=zone, called=called))
    given = SummariseGiven(
        transcript=build(lines, zone=zone, max_messages=len(lines)),
        previous=previous.text if previous else "",
        max_tokens=max_tokens,
    )
    try:
        answered = ask(own, Summarise(), given, purpose="summarise", model=model, max_tokens=max_tokens)
    except ProviderError as error:
        log.warning("summary.failed", conversation=conversation.pk, kind=error.kind)
        _queue_extraction(own, conversation)
        return None
    text = answered.value.summary.strip()
    if not text:
        return None
    with tenant(own):
        ContextSummary.unscoped.update_or_create(
            bucket_id=own.id,
            conversation=conversation,
            upto_message=old[-1].pk,
            defaults={
                "workspace_id": own.workspace_id,
                "text": text,
                "tokens": estimate_message(text),
                "model": answered.model,
                "prompt_version": answered.prompt_version,
                "created_at": now,
                "expires_at": now + KEPT,
            },
        )
        if count_waiting(conversation):
            outbox.emit(own, EXTRACT, key="backlog")
    return Summary(text, old[-1].pk)


def _queue_extraction(own: BucketRef, conversation: Conversation) -> None:
    with tenant(own):
        if count_waiting(conversation):
            outbox.emit(own, EXTRACT, key="backlog")
