"""Writing memory files. Every write is a revision with its author and reason, and is never blind.

Each function runs inside the caller's `tenant(…)` and locks the file's row until the commit. A person or a
program that names a stale base gets `Conflict`; a machine's rewrite is merged with what came between, and
checked by code: sections that a person wrote survive word for word, and the ceiling cuts at a section.
Whoever writes several in one transaction calls `lock_files` first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import count
from operator import or_
from typing import Final, Protocol

from django.db.models import Case, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Collate
from django.utils import timezone

from workspaces.errors import BadInput, Conflict, NotFound, Unprocessable
from workspaces.logic import holding, strategies
from workspaces.logic.diff import unified
from workspaces.logic.guard import MAX_LOSS, Held, guard_rewrite, scrub
from workspaces.logic.merge import merge3
from workspaces.logic.names import MAX_CONTENT_BYTES, check_content, clean_name
from workspaces.logic.redact import redact
from workspaces.models import File, Revision
from workspaces.queries import content_at
from workspaces.services.audit import record_audit
from workspaces.services.views import refuse_view, view_of, viewed
from workspaces.services.writing import Author, Written
from workspaces.types import AuthorKind, BucketRef

__all__ = ["Author", "Written"]

# A file before what takes its overflow, then names as bytes: a write may lock the one while it holds the other.
_IS_OVERFLOW: Final = When(name__startswith=holding.OVERFLOW_FOLDER, then=Value(1))
_ORDER: Final = (Case(_IS_OVERFLOW, default=Value(0), output_field=IntegerField()), Collate("name", "C"))


class Told(Protocol):
    """Somebody who is told of each write. The first `kept_lines` of the content stand as they stood before."""

    def __call__(self, bucket: BucketRef, file: File, *, kept_lines: int = 0) -> None: ...


_TOLD: list[Told] = []


def on_file_written(tell: Told) -> None:
    """Joins those that are told of each write of a file, deletions included, in the transaction that makes it."""
    if tell not in _TOLD:
        _TOLD.append(tell)


def _tell(bucket: BucketRef, file: File, *, kept_lines: int = 0) -> None:
    for tell in _TOLD:
        tell(bucket, file, kept_lines=kept_lines)


def write_file(
    bucket: BucketRef, name: str, content: str, *, author: Author, base: int | None = None, cap: int = 0
) -> Written:
    """Replaces the whole content. With a stale `base`: `Conflict` "stale_revision" with the diff.

    A `cap` (characters) cuts what a machine wrote and only warns a person.
    """
    name = clean_name(name)
    if (view := view_of(name)) is not None:
        return view.write(bucket, name, check_content(content), author=author, base=base)
    file, is_new = _locked(bucket, name)
    _check_base(file, base)
    content = check_content(content)
    if author.kind is AuthorKind.MACHINE:
        proposed = redact(content).text
        return _put_guarded(bucket, file, proposed, author=author, cap=cap, is_new=is_new, base=base)
    return _put(
        bucket,
        file,
        content,
        author=author,
        is_new=is_new,
        base=base,
        warnings=holding.warned(file.name, content, cap=cap),
    )


def append_to_file(bucket: BucketRef, name: str, text: str, *, author: Author, title: str = "") -> Written:
    """Adds a paragraph at the end, stored as what it is: an append. A new file begins with `title`.

    Where a file has no room, a person is told so (`TooLarge`); what a machine appends goes on in
    `archive/<name>.2.md`, `.3.md` and so on, and `Written` names the file that was written.
    """
    name = clean_name(name)
    if (view := view_of(name)) is not None:
        whole, revision = viewed(view, bucket, name)
        joined = holding.appended(whole, check_content(text).strip("\n"), title="")
        return view.write(bucket, name, check_content(whole + joined), author=author, base=revision)
    file, is_new = _locked(bucket, name)
    text = check_content(text).strip("\n")
    if author.kind is AuthorKind.MACHINE:
        text = scrub(redact(text).text, known=file.content).text
    if not text.strip():
        return _as_it_is(file, is_new=False)
    added = holding.appended(file.content, text, title=title)
    if author.kind is AuthorKind.MACHINE and not holding.has_room(file.content, added):
        more = _overflow(bucket, file.name, text, author=author, title=f"# More of {file.name}", first=2)
        return replace(more, notes=(f"{file.name} is full; this went to {more.name}.",))
    return _append(bucket, file, added, author=author, is_new=is_new)


def edit_file(
    bucket: BucketRef,
    name: str,
    old: str,
    new: str,
    *,
    author: Author,
    replace_all: bool = False,
    cap: int = 0,
) -> tuple[Written, int]:
    """Finds and replaces; the number of places is told.

    Raises when `old` is missing, or stands more than once without `replace_all`.
    """
    if not old:
        raise BadInput("empty_old_text", "oldText is empty; name the text to replace.", field="oldText")
    old, new = check_content(old), check_content(new)
    if old == new:
        raise BadInput("same_text", "oldText and newText are the same.", field="newText")
    name = clean_name(name)
    if (view := view_of(name)) is not None:
        whole, revision = viewed(view, bucket, name)
        if not revision:
            raise NotFound("file_not_found", f"There is no file {name!r}.")
        places = holding.places_of(name, whole, old, replace_all=replace_all)
        made = check_content(whole.replace(old, new))
        return view.write(bucket, name, made, author=author, base=revision), places
    file = _existing(bucket, name)
    places = holding.places_of(file.name, file.content, old, replace_all=replace_all)
    if author.kind is not AuthorKind.MACHINE:
        return write_file(bucket, file.name, file.content.replace(old, new), author=author, cap=cap), places
    content = check_content(file.content.replace(old, redact(new).text))
    # Whoever names the text to replace has read it: nothing is lost by oversight.
    written = _put_guarded(
        bucket, file, content, author=author, cap=cap, is_new=False, base=file.head, max_loss=1.0
    )
    return written, places


def merge_into_file(
    bucket: BucketRef,
    name: str,
    content: str,
    *,
    strategy: str,
    heading: str | None = None,
    author: Author,
    base: int | None = None,
    cap: int = 0,
) -> Written:
    """Writes by one of the strategies of `write_memory` (see `workspaces.logic.strategies`)."""
    name = clean_name(name)
    if (view := view_of(name)) is not None:
        whole, revision = viewed(view, bucket, name)
        made = check_content(strategies.apply(strategy, whole, check_content(content), heading=heading))
        return view.write(bucket, name, made, author=author, base=revision if base is None else base)
    file, is_new = _locked(bucket, name)
    _check_base(file, base)
    merged = check_content(strategies.apply(strategy, file.content, check_content(content), heading=heading))
    if author.kind is AuthorKind.MACHINE:
        max_loss = MAX_LOSS if strategy == strategies.Strategy.OVERWRITE else 1.0
        proposed = redact(merged).text
        return _put_guarded(
            bucket, file, proposed, author=author, cap=cap, is_new=is_new, base=base, max_loss=max_loss
        )
    is_append = strategy == strategies.Strategy.APPEND and merged.startswith(file.content)
    return _put(
        bucket,
        file,
        merged,
        author=author,
        is_new=is_new,
        base=base,
        added=merged[len(file.content) :] if is_append else None,
        warnings=holding.warned(file.name, merged, cap=cap),
    )


def rewrite_file(
    bucket: BucketRef, name: str, proposed: str, *, read_revision: int, author: Author, cap: int = 0
) -> Written:
    """A machine's full replace, made from the content of `read_revision` (0: there was none).

    What others wrote meanwhile is kept by a three-way merge; then the guards and the ceiling. What no file
    can hold is cut like what is above the ceiling: a full file stops no job.
    """
    name = clean_name(name)
    if (view := view_of(name)) is not None:
        return view.write(bucket, name, check_content(proposed), author=author, base=read_revision)
    file, is_new = _locked(bucket, name)
    notes: tuple[str, ...] = ()
    proposed = redact(holding.of_any_size(proposed)).text.rstrip() + "\n"
    if file.head != read_revision:
        base_text = content_at(file, read_revision)
        merged = merge3(base_text, file.content, proposed, on_conflict="union")
        proposed = merged.text
        notes = (f"Merged with what changed since revision {read_revision}.",)
    return _put_guarded(
        bucket, file, proposed, author=author, cap=cap, is_new=is_new, base=read_revision, notes=notes
    )


def delete_file(bucket: BucketRef, name: str, *, author: Author, base: int | None = None) -> Written:
    """Takes a file away; its revisions stay and it can be restored."""
    name = clean_name(name)
    if (view := view_of(name)) is not None:
        return view.delete(bucket, name, author=author, base=base)
    file = _existing(bucket, name)
    _check_base(file, base)
    before = file.content
    revision = _revise(
        bucket, file, kind=Revision.Kind.DELETE, content="", whole="", author=author, base=base
    )
    file.deleted_at = revision.created_at
    file.content, file.size, file.held = "", 0, []
    file.save(update_fields=["deleted_at", "content", "size", "held", "head", "updated_at"])
    _tell(bucket, file)
    return Written(file.pk, file.name, file.head, before, "", is_new=False, is_changed=True)


def restore_file(
    bucket: BucketRef, name: str, number: int, *, author: Author, base: int | None = None
) -> Written:
    """Makes an earlier revision the content again, as a new revision; also that of a deleted file.

    Raises `NotFound` for an unknown one, `Unprocessable` for the one that took the file away.
    """
    name = clean_name(name)
    refuse_view(name)
    file = File.objects.of(bucket).select_for_update().filter(name=name).exclude(head=0).first()
    if file is None:
        raise NotFound("file_not_found", f"There is no file {name!r}.")
    kind = Revision.objects.of(bucket).filter(file=file, number=number).values_list("kind", flat=True).first()
    if kind is None:
        raise NotFound("revision_not_found", f"{name} has no revision {number}.")
    _check_base(file, base)
    if kind == Revision.Kind.DELETE:
        raise Unprocessable(
            "revision_is_deletion", f"Revision {number} of {name} is its deletion; name one with content."
        )
    content = content_at(file, number)
    return _put(bucket, file, content, author=author, is_new=file.deleted_at is not None, base=base)


def arrange_prompt_files(bucket: BucketRef, order: list[tuple[str, bool]], *, author: Author) -> None:
    """Sets which files are part of every prompt, and in which order.

    Files not named keep their switch; the enabled ones among them follow after the named ones, in their
    order. Raises `NotFound` naming the first file that is not there, `BadInput` for one named twice; then
    nothing is changed.
    """
    names = [clean_name(raw) for raw, _ in order]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise BadInput("file_named_twice", f"{twice!r} is named twice.", field="files")
    rows = File.objects.of(bucket).filter(deleted_at=None, head__gt=0)
    locked = _lock(rows.filter(Q(name__in=names) | Q(enabled=True)))
    rows = File.objects.of(bucket).filter(pk__in=locked).order_by("sort_order", "name")
    files = {file.name: file for file in rows.only("name", "enabled", "sort_order")}
    if missing := next((name for name in names if name not in files), None):
        raise NotFound("file_not_found", f"There is no file {missing!r}.")
    wanted = dict(zip(names, (enabled for _, enabled in order), strict=True))
    for position, name in enumerate([*names, *(name for name in files if name not in wanted)]):
        file = files[name]
        file.sort_order, file.enabled = position, wanted.get(name, file.enabled)
        file.save(update_fields=["sort_order", "enabled"])
    record_audit(
        bucket.workspace_id,
        actor=author.actor,
        action="prompt_files.arranged",
        target=f"bucket:{bucket.id}",
        address=author.address,
        detail={"files": [{"name": name, "enabled": enabled} for name, enabled in wanted.items()]},
    )


def lock_files(bucket: BucketRef, names: Iterable[str]) -> None:
    """Locks the files of those names and what holds their overflow, in the one order that all keep to.

    For whoever writes several in one transaction: call it once, before the first write, with all that will be
    written; then their order is free. A name that is not there yet is made ready, and is still no file.
    """
    wanted = sorted({clean_name(name) for name in names})
    _make_rows(bucket, wanted)
    overflow = (Q(name__startswith=f"{holding.overflow_stem(name)}.") for name in wanted)
    _lock(File.objects.of(bucket).filter(reduce(or_, overflow, Q(name__in=wanted))))


def place_born_file(bucket: BucketRef, name: str, content: str, *, sort_order: int, author: Author) -> None:
    """A file that an agent is born with: part of every prompt from the start."""
    file, is_new = _locked(bucket, name)
    file.enabled, file.sort_order = True, sort_order
    file.save(update_fields=["enabled", "sort_order"])
    _put(bucket, file, check_content(content), author=author, is_new=is_new)


# --- the one way a file changes ---------------------------------------------------------------------------


def _put_guarded(
    bucket: BucketRef,
    file: File,
    proposed: str,
    *,
    author: Author,
    cap: int,
    is_new: bool,
    base: int | None,
    notes: tuple[str, ...] = (),
    max_loss: float = MAX_LOSS,
) -> Written:
    """What a machine proposes, after the guards and the ceiling."""
    held = _held(file)
    guarded = guard_rewrite(before=file.content, proposed=proposed, held=held, max_loss=max_loss)
    notes = (*notes, *holding.told(guarded, max_loss=max_loss))
    fitted = holding.fit_held(guarded.text, held, cap=cap)
    cut = fitted.cut or ""
    if cut.strip():
        archive = _archive(bucket, file.name, cut, author=author)
        notes = (*notes, f"{len(cut)} characters above the ceiling moved to {archive}.")
    return _put(bucket, file, fitted.text, author=author, is_new=is_new, base=base, notes=notes, cut=cut)


def _archive(bucket: BucketRef, name: str, cut: str, *, author: Author) -> str:
    """Keeps what was cut, once, in the first archive of that file that has room; the archive's name."""
    text = cut.strip("\n")
    there = File.objects.of(bucket).filter(name__startswith=f"{holding.overflow_stem(name)}.")
    for kept, content in there.values_list("name", "content").iterator(chunk_size=1):
        if text.strip() in content:
            return str(kept)
    return _overflow(bucket, name, text, author=author, title=f"# Cut from {name}", first=1).name


