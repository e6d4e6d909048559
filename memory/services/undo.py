"""Taking back what a job did to an entry."""

from __future__ import annotations

from datetime import datetime

from memory.errors import changed_since
from memory.models import Entry, EntryRevision
from memory.services.entries import Draft, lock_entries, put_entry
from workspaces.models import Change
from workspaces.services.files import Author
from workspaces.types import AuthorKind, BucketRef


def undo_entry_change(bucket: BucketRef, change: Change, *, actor: str, now: datetime) -> None:
    """Takes one change of an entry back: what stood before stands again, by whom it was. Inside `tenant(…)`.

    An undone one stays undone. Raises `Conflict` "changed_since" when the entry was changed after it.
    """
    if change.decision == Change.Decision.UNDONE:
        return
    kind, _, key = change.target.partition("/")
    lock_entries(bucket, [(kind, key)])
    entry: Entry = Entry.objects.of(bucket).get(type=kind, key=key)
    if entry.revision != change.after_revision:
        raise changed_since(change.target)
    if change.before_revision != change.after_revision:
        old = EntryRevision.objects.of(bucket).get(entry=entry, number=change.before_revision)
        author = Author(AuthorKind(old.author_kind), actor, reason=f"Undid change {change.pk}.")
        put_entry(
            bucket,
            Draft(
                type=kind,
                key=key,
                content=change.before,
                source=old.source,
                confidence=entry.confidence,
                expires_at=entry.expires_at,
                quotes=old.quotes,
                prompt_version=old.prompt_version,
                model=old.model,
            ),
            author=author,
            now=now,
        )
    change.decision, change.decided_by, change.decided_at = Change.Decision.UNDONE.value, actor[:200], now
    change.save(update_fields=["decision", "decided_by", "decided_at"])
