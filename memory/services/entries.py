"""Writing entries. Every change is a version with its author, reason and words; a deleted entry keeps its row.

Each function runs inside the caller's `tenant(…)` and locks the entry's row until the commit: after files, before
facts. Whoever writes several in one transaction calls `lock_entries` first. What is derived from an entry – its
record in the index and its fact – follows in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models.functions import Collate

from facts.services.tombstones import forgotten_among
from memory.errors import entry_forgotten, entry_not_found
from memory.logic import structured
from memory.models import Entry, EntryRevision
from memory.queries import current_entries
from memory.services.entry_facts import follow_entry, unfollow_entry
from memory.services.indexing import forget_entry, index_entry
from memory.tools.entries import Put
from workspaces.errors import Conflict, TooLarge
from workspaces.logic.redact import redact
from workspaces.services.audit import record_audit
from workspaces.services.files import Author
from workspaces.tenancy import Door, door, tenant
from workspaces.types import AuthorKind, BucketRef, Scope

MOST_ENTRIES: Final = 2000
"""Entries of one type in a bucket."""
MOST_EXPIRED: Final = 2000
"""Of one round of upkeep."""
EXPIRED: Final = "It has expired."


@dataclass(frozen=True, slots=True)
class Draft:
    """An entry as somebody wants it. `quotes` are the words it came from: `[{messageId, speaker, text}]`.

    `confidence` only of one that came through the gate of extraction; `prompt_version` and `model` tell by what.
    """

    type: str
    key: str
    content: str
    source: str = ""
    confidence: float | None = None
    expires_at: datetime | None = None
    quotes: Sequence[dict[str, Any]] = ()
    prompt: str = ""
    prompt_version: int | None = None
    model: str = ""
    said_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """What a write did to an entry; `before` is its earlier content, empty for a new one."""

    entry: Entry
    before: str
    is_new: bool
    is_changed: bool
    notes: tuple[str, ...] = field(default=())


def put_entry(
    bucket: BucketRef, draft: Draft, *, author: Author, now: datetime, base: int | None = None
) -> Kept:
    """Makes or replaces the entry of that type and key.

    Secrets are redacted. With a stale `base` (0: there was none): `Conflict` "stale_revision" with the current
    content. Raises `BadInput` for a bad type, key or content, `Conflict` "forgotten" for what was forgotten.
    The same content again changes nothing.
    """
    kind, key = structured.check_type(draft.type), structured.check_key(draft.key)
    redacted = redact(structured.check_content(draft.content))
    content = structured.check_content(redacted.text)
    if forgotten_among(bucket, [content, f"{key.replace('_', ' ')}: {content}"]):
        raise entry_forgotten(kind, key)
    notes = (f"{redacted.count} secrets were taken out of it.",) if redacted.count else ()
    lock_entries(bucket, [(kind, key)])
    entry = _locked(bucket, kind, key)
    _check_base(entry, base, now=now)
    is_new = not is_shown(entry, now=now)
    before = "" if is_new else entry.content
    same_end = draft.expires_at == entry.expires_at
    if not is_new and content == before and same_end and _outranks(entry, author):
        return Kept(entry, before, is_new=False, is_changed=False, notes=notes)
    if is_new and current_entries(bucket, now=now).filter(type=kind).count() >= MOST_ENTRIES:
        raise TooLarge(
            "too_many_entries",
            f"There are {MOST_ENTRIES} {kind} entries already; delete or merge some first.",
        )
    entry.content, entry.source = content, (draft.source or author.kind.value)[:200]
    entry.author_kind, entry.confidence = author.kind.value, draft.confidence
    entry.expires_at, entry.deleted_at = draft.expires_at, None
    if is_new:
        entry.created_at = now
    _revise(bucket, entry, op=EntryRevision.Op.PUT, author=author, now=now, draft=draft)
    index_entry(bucket, entry)
    follow_entry(
        bucket, entry, draft.quotes, author=author, now=now, said_at=draft.said_at, prompt=draft.prompt
    )
    return Kept(entry, before, is_new=is_new, is_changed=True, notes=notes)


def delete_entry(
    bucket: BucketRef, kind: str, key: str, *, author: Author, now: datetime, base: int | None = None
) -> Kept:
    """Takes an entry away; its versions stay, and the fact that followed it is retired.

    Raises `NotFound` when there is none, `Conflict` "stale_revision".
    """
    entry = (
        Entry.objects.of(bucket)
        .select_for_update()
        .filter(type=structured.check_type(kind), key=key, deleted_at=None)
        .first()
    )
    if entry is None or not is_shown(entry, now=now):
        raise entry_not_found(f"{kind}/{key[:80]}")
    _check_base(entry, base, now=now)
    return _delete(bucket, entry, author=author, now=now)


class ToolStore:
    """How the agent's tools write entries: `memory.tools.entries.EntryStore`."""

    def put(
        self, bucket: BucketRef, kind: str, key: str, content: str, *, author: Author, now: datetime
    ) -> Put:
        """Makes or replaces one."""
        kept = put_entry(bucket, Draft(kind, key, content, source="agent"), author=author, now=now)
        return Put(kept.is_new, kept.is_changed, kept.notes)

    def delete(self, bucket: BucketRef, kind: str, key: str, *, author: Author, now: datetime) -> None:
        """Takes one away."""
        delete_entry(bucket, kind, key, author=author, now=now)