def _overflow(bucket: BucketRef, name: str, text: str, *, author: Author, title: str, first: int) -> Written:
    """Appends what `name` has no room for to the first of its overflow files, from `first` on, that has."""
    room = MAX_CONTENT_BYTES - len(text.encode()) - holding.MOST_BETWEEN
    for number in count(first):
        part = holding.overflow_name(name, number)
        # A full one is not locked: of a file's overflow a write holds one.
        if File.objects.of(bucket).filter(name=part, size__gt=max(room, 0)).exists():
            continue
        file, is_new = _locked(bucket, part)
        fitting = (holding.appended(file.content, text, title=one) for one in (title, ""))
        added = next((one for one in fitting if holding.has_room(file.content, one)), None)
        if added is not None or not file.content:
            return _append(bucket, file, added or text, author=author, is_new=is_new)
    raise AssertionError("count() has no end")


def _append(bucket: BucketRef, file: File, added: str, *, author: Author, is_new: bool) -> Written:
    return _put(bucket, file, file.content + added, author=author, is_new=is_new, added=added)


def _put(
    bucket: BucketRef,
    file: File,
    content: str,
    *,
    author: Author,
    is_new: bool,
    base: int | None = None,
    added: str | None = None,
    warnings: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    cut: str = "",
) -> Written:
    before = file.content
    if content == before and file.deleted_at is None and file.head:
        return _as_it_is(file, is_new=is_new, warnings=warnings, notes=notes)
    check_content(content)
    kind = Revision.Kind.FULL if added is None else Revision.Kind.APPEND
    stored = content if added is None else added
    _revise(bucket, file, kind=kind, content=stored, whole=content, author=author, base=base)
    held = holding.held_after(before, content, _held(file), by=author.kind, is_append=added is not None)
    file.held = [{"heading": one.heading, "text": one.text} for one in held]
    file.content, file.size, file.deleted_at = content, len(content.encode()), None
    file.save(update_fields=["content", "size", "held", "head", "updated_at", "deleted_at"])
    _tell(bucket, file, kept_lines=0 if added is None else len(before.splitlines()))
    written = _as_it_is(file, is_new=is_new, warnings=warnings, notes=notes)
    return replace(written, before=before, is_changed=True, cut=cut, base=file.head - 1)


