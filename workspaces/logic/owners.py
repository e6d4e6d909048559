"""Owner keys: the one name of a person whom agents remember. Pure."""

from __future__ import annotations

import unicodedata
from typing import Final

from workspaces.errors import BadInput

MAX_END_USER_ID: Final = 128
SYSTEM: Final = "system"


def user_key_of(user_id: int) -> str:
    """The key of a user of the web."""
    return f"user:{user_id}"


def channel_key_of(channel: str, sender_id: str) -> str:
    """The key of a sender in a channel; raises `BadInput` for an empty one: never a shared bucket."""
    if not sender_id.strip():
        raise BadInput("bad_sender", f"The {channel} message names no sender.")
    return f"{channel}:{check_end_user_id(sender_id)}"


def api_key_of(end_user_id: str, *, namespace: str) -> str:
    """The key of an integration's end user, taken literally; raises `BadInput`."""
    checked = check_end_user_id(end_user_id)
    return f"api:{namespace}/{checked}" if namespace else f"api:{checked}"


def check_end_user_id(raw: object) -> str:
    """`raw` if it is a text of 1 to 128 characters without control characters; raises `BadInput`."""
    if not isinstance(raw, str):
        raise BadInput(
            "bad_end_user_id",
            f"endUserId must be a text (JSON string), not {type(raw).__name__}: numbers lose digits.",
            field="endUserId",
        )
    if not 1 <= len(raw) <= MAX_END_USER_ID:
        raise BadInput(
            "bad_end_user_id",
            f"endUserId has {len(raw)} characters; 1 to {MAX_END_USER_ID} are allowed.",
            field="endUserId",
        )
    bad = next((letter for letter in raw if unicodedata.category(letter) in {"Cc", "Cs"}), None)
    if bad is not None:
        raise BadInput(
            "bad_end_user_id", f"endUserId holds the control character U+{ord(bad):04X}.", field="endUserId"
        )
    if not raw.strip():
        raise BadInput("bad_end_user_id", "endUserId is blank.", field="endUserId")
    return raw
