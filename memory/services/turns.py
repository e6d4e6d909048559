"""Recording what was said: whole turns from elsewhere, and the two ends of a turn that is answered here.

Messages, the bookkeeping and the news for extraction commit together. Secrets are redacted and the blocks that
we inject are stripped before anything is stored.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from django.utils import timezone

from memory.errors import check_message_size
from memory.logic import echo
from memory.models import Conversation, Message, RecallHit, Turn
from memory.queries import conversation_named, messages_of
from memory.services.hits import record_hits
from memory.services.indexing import forget_messages, index_messages
from memory.services.sync import announce_turn
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
    request_id: str | None = None,
) -> Recorded:
    """Stores messages that another runtime exchanged, in order, and queues their extraction; one transaction.

    The conversation is made if it is new. A message whose `external_id` the conversation has already is not
    stored again, nor is one of a request that was sent before (`request_id`). `owner` is what the person is
    called: a user's message by that speaker is their own.
    """
    for message in messages:
        check_message_size(message.content)
    own = opened.personal()
    now = timezone.now()
    named = [_named(message, request_id, number) for number, message in enumerate(messages)]
    with tenant(opened.reach):
        # The lane before the conversation, as extraction takes them.
        _announce(own)
        conversation = _locked(own, conversation_id, source=source, now=now)
        called = _called(opened, conversation, messages, owner)
        known = _known(conversation, named)
        fresh = _once(named, known)
        rows = Message.objects.insert([_message(conversation, one, called=called, now=now) for one in fresh])
        known |= {key: row.pk for one, row in zip(fresh, rows, strict=True) if (key := one.key) is not None}
        if rows:
            index_messages(own, conversation, rows, called=called, agent=opened.agent.name)
            _touch(conversation, rows)
            announce_turn(own, rows)
    unnamed = iter(row.pk for one, row in zip(fresh, rows, strict=True) if one.key is None)
    ids = tuple(
        (next(unnamed) if one.key is None else known[one.key], one.message.external_id) for one in named
    )
    return Recorded(conversation, len(rows), len(messages) - len(rows), ids)


@dataclass(frozen=True, slots=True)
class _Named:
    """A message with what it is recognised by when it comes again, if anything: (column, value)."""

    message: Incoming
    key: tuple[str, str] | None


def _named(message: Incoming, request_id: str | None, number: int) -> _Named:
    if message.external_id is not None:
        return _Named(message, ("external_id", message.external_id))
    return _Named(message, None if request_id is None else ("request_key", f"{request_id}:{number}"))


def _called(
    opened: Opened, conversation: Conversation, messages: Sequence[Incoming], owner: str | None
) -> str:
    """What the owner is called: as told now, as known, or as the only one who speaks as the user here."""
    workspace_id = opened.agent.workspace_id
    if owner is not None and owner.strip():
        name_owner(workspace_id, opened.owner_key, owner.strip())
        return owner.strip()
    known = owner_name(workspace_id, opened.owner_key)
    if known:
        return known
    speakers = {message.speaker.strip() for message in messages if message.role == "user" and message.speaker}
    speakers |= set(
        messages_of(conversation)
        .filter(role="user")
        .exclude(speaker="")
        .order_by()  # an order would make every message a row of its own
        .values_list("speaker", flat=True)
        .distinct()[:2]
    )
    return speakers.pop() if len(speakers) == 1 else ""


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
        if conversation_id is not None:
            conversation_named(own, conversation_id)
        # Locked: within a conversation ids follow the order of commits, or the watermark could pass a message.
        conversation = _locked(own, conversation_id or uuid.uuid4().hex, source=source, now=now)
        question = _message(
            conversation, _Named(Incoming(role="user", content=text), None), called="", now=now
        )
        question.save(force_insert=True)
        called = owner_name(own.workspace_id, opened.owner_key)
        index_messages(own, conversation, [question], called=called, agent=opened.agent.name)
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
        _announce(begun.own)
        conversation = (
            Conversation.objects.of(begun.own).select_for_update().filter(pk=begun.conversation.pk).first()
        )
        turn: Turn | None = Turn.objects.of(begun.own).select_for_update().filter(pk=begun.turn_id).first()
        if conversation is None or turn is None or turn.status != Turn.Status.STARTED:
            # Closed or erased meanwhile: nothing is brought back.
            return None
        answer = _answer(conversation, outcome, now=now)
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
        is_job = conversation.source == Conversation.Source.CRON.value
        record_hits(
            begun.own,
            outcome.items,
            query=begun.question.content,
            source=RecallHit.HitSource.JOB if is_job else RecallHit.HitSource.CHAT,
            now=now,
            turn_id=turn.pk,
        )
        if answer is not None:
            index_messages(begun.own, conversation, [answer], called="", agent=begun.opened.agent.name)
            _touch(conversation, [answer])
            if outcome.status == Turn.Status.ANSWERED:
                announce_turn(begun.own, [begun.question, answer])
    return answer


def _answer(conversation: Conversation, outcome: Outcome, *, now: datetime) -> Message | None:
    if not outcome.text:
        return None
    said = _Named(Incoming(role="assistant", content=outcome.text), None)
    row = _message(conversation, said, called="", now=now)
    row.failed = outcome.status != Turn.Status.ANSWERED
    row.save(force_insert=True)
    return row


def delete_conversation(own: BucketRef, conversation: Conversation) -> None:
    """Removes a conversation with its messages and turns, and from the index. Inside the caller's `tenant(…)`."""
    forget_messages(messages_of(conversation).values_list("pk", flat=True))
    Conversation.objects.of(own).filter(pk=conversation.pk).delete()