def _revise(
    bucket: BucketRef, file: File, *, kind: str, content: str, whole: str, author: Author, base: int | None
) -> Revision:
    now = timezone.now()
    file.head += 1
    file.updated_at = now
    revision: Revision = Revision.objects.create(
        workspace_id=bucket.workspace_id,
        bucket_id=bucket.id,
        file=file,
        number=file.head,
        kind=kind,
        content=content,
        sha256=hashlib.sha256(whole.encode()).hexdigest(),
        author_kind=author.kind.value,
        actor=author.actor[:200],
        reason=author.reason[:300],
        base=base,
        run_id=author.run_id,
        created_at=now,
    )
    if author.kind is not AuthorKind.MACHINE:
        record_audit(
            bucket.workspace_id,
            actor=author.actor,
            action="file.deleted" if kind == Revision.Kind.DELETE else "file.written",
            target=f"bucket:{bucket.id}/{file.name}",
            address=author.address,
            detail={"revision": file.head},
        )
    return revision


def _as_it_is(
    file: File, *, is_new: bool, warnings: tuple[str, ...] = (), notes: tuple[str, ...] = ()
) -> Written:
    return Written(
        file.pk,
        file.name,
        file.head,
        file.content,
        file.content,
        is_new=is_new,
        is_changed=False,
        warnings=warnings,
        notes=notes,
        base=file.head,
    )


