"""Reads of the memory app. Inside the caller's `tenant(…)`."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Count, Q, QuerySet

from memory.errors import conversation_not_found, entry_not_found
from memory.logic.structured import Shown
from memory.models import Conversation, Entry, EntryRevision, Message, Turn
from workspaces.types import BucketRef, Reach


def conversation_named(own: BucketRef | None, external_id: str) -> Conversation:
    """The conversation of that name in a person's own bucket; raises `NotFound`."""
    # Postgres cannot even be asked for a NUL.
    found: Conversation | None = (
        Conversation.objects.of(own).filter(external_id=external_id).first()
        if own and "\0" not in external_id
        else None
    )
    if found is None:
        raise conversation_not_found(external_id)
    return found


def conversations_of(own: BucketRef) -> QuerySet[Conversation]:
    """A person's conversations, the latest first, with their number of messages."""
    rows: QuerySet[Conversation] = Conversation.objects.of(own)
    return rows.annotate(message_count=Count("messages")).order_by("-last_at", "-pk")


def messages_of(conversation: Conversation) -> QuerySet[Message]:
    """The messages of a conversation, in order."""
    return Message.unscoped.filter(bucket_id=conversation.bucket_id, conversation=conversation).order_by("pk")


def waiting_messages(conversation: Conversation, *, limit: int) -> list[Message]:
    """The next messages that extraction has not worked through, in order."""
    return list(messages_of(conversation).filter(pk__gt=conversation.extracted_upto)[:limit])


def count_waiting(conversation: Conversation) -> int:
    """How many messages extraction has not worked through."""
    return messages_of(conversation).filter(pk__gt=conversation.extracted_upto).count()


def recalled_texts(conversation: Conversation, *, question_ids: list[int]) -> list[str]:
    """The texts that were put before the agent in the turns of these messages."""
    rows = Turn.unscoped.filter(
        bucket_id=conversation.bucket_id, conversation=conversation, answer_id__in=question_ids
    ).values_list("recalled", flat=True)
    return [item["text"] for recalled in rows for item in recalled if item.get("text")]


def current_entries(whose: BucketRef | Reach, *, now: datetime) -> QuerySet[Entry]:
    """The entries that are there: not deleted, not expired; newest first."""
    own = isinstance(whose, BucketRef)
    rows: QuerySet[Entry] = Entry.objects.of(whose) if own else Entry.objects.within(whose)
    there = rows.filter(Q(expires_at=None) | Q(expires_at__gt=now), deleted_at=None)
    return there.order_by("-updated_at", "-pk")


def entry_within(reach: Reach, entry_id: int) -> Entry:
    """The entry of that id, also a deleted one: its versions can still be read; raises `NotFound`."""
    rows: QuerySet[Entry] = Entry.objects.within(reach).filter(pk=entry_id, revision__gt=0)
    found = rows.select_related("bucket__owner").first()
    if found is None:
        raise entry_not_found(str(entry_id))
    return found


def entry_revisions(entry: Entry) -> QuerySet[EntryRevision]:
    """The versions of an entry, newest first."""
    rows: QuerySet[EntryRevision] = EntryRevision.objects.within(
        Reach(entry.workspace_id, (entry.bucket_id,))
    )
    return rows.filter(entry_id=entry.pk).order_by("-number")


def shown_of(entry: Entry) -> Shown:
    """An entry as a value."""
    return Shown(
        type=entry.type,
        key=entry.key,
        content=entry.content,
        source=entry.source,
        updated_at=entry.updated_at,
        author_kind=entry.author_kind,
        is_gated=entry.confidence is not None,
    )
