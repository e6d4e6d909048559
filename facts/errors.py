"""Errors of the facts app are those of the domain; this names the codes that only it uses. Pure."""

from __future__ import annotations

from typing import Final

from workspaces.errors import BadInput, Conflict, NotFound

MAX_STATEMENT: Final = 8192
"""Characters of a fact (contract §6)."""


def fact_not_found(fact_id: int) -> NotFound:
    """There is no such fact for this caller."""
    return NotFound("fact_not_found", f"There is no fact {fact_id}.")


def forgotten() -> Conflict:
    """A tombstone keeps it out; it says nothing of the words."""
    return Conflict(
        "forgotten", "This was forgotten and is not learned again; send revive: true to lift that."
    )


def check_statement(statement: str) -> str:
    """The statement, trimmed; raises `BadInput` for one that is empty, too long or holds control characters."""
    text = statement.strip()
    if not text:
        raise BadInput("empty_statement", "The statement is empty; say what is so.", field="statement")
    if len(text) > MAX_STATEMENT:
        raise BadInput(
            "statement_too_long",
            f"A statement has at most {MAX_STATEMENT} characters; this has {len(text)}.",
            field="statement",
        )
    bad = next((char for char in text if ord(char) < 32 and char not in "\n\t"), None)
    if bad is not None:
        raise BadInput(
            "statement_has_control",
            f"The statement holds the control character U+{ord(bad):04X}.",
            field="statement",
        )
    return text
