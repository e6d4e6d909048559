"""Text from outside as Postgres can hold it. Pure."""

from __future__ import annotations


def storable(text: str) -> str:
    """The text without NUL, and with half surrogate pairs replaced: what a model writes is not refused for those."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")
