"""Errors of the facts app are those of the domain; this names the codes that only it uses. Pure."""

from __future__ import annotations

from typing import Any, Final

from workspaces.errors import BadInput, Conflict, Forbidden, NotFound

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


def item_not_found(recall_id: str) -> NotFound:
    """Nothing within this caller's reach has that recall id."""
    return NotFound("item_not_found", f"There is no recalled item {recall_id[:80]!r}.")


def stale_fact(current: int, fact: dict[str, Any]) -> Conflict:
    """It was changed since the caller read it; `fact` is what stands there now."""
    return Conflict(
        "stale_revision",
        f"The fact is at revision {current} now; read it again and repeat the change.",
        currentRevision=current,
        fact=fact,
    )


def already_known(fact_id: int) -> Conflict:
    """Another current fact says just this."""
    return Conflict("already_known", f"Fact {fact_id} says this already.", factId=fact_id)


def fact_is_retired(fact_id: int) -> Conflict:
    """What holds no more is history, and is not rewritten."""
    return Conflict("fact_retired", f"Fact {fact_id} is retired; state what holds now as a new one.")


def only_members_judge() -> Forbidden:
    """Shared memory is judged by those who may write it."""
    return Forbidden("role_needed", "This item is shared; judging what all share needs the role member.")


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