def _locked(bucket: BucketRef, name: str) -> tuple[File, bool]:
    """The file's row, locked, and whether there is no such file yet (or no more).

    The row is made if it is missing; its `head` is 0 until its first revision.
    """
    _make_rows(bucket, [name])
    file = File.objects.of(bucket).select_for_update().get(name=name)
    return file, file.head == 0 or file.deleted_at is not None


def _make_rows(bucket: BucketRef, names: Sequence[str]) -> None:
    now = timezone.now()
    where = {"workspace_id": bucket.workspace_id, "bucket_id": bucket.id}
    rows = [File(**where, name=name, created_at=now, updated_at=now) for name in names]
    File.unscoped.bulk_create(rows, ignore_conflicts=True)


def _lock(rows: QuerySet[File]) -> list[int]:
    """The ids of those rows, each locked in its turn."""
    return list(rows.select_for_update().order_by(*_ORDER).values_list("pk", flat=True))


def _existing(bucket: BucketRef, name: str) -> File:
    name = clean_name(name)
    rows = File.objects.of(bucket).filter(name=name, deleted_at=None).exclude(head=0)
    found: File | None = rows.select_for_update().first()
    if found is None:
        raise NotFound("file_not_found", f"There is no file {name!r}.")
    return found


def _check_base(file: File, base: int | None) -> None:
    if base is None or base == file.head or (base == 0 and file.deleted_at is not None):
        return
    if base > file.head:
        raise Conflict(
            "stale_revision",
            f"{file.name} has no revision {base}; it is at {file.head}.",
            currentRevision=file.head,
        )
    names = {"before_name": f"{file.name}@{base}", "after_name": f"{file.name}@{file.head}"}
    raise Conflict(
        "stale_revision",
        f"{file.name} is at revision {file.head}, not {base}; the diff shows what changed since.",
        currentRevision=file.head,
        diff=unified(content_at(file, base), file.content, **names),
    )


def _held(file: File) -> tuple[Held, ...]:
    return tuple(Held(one["heading"], one["text"]) for one in file.held)
