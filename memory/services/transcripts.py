"""Messages as the lines of a transcript."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import tzinfo

from memory.logic.transcript import Line
from memory.models import Message


def lines_of(messages: Iterable[Message], *, zone: tzinfo, called: str) -> Iterator[Line]:
    """Each message with who said it and when, in the owner's zone; the owner is called by their name."""
    for message in messages:
        speaker = message.speaker or (called if message.is_owner else "") or None
        yield Line(
            message_id=message.pk,
            role=message.role,
            speaker=speaker,
            at=message.at.astimezone(zone),
            text=message.content,
            is_owner=message.is_owner,
        )
