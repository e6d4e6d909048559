"""Recording what was said: whole turns from elsewhere, and the two ends of a turn that is answered here.

Messages, the bookkeeping and the news for extraction commit together. Secrets are redacted and the blocks that
we inject are stripped before anything is stored.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.utils import timezone

from memory.errors import check_message_size
from memory.logic import echo
from memory.models import Conversation, Message, Turn
from memory.queries import conversation_named
from memory.types import Incoming, ProviderAnswer, RecallItem
from workspaces import outbox
from workspaces.access import Opened
from workspaces.logic.redact import redact
from workspaces.logic.tokens import estimate_message
from workspaces.queries import owner_name
from workspaces.services.owners import name_owner
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

EXTRACT: Final = "memory.extract"
"""The topic of extraction; its lane is the bucket's lock."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was stored. `messages` are (id, the caller's own id) in the order they were sent, twins included."""

    conversation: Conversation
    stored: int
    duplicates: int
    messages: tuple[tuple[int, str | None], ...]


def record_turns(
    opened: Opened,
    *,
    conversation_id: str,
    messages: Sequence[Incoming],
    source: str,
    owner: str | None = None,
) -> Recorded:
    """Stores messages that another runtime exchanged, in order, and queues their extraction; one transaction.

    The conversation is made if it is new. A message whose `external_id` the conversation has already is not
    stored again. `owner` is what the person is called: a user's message by that speaker is their own.
    """
    for message in messages:
        check_message_size(message.content)
    own = opened.personal()
    now = timezone.now()
    with tenant(opened.reach):
        if owner is not None:
            name_owner(own.workspace_id, opened.owner_key, owner)
        called = owner or owner_name(own.workspace_id, opened.owner_key)
        conversation = _conversation(own, conversation_id, source=source, now=now)
        known = _known_ids(conversation, messages)
        fresh = _once(messages, known)
        rows = Message.objects.insert(
            [_message(conversation, message, called=called, now=now) for message in fresh]
        )
        known |= {row.external_id: row.pk for row in rows if row.external_id is not None}
        if rows:
            _touch(conversation, rows)
            _announce(own)
    unnamed = iter(row for row in rows if row.external_id is None)
    ids = tuple(
        (next(unnamed).pk if message.external_id is None else known[message.external_id], message.external_id)
        for message in messages
    )
    return Recorded(conversation, len(rows), len(messages) - len(rows), ids)


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that has been opened: the question is stored, the answer is awaited."""

    opened: Opened
    own: BucketRef
    conversation: Conversation
    question: Message
    turn_id: int
    started_at: datetime
    is_first_of_conversation: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended. `text` may be partial when it failed or was cancelled."""

    status: str
    text: str
    model: str
    items: tuple[RecallItem, ...] = ()
    providers: tuple[ProviderAnswer, ...] = ()
    window: dict[str, Any] = field(default_factory=dict)
    tools: tuple[dict[str, Any], ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None
    error: str = ""


def begin_turn(opened: Opened, *, conversation_id: str | None, text: str, source: str) -> Begun:
    """Stores the question and opens the turn, before any model is asked; one transaction.

    Without a `conversation_id` a new conversation begins; an unknown one is `NotFound`.
    """
    check_message_size(text)
    own = opened.personal()
    now = timezone.now()
    with tenant(opened.reach):
        if conversation_id is None:
            conversation = _conversation(own, uuid.uuid4().hex, source=source, now=now)
        else:
            conversation = conversation_named(own, conversation_id)
        incoming = Incoming(role="user", content=text)
        question = _message(conversation, incoming, called="", now=now)
        question.save(force_insert=True)
        _touch(conversation, [question])
        turn: Turn = Turn.objects.create(
            workspace_id=own.workspace_id,
            bucket_id=own.id,
            conversation=conversation,
            question=question,
            started_at=now,
        )
    return Begun(
        opened, own, conversation, question, turn.pk, now, is_first_of_conversation=conversation_id is None
    )


def finish_turn(begun: Begun, outcome: Outcome) -> Message | None:
    """Stores the answer and closes the turn, and queues extraction when it was answered; one transaction.

    What a cancelled or failed turn had said is kept, marked, and never learned from; the question is.
    """
    now = timezone.now()
    with tenant(begun.opened.reach):
        turn: Turn | None = Turn.objects.of(begun.own).select_for_update().filter(pk=begun.turn_id).first()
        if turn is None or turn.status != Turn.Status.STARTED:
            # Closed or erased meanwhile: nothing is brought back.
            return None
        answer = _answer(begun, outcome, now=now)
        turn.answer = answer
        turn.status = outcome.status
        turn.model = outcome.model[:128]
        turn.recalled = [asdict(item) for item in outcome.items]
        turn.providers = [_provider(one) for one in outcome.providers]
        turn.window = outcome.window
        turn.tools = list(outcome.tools)
        turn.input_tokens, turn.output_tokens = outcome.input_tokens, outcome.output_tokens
        turn.cost_usd = outcome.cost_usd
        turn.error = outcome.error[:300]
        turn.finished_at = now
        turn.ms = round((now - turn.started_at).total_seconds() * 1000)
        turn.save()
        rows = [begun.question] if answer is None else [begun.question, answer]
        _touch(begun.conversation, rows)
        _announce(begun.own)
    return answer


def _answer(begun: Begun, outcome: Outcome, *, now: datetime) -> Message | None:
    if not outcome.text:
        return None
    row = _message(begun.conversation, Incoming(role="assistant", content=outcome.text), called="", now=now)
    row.failed = outcome.status != Turn.Status.ANSWERED
    row.save(force_insert=True)
    return row


def delete_conversation(own: BucketRef, conversation: Conversation) -> None:
    """Removes a conversation with its messages and turns. Inside the caller's `tenant(…)`."""
    Conversation.objects.of(own).filter(pk=conversation.pk).delete()


