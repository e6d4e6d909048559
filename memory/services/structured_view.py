"""`structured/<type>.md`: entries as a file. Reading renders them, writing takes the file apart again.

Rows are the truth: the view's revision is the number of changes that its entries have had.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Max, Sum
from django.db.models.functions import Collate
from django.utils import timezone

from memory.logic import structured
from memory.logic.structured import Parsed, Section, Shown
from memory.models import Entry, EntryRevision
from memory.queries import current_entries, shown_of
from memory.services.entries import Draft, delete_entry, lock_entries, put_entry
from workspaces.errors import Conflict, NotFound
from workspaces.logic.diff import unified
from workspaces.services.files import Author, Written
from workspaces.services.views import ViewFile
from workspaces.types import AuthorKind, BucketRef, Reach


@dataclass(frozen=True)
class StructuredView:
    """The view, as `workspaces.services.views` asks for it."""

    def owns(self, name: str) -> bool:
        """The four files, one for each type."""
        return structured.type_of(name) is not None

    def files(self, reach: Reach, *, name: str | None = None) -> Sequence[ViewFile]:
        """The files that hold entries; two queries."""
        now = timezone.now()
        wanted = [structured.type_of(name)] if name is not None else list(structured.TYPES)
        by_place: dict[tuple[int, str], list[Shown]] = {}
        for entry in current_entries(reach, now=now).filter(type__in=wanted).order_by("pk"):
            by_place.setdefault((entry.bucket_id, entry.type), []).append(shown_of(entry))
        if not by_place:
            return []
        counted = (
            Entry.objects.within(reach)
            .filter(type__in=wanted)
            .values("bucket_id", "type")
            .annotate(changes=Sum("revision"), latest=Max("updated_at"))
        )
        return [
            ViewFile(
                bucket_id=row["bucket_id"],
                name=structured.name_of(row["type"]),
                content=structured.render(by_place[row["bucket_id"], row["type"]]),
                revision=row["changes"],
                updated_at=row["latest"],
            )
            for row in counted
            if (row["bucket_id"], row["type"]) in by_place
        ]

    def write(
        self, bucket: BucketRef, name: str, content: str, *, author: Author, base: int | None
    ) -> Written:
        """Entries become what the file says: new ones are made, changed ones replaced, those left out deleted.

        While any part cannot be read, nothing is deleted: what was meant to stay may stand in that part. A
        machine's file changes and deletes nothing that a person made. The warnings tell all of it.
        """
        kind = structured.type_of(name) or ""
        parsed = structured.parse(content)
        self._lock(bucket, kind, parsed)
        before = self._state(bucket, name)
        self._check_base(bucket, name, kind, before, base=base)
        warnings = [str(problem) for problem in parsed.problems]
        there = {one.key: one for one in current_entries(bucket, now=timezone.now()).filter(type=kind)}
        warnings += self._put(bucket, kind, parsed, there, author=author)
        warnings += self._delete_missing(bucket, kind, parsed, there, author=author)
        return self._written(bucket, name, before, warnings)

    def delete(self, bucket: BucketRef, name: str, *, author: Author, base: int | None) -> Written:
        """Deletes every entry of the type; a machine's delete leaves those that a person made."""
        kind = structured.type_of(name) or ""
        self._lock(bucket, kind, Parsed((), ()))
        before = self._state(bucket, name)
        if not before.content:
            raise NotFound("file_not_found", f"There is no file {name!r}.")
        self._check_base(bucket, name, kind, before, base=base)
        there = {one.key: one for one in current_entries(bucket, now=timezone.now()).filter(type=kind)}
        warnings = self._delete_missing(bucket, kind, Parsed((), ()), there, author=author)
        return self._written(bucket, name, before, warnings)

    def _put(
        self, bucket: BucketRef, kind: str, parsed: Parsed, there: dict[str, Entry], *, author: Author
    ) -> list[str]:
        now, told = timezone.now(), []
        for section in parsed.sections:
            entry = there.get(section.key)
            if entry is not None and entry.content == section.content:
                continue
            if entry is not None and _is_kept_from(entry, author):
                told.append(f"{section.key} was made by a person and stays as it is.")
                continue
            kept = put_entry(bucket, _draft(kind, section, entry), author=author, now=now)
            told += [f"{section.key}: {note}" for note in kept.notes]
        return told

    def _delete_missing(
        self, bucket: BucketRef, kind: str, parsed: Parsed, there: dict[str, Entry], *, author: Author
    ) -> list[str]:
        named = {section.key for section in parsed.sections}
        missing = [key for key in sorted(there) if key not in named]
        if missing and parsed.problems:
            return [f"Nothing was deleted while parts could not be read; these stay: {', '.join(missing)}."]
        kept = [key for key in missing if _is_kept_from(there[key], author)]
        for key in missing:
            if key not in kept:
                delete_entry(bucket, kind, key, author=author, now=timezone.now())
        return [f"These were made by a person and stay: {', '.join(kept)}."] if kept else []

    def _lock(self, bucket: BucketRef, kind: str, parsed: Parsed) -> None:
        rows = Entry.objects.of(bucket).filter(type=kind).order_by(Collate("key", "C"))
        keys = {*rows.values_list("key", flat=True), *(section.key for section in parsed.sections)}
        lock_entries(bucket, [(kind, key) for key in keys])

    def _state(self, bucket: BucketRef, name: str) -> ViewFile:
        found = self.files(Reach(bucket.workspace_id, (bucket.id,)), name=name)
        return next(iter(found), ViewFile(bucket.id, name, "", 0, timezone.now()))

    def _check_base(
        self, bucket: BucketRef, name: str, kind: str, now_there: ViewFile, *, base: int | None
    ) -> None:
        if base is None or base == now_there.revision:
            return
        raise Conflict(
            "stale_revision",
            f"{name} is at revision {now_there.revision}, not {base}; the diff shows what changed since.",
            currentRevision=now_there.revision,
            diff=unified(
                _as_it_was(bucket, kind, base),
                now_there.content,
                before_name=f"{name}@{base}",
                after_name=f"{name}@{now_there.revision}",
            ),
        )

    def _written(self, bucket: BucketRef, name: str, before: ViewFile, warnings: list[str]) -> Written:
        after = self._state(bucket, name)
        return Written(
            file_id=0,
            name=name,
            revision=after.revision,
            before=before.content,
            content=after.content,
            is_new=not before.content and bool(after.content),
            is_changed=after.content != before.content,
            warnings=tuple(warnings),
            base=before.revision,
        )


def _draft(kind: str, section: Section, entry: Entry | None) -> Draft:
    expires_at = entry.expires_at if entry is not None else None
    return Draft(kind, section.key, section.content, expires_at=expires_at)


def _is_kept_from(entry: Entry, author: Author) -> bool:
    return author.kind is AuthorKind.MACHINE and entry.author_kind != AuthorKind.MACHINE.value


def _as_it_was(bucket: BucketRef, kind: str, changes: int) -> str:
    """The file after that many changes, replayed from the versions."""
    versions = EntryRevision.objects.of(bucket).filter(entry__type=kind).select_related("entry")
    stood: dict[int, Shown] = {}
    for one in versions.order_by("pk")[:changes]:
        stood.pop(one.entry_id, None)
        if one.op == EntryRevision.Op.PUT:
            entry = one.entry
            stood[one.entry_id] = Shown(kind, entry.key, one.content, one.source, one.created_at)
    return structured.render(stood[pk] for pk in sorted(stood))
