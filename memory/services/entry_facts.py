"""The fact that follows an entry: learned when the entry is written, retired when it goes.

Inside the caller's `tenant(…)`, after the entry's row is locked. What a machine wrote of itself is no evidence:
such an entry has no fact, one that came from the owner's own words has theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from facts.logic.normal import fingerprint
from facts.models import Fact
from facts.services.learn import learn
from facts.services.locks import lock_facts
from facts.services.retire import retire_facts
from facts.types import Claim, Source, SourceKind
from memory.models import Entry
from workspaces.llm import RULES
from workspaces.services.files import Author
from workspaces.types import AuthorKind, BucketRef

PERSON_CONFIDENCE = 0.9
"""Of what a person or a program wrote down on purpose."""


def follow_entry(
    bucket: BucketRef,
    entry: Entry,
    quotes: Sequence[dict[str, Any]],
    *,
    author: Author,
    now: datetime,
    said_at: datetime | None,
    prompt: str,
) -> None:
    """The fact of an entry becomes what the entry says. Decided by rules: no model is asked in a transaction."""
    lock_facts(bucket)
    sources = _sources(entry, quotes, author=author, now=now, said_at=said_at, prompt=prompt)
    statement = statement_of(entry)
    is_elsewhere = _is_known_otherwise(bucket, entry, statement)
    stale = _facts(bucket, entry)
    if stale and (not sources or is_elsewhere):
        _retire(bucket, stale, author=author, now=now, reason="The entry says something else now.")
    if not sources:
        return
    claim = Claim(
        statement=statement,
        sources=sources,
        confidence=PERSON_CONFIDENCE if entry.confidence is None else entry.confidence,
        predicate=entry.key,
        object=entry.content,
        category=entry.type,
        expires_at=entry.expires_at,
        derived_from=_name(entry),
    )
    learn(bucket, [claim], actor=author.actor, model=RULES, now=now, run_id=author.run_id)


def unfollow_entry(bucket: BucketRef, entry: Entry, *, author: Author, now: datetime) -> None:
    """Retires the fact of an entry that went."""
    if facts := _facts(bucket, entry):
        _retire(bucket, facts, author=author, now=now, reason=author.reason or "The entry was deleted.")


def statement_of(entry: Entry) -> str:
    """What an entry states: its content, with its key in front where that alone would say too little."""
    text = " ".join(entry.content.split())
    is_telling = len(text.split()) >= 3 or (not text.isascii() and len(text) >= 5)
    return text if is_telling else f"{entry.key.replace('_', ' ')}: {text}"


def _is_known_otherwise(bucket: BucketRef, entry: Entry, statement: str) -> bool:
    """Whether a fact of another origin says that already: then the entry adds to it, and has none of its own."""
    rows = Fact.objects.of(bucket).filter(fingerprint=fingerprint(statement), retired_at=None)
    rows = rows.filter(tier=Fact.Tier.LONG, verbatim=False).exclude(derived_from=_name(entry))
    return bool(rows.exists())


def _name(entry: Entry) -> str:
    return f"entry:{entry.pk}"


def _facts(bucket: BucketRef, entry: Entry) -> list[Fact]:
    return list(Fact.objects.of(bucket).filter(derived_from=_name(entry), retired_at=None))


def _retire(bucket: BucketRef, facts: list[Fact], *, author: Author, now: datetime, reason: str) -> None:
    retire_facts(
        bucket,
        facts,
        why=Fact.Retired.SOURCE_GONE,
        actor=author.actor,
        reason=reason,
        now=now,
        run_id=author.run_id,
    )


def _sources(
    entry: Entry,
    quotes: Sequence[dict[str, Any]],
    *,
    author: Author,
    now: datetime,
    said_at: datetime | None,
    prompt: str,
) -> tuple[Source, ...]:
    if author.kind not in {AuthorKind.MACHINE, AuthorKind.SYSTEM}:
        kind = SourceKind.IMPORT if author.kind is AuthorKind.IMPORT else SourceKind.ENTRY
        return (Source(kind, _name(entry), now, quote=entry.content[:500], entry_id=entry.pk),)
    if entry.confidence is None:
        return ()
    return tuple(
        Source(
            SourceKind.MESSAGE,
            f"message:{one['messageId']}",
            said_at or now,
            quote=str(one.get("text", ""))[:500],
            message_id=one["messageId"],
            entry_id=entry.pk,
            speaker=str(one.get("speaker", ""))[:128],
            prompt=prompt,
        )
        for one in quotes
        if one.get("messageId") is not None
    )