def lock_entries(bucket: BucketRef, names: Iterable[tuple[str, str]]) -> None:
    """Locks the entries of those types and keys, in the one order that all keep to.

    One that is not there yet is made ready, and is still no entry (its revision is 0).
    """
    wanted = sorted(set(names))
    epoch = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    rows = [
        Entry(
            workspace_id=bucket.workspace_id,
            bucket_id=bucket.id,
            type=kind,
            key=key,
            author_kind=AuthorKind.SYSTEM.value,
            revision=0,
            created_at=epoch,
            updated_at=epoch,
            deleted_at=epoch,
        )
        for kind, key in wanted
    ]
    Entry.unscoped.bulk_create(rows, ignore_conflicts=True)
    keys = {key for _, key in wanted}
    found = Entry.objects.of(bucket).filter(key__in=keys).order_by("type", Collate("key", "C"))
    list(found.select_for_update().values_list("pk", flat=True))


def is_shown(entry: Entry, *, now: datetime) -> bool:
    """Whether an entry is there for readers: not deleted and not expired."""
    return entry.deleted_at is None and (entry.expires_at is None or entry.expires_at > now)


def trust_of_entry(bucket: BucketRef, entry_id: int) -> float | None:
    """What an entry is trusted before anybody votes on it. Inside `tenant(…)`."""
    confidence: float | None = (
        Entry.objects.of(bucket).filter(pk=entry_id).values_list("confidence", flat=True).first()
    )
    return confidence


def clear_expired(now: datetime) -> None:
    """Deletes entries whose time is up, each with a version that says so. Upkeep; safe to run twice at once."""
    with door(Door.MAINTENANCE):
        stale = Entry.unscoped.filter(deleted_at=None, expires_at__lte=now).select_related("bucket__owner")
        places = {
            bucket.id: bucket for bucket in (one.bucket.ref() for one in stale.order_by("pk")[:MOST_EXPIRED])
        }
    author = Author(AuthorKind.SYSTEM, "job:upkeep", reason=EXPIRED)
    for bucket in places.values():
        with tenant(bucket):
            rows = Entry.objects.of(bucket).filter(deleted_at=None, expires_at__lte=now)
            for entry in rows.order_by("type", Collate("key", "C")).select_for_update():
                _delete(bucket, entry, author=author, now=now)


def _delete(bucket: BucketRef, entry: Entry, *, author: Author, now: datetime) -> Kept:
    before = entry.content
    entry.deleted_at = now
    _revise(bucket, entry, op=EntryRevision.Op.DELETE, author=author, now=now, draft=None)
    forget_entry(entry)
    unfollow_entry(bucket, entry, author=author, now=now)
    return Kept(entry, before, is_new=False, is_changed=True)


def _locked(bucket: BucketRef, kind: str, key: str) -> Entry:
    entry: Entry = Entry.objects.of(bucket).get(type=kind, key=key)
    return entry


def _outranks(entry: Entry, author: Author) -> bool:
    """Whether saying the same again adds nothing: a person who says it makes it their own."""
    return entry.author_kind == author.kind.value or author.kind is AuthorKind.MACHINE


def _check_base(entry: Entry, base: int | None, *, now: datetime) -> None:
    if base is None or base == entry.revision or (base == 0 and not is_shown(entry, now=now)):
        return
    raise Conflict(
        "stale_revision",
        f"{entry} is at revision {entry.revision}, not {base}; its content is told with this.",
        currentRevision=entry.revision,
        content=entry.content if is_shown(entry, now=now) else "",
    )


def _revise(
    bucket: BucketRef, entry: Entry, *, op: str, author: Author, now: datetime, draft: Draft | None
) -> None:
    entry.revision += 1
    entry.updated_at = now
    entry.save()
    EntryRevision.objects.create(
        workspace_id=bucket.workspace_id,
        bucket_id=bucket.id,
        entry=entry,
        number=entry.revision,
        op=op,
        content=entry.content if op == EntryRevision.Op.PUT else "",
        source=entry.source,
        author_kind=author.kind.value,
        actor=author.actor[:200],
        reason=author.reason[:300],
        quotes=_quotes(draft.quotes) if draft else [],
        prompt_version=draft.prompt_version if draft else None,
        model=draft.model[:128] if draft else "",
        run_id=author.run_id,
        created_at=now,
    )
    if author.kind in {AuthorKind.PERSON, AuthorKind.PROGRAM, AuthorKind.IMPORT}:
        record_audit(
            bucket.workspace_id,
            actor=author.actor,
            action="entry.deleted" if op == EntryRevision.Op.DELETE else "entry.written",
            target=f"bucket:{bucket.id}/{entry}",
            address=author.address,
            detail={"revision": entry.revision, "scope": Scope(bucket.scope).value},
        )


def _quotes(quotes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one | {"text": redact(str(one.get("text", ""))[:500]).text} for one in quotes]