# --- parts ------------------------------------------------------------------------------------------------


def _locked(own: BucketRef, external_id: str, *, source: str, now: datetime) -> Conversation:
    """The conversation, locked until the commit; made if it is new."""
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


def _known(conversation: Conversation, named: Sequence[_Named]) -> dict[tuple[str, str], int]:
    """The ids of those that the conversation has already."""
    found: dict[tuple[str, str], int] = {}
    for column in ("external_id", "request_key"):
        wanted = [one.key[1] for one in named if one.key is not None and one.key[0] == column]
        if wanted:
            rows = messages_of(conversation).filter(**{f"{column}__in": wanted}).values_list(column, "pk")
            found |= {(column, value): pk for value, pk in rows}
    return found


def _once(named: Sequence[_Named], known: Mapping[tuple[str, str], int]) -> list[_Named]:
    seen = set(known)
    fresh = []
    for one in named:
        if one.key is not None:
            if one.key in seen:
                continue
            seen.add(one.key)
        fresh.append(one)
    return fresh


def _message(conversation: Conversation, named: _Named, *, called: str, now: datetime) -> Message:
    message = named.message
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
        request_key=named.key[1] if named.key is not None and named.key[0] == "request_key" else None,
        at=message.at or now,
        created_at=now,
    )


def _touch(conversation: Conversation, rows: Sequence[Message]) -> None:
    conversation.last_at = max([conversation.last_at, *(row.at for row in rows)])
    if not conversation.title:
        said = next((row.content for row in rows if row.role == "user" and row.content), "")
        conversation.title = " ".join(said.split())[:80]
    conversation.length += len(rows)
    conversation.last_message = max([conversation.last_message, *(row.pk for row in rows)])
    Conversation.unscoped.filter(pk=conversation.pk).update(
        last_at=conversation.last_at,
        title=conversation.title,
        last_message=conversation.last_message,
        length=conversation.length,
    )


def _announce(own: BucketRef) -> None:
    """One message a bucket waits: a run works through the backlog of all its conversations."""
    outbox.emit(own, EXTRACT, key="backlog")


def _provider(one: ProviderAnswer) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": one.name, "status": one.status, "ms": one.ms}
    if one.reason:
        shown["reason"] = one.reason
    return shown