# --- parts ------------------------------------------------------------------------------------------------


def _conversation(own: BucketRef, external_id: str, *, source: str, now: datetime) -> Conversation:
    """The conversation, locked, so that twins sent at once are seen; made if it is new."""
    Conversation.unscoped.bulk_create(
        [
            Conversation(
                workspace_id=own.workspace_id,
                bucket_id=own.id,
                external_id=external_id,
                source=source,
                created_at=now,
                last_at=now,
            )
        ],
        ignore_conflicts=True,
    )
    found: Conversation = Conversation.objects.of(own).select_for_update().get(external_id=external_id)
    return found


def _known_ids(conversation: Conversation, messages: Sequence[Incoming]) -> dict[str | None, int]:
    named = [message.external_id for message in messages if message.external_id is not None]
    if not named:
        return {}
    rows = Message.unscoped.filter(
        bucket_id=conversation.bucket_id, conversation=conversation, external_id__in=named
    )
    return dict(rows.values_list("external_id", "pk"))


def _once(messages: Sequence[Incoming], known: dict[str | None, int]) -> list[Incoming]:
    seen: set[str | None] = set(known)
    fresh = []
    for message in messages:
        if message.external_id is not None:
            if message.external_id in seen:
                continue
            seen.add(message.external_id)
        fresh.append(message)
    return fresh


def _message(conversation: Conversation, message: Incoming, *, called: str, now: datetime) -> Message:
    content = redact(echo.strip(message.content).text).text
    speaker = (message.speaker or "").strip()
    is_owner = message.role == "user" and (not speaker or speaker.casefold() == called.casefold())
    return Message(
        workspace_id=conversation.workspace_id,
        bucket_id=conversation.bucket_id,
        conversation=conversation,
        role=message.role,
        speaker=speaker,
        is_owner=is_owner,
        content=content,
        tokens=estimate_message(content),
        external_id=message.external_id,
        at=message.at or now,
        created_at=now,
    )


def _touch(conversation: Conversation, rows: Sequence[Message]) -> None:
    conversation.last_at = max([conversation.last_at, *(row.at for row in rows)])
    if not conversation.title:
        said = next((row.content for row in rows if row.role == "user" and row.content), "")
        conversation.title = " ".join(said.split())[:80]
    conversation.last_message = max([conversation.last_message, *(row.pk for row in rows)])
    Conversation.unscoped.filter(pk=conversation.pk).update(
        last_at=conversation.last_at, title=conversation.title, last_message=conversation.last_message
    )


def _announce(own: BucketRef) -> None:
    """One message a bucket waits: a run works through the backlog of all its conversations."""
    outbox.emit(own, EXTRACT, key="backlog")


def _provider(one: ProviderAnswer) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": one.name, "status": one.status, "ms": one.ms}
    if one.reason:
        shown["reason"] = one.reason
    return shown
