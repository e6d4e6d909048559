"""Errors of the memory app are those of the domain; this names the codes that only it uses."""

from __future__ import annotations

from workspaces.errors import Conflict, NotFound, TooLarge

MAX_MESSAGE_BYTES = 256 * 1024
"""Bytes in UTF-8 that one message may have (contract §4)."""


def conversation_not_found(external_id: str) -> NotFound:
    """There is no such conversation for this caller."""
    return NotFound("conversation_not_found", f"There is no conversation {external_id!r}.")


def entry_not_found(which: str) -> NotFound:
    """There is no such entry for this caller."""
    return NotFound("entry_not_found", f"There is no entry {which!r}.")


def entry_forgotten(kind: str, key: str) -> Conflict:
    """A person had that forgotten; it is not written again."""
    return Conflict("forgotten", f"What {kind}/{key} says was forgotten at a person's wish.")


def changed_since(which: str) -> Conflict:
    """What is to be undone was changed again after it."""
    return Conflict("changed_since", f"{which} was changed after this; see its history.")


def check_message_size(content: str) -> None:
    """Raises `TooLarge` for a message above 256 KiB."""
    size = len(content.encode(errors="surrogatepass"))
    if size > MAX_MESSAGE_BYTES:
        raise TooLarge(
            "message_too_large", f"A message holds at most {MAX_MESSAGE_BYTES} bytes; this has {size}."
        )
