"""Reads of the memory app. Inside the caller's `tenant(…)`."""

from __future__ import annotations

from django.db.models import Count, QuerySet

from memory.errors import conversation_not_found
from memory.models import Conversation, Message, Turn
from workspaces.types import BucketRef


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
