"""Writing memory files. Every write is a revision with its author and reason, and is never blind.

Each function runs inside the caller's `tenant(…)` and locks the file's row until the commit. A person or a
program that names a stale base gets `Conflict`; a machine's rewrite is merged with what came between, and
checked by code: sections that a person wrote survive word for word, and the ceiling cuts at a section.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Final

from django.db.models import Q
from django.utils import timezone

from workspaces.errors import BadInput, Conflict, NotFound, Unprocessable
from workspaces.logic import strategies
from workspaces.logic.ceiling import MARKER_LINE, Fitted, default_marker, fit
from workspaces.logic.diff import unified
from workspaces.logic.guard import MAX_LOSS, Guarded, Held, guard_rewrite, held_sections, scrub
from workspaces.logic.merge import merge3
from workspaces.logic.names import MAX_CONTENT_BYTES, check_content, clean_name
from workspaces.logic.redact import redact
from workspaces.logic.sections import section_hash, spaced, split
from workspaces.models import File, Revision
from workspaces.queries import content_at
from workspaces.services.audit import record_audit
from workspaces.types import AuthorKind, BucketRef

OVERFLOW_FOLDER: Final = "archive/"
"""Where the ceiling puts what it cut from a file: same bucket, same name below this folder; recallable."""


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, and why. `actor` as in the audit trail: `user:3`, `token:5`, `agent:7`, `job:extract`."""

    kind: AuthorKind
    actor: str
    reason: str = ""
    run_id: int | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did. `cut` is what the ceiling left out, `notes` what the guards did, in words."""

    file_id: int
    name: str
    revision: int
    before: str
    content: str
    is_new: bool
    is_changed: bool
    warnings: tuple[str, ...] = ()
    cut: str = ""
    notes: tuple[str, ...] = field(default=())
    base: int = 0


def write_file(
    bucket: BucketRef, name: str, content: str, *, author: Author, base: int | None = None, cap: int = 0
) -> Written:
    """Replaces the whole content. With a stale `base`: `Conflict` "stale_revision" with the diff.

    A `cap` (characters) cuts what a machine wrote and only warns a person.
    """
    file, is_new = _locked(bucket, clean_name(name))
    _check_base(file, base)
    content = check_content(content)
    if author.kind is AuthorKind.MACHINE:
        proposed = redact(content).text
        return _put_guarded(bucket, file, proposed, author=author, cap=cap, is_new=is_new, base=base)
    return _put(
        bucket, file, content, author=author, is_new=is_new, base=base, warnings=_warnings(file, content, cap)
    )


def append_to_file(bucket: BucketRef, name: str, text: str, *, author: Author, title: str = "") -> Written:
    """Adds a paragraph at the end, stored as what it is: an append. A new file begins with `title`."""
    file, is_new = _locked(bucket, clean_name(name))
    text = check_content(text).strip("\n")
    if author.kind is AuthorKind.MACHINE:
        text = scrub(redact(text).text, known=file.content).text
    if not text.strip():
        return _unchanged(file, is_new=False)
    return _append(bucket, file, text, author=author, title=title, is_new=is_new)


def _append(bucket: BucketRef, file: File, text: str, *, author: Author, title: str, is_new: bool) -> Written:
    start = f"{title}\n\n" if title and not file.content else ""
    gap = "" if not file.content else ("\n" if file.content.endswith("\n") else "\n\n")
    added = f"{start}{gap}{text}\n"
    check_content(file.content + added)
    return _put(bucket, file, file.content + added, author=author, is_new=is_new, appended=added)


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
    file = _existing(bucket, name)
    places = file.content.count(old)
    if not places:
        raise Unprocessable("text_not_found", f"{file.name} does not hold that text.", field="oldText")
    if places > 1 and not replace_all:
        raise Unprocessable(
            "text_not_unique",
            f"{file.name} holds that text {places} times; add more of it, or set replaceAll.",
            field="oldText",
        )
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
    file, is_new = _locked(bucket, clean_name(name))
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
        appended=merged[len(file.content) :] if is_append else None,
        warnings=_warnings(file, merged, cap),
    )


def rewrite_file(
    bucket: BucketRef, name: str, proposed: str, *, read_revision: int, author: Author, cap: int = 0
) -> Written:
    """A machine's full replace, made from the content of `read_revision` (0: there was none).

    What others wrote meanwhile is kept by a three-way merge; then the guards and the ceiling.
    """
    file, is_new = _locked(bucket, clean_name(name))
    notes: tuple[str, ...] = ()
    proposed = redact(check_content(proposed)).text.rstrip() + "\n"
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
    file = _existing(bucket, name)
    _check_base(file, base)
    before = file.content
    revision = _revise(
        bucket, file, kind=Revision.Kind.DELETE, content="", whole="", author=author, base=base
    )
    file.deleted_at = revision.created_at
    file.content, file.size, file.held = "", 0, []
    file.save(update_fields=["deleted_at", "content", "size", "held", "head", "updated_at"])
    return Written(file.pk, file.name, file.head, before, "", is_new=False, is_changed=True)


def restore_file(
    bucket: BucketRef, name: str, number: int, *, author: Author, base: int | None = None
) -> Written:
    """Makes an earlier revision the content again, as a new revision; also that of a deleted file.

    Raises `NotFound` for an unknown one, `Unprocessable` for the one that took the file away.
    """
    name = clean_name(name)
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
    rows = File.objects.of(bucket).select_for_update().filter(deleted_at=None, head__gt=0)
    rows = rows.filter(Q(name__in=names) | Q(enabled=True)).order_by("sort_order", "name")
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
    notes = (*notes, *_notes(guarded, max_loss))
    fitted = _fit(guarded.text, held, cap)
    cut = fitted.cut or ""
    if cut.strip():
        archive = _archive(bucket, file.name, cut, author=author)
        notes = (*notes, f"{len(cut)} characters above the ceiling of {cap} moved to {archive}.")
    return _put(bucket, file, fitted.text, author=author, is_new=is_new, base=base, notes=notes, cut=cut)


def _fit(text: str, held: tuple[Held, ...], cap: int) -> Fitted:
    """Like `fit`, but what a person wrote is the last to go: only if it does not fit by itself."""
    plain = fit(text, cap=cap)
    if plain.cut is None or len(_standing(plain.text, held)) == len(_standing(text, held)):
        return plain
    marker = default_marker(cap)
    sections = split(text)
    theirs = [bool(_standing(section.text, held)) for section in sections]
    room = cap - len(marker) - 2
    room -= sum(len(spaced(one.text)) for one, is_theirs in zip(sections, theirs, strict=True) if is_theirs)
    kept: list[str] = []
    cut: list[str] = []
    for section, is_theirs in zip(sections, theirs, strict=True):
        ours = spaced(_unmarked(section.text)) if section.text else ""
        if is_theirs:
            kept.append(spaced(section.text))
        elif not cut and len(ours) <= room:
            kept.append(ours)
            room -= len(ours)
        else:
            cut.append(ours)
    if room < 0 or not kept:
        return plain
    return Fitted("".join(kept).rstrip("\n") + f"\n{marker}\n", "".join(cut))


def _standing(text: str, held: tuple[Held, ...]) -> list[Held]:
    """Those of `held` that are in `text` word for word; the ceiling's marker counts for nothing."""
    there = {(one.heading, section_hash(one.text)) for one in split(_unmarked(text))}
    return [one for one in held if (one.heading, section_hash(_unmarked(one.text))) in there]


def _unmarked(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not MARKER_LINE.fullmatch(line.strip()))


def _archive(bucket: BucketRef, name: str, cut: str, *, author: Author) -> str:
    """Keeps what was cut, once, in the first archive of that file that has room; the archive's name."""
    stem = OVERFLOW_FOLDER + name.removesuffix(".md")
    for number in count(1):
        archive, is_new = _locked(bucket, f"{stem}.md" if number == 1 else f"{stem}.{number}.md")
        if cut.strip() in archive.content:
            return archive.name
        if not archive.content or archive.size + len(cut.encode()) + 2 <= MAX_CONTENT_BYTES:
            title = f"# Cut from {name}"
            _append(bucket, archive, cut.strip("\n"), author=author, title=title, is_new=is_new)
            return archive.name
    raise AssertionError("count() has no end")


def _put(
    bucket: BucketRef,
    file: File,
    content: str,
    *,
    author: Author,
    is_new: bool,
    base: int | None = None,
    appended: str | None = None,
    warnings: tuple[str, ...] = (),
    notes: tuple[str, ...] = (),
    cut: str = "",
) -> Written:
    before = file.content
    if content == before and file.deleted_at is None and file.head:
        return _unchanged(file, is_new=is_new, warnings=warnings, notes=notes)
    check_content(content)
    kind = Revision.Kind.FULL if appended is None else Revision.Kind.APPEND
    _revise(
        bucket,
        file,
        kind=kind,
        content=content if appended is None else appended,
        whole=content,
        author=author,
        base=base,
    )
    held = _held_after(before, content, _held(file), author=author, is_append=appended is not None)
    file.held = [{"heading": one.heading, "text": one.text} for one in held]
    file.content, file.size, file.deleted_at = content, len(content.encode()), None
    file.save(update_fields=["content", "size", "held", "head", "updated_at", "deleted_at"])
    return Written(
        file.pk,
        file.name,
        file.head,
        before,
        content,
        is_new=is_new,
        is_changed=True,
        warnings=warnings,
        cut=cut,
        notes=notes,
        base=file.head - 1,
    )


def _held_after(
    before: str, content: str, held: tuple[Held, ...], *, author: Author, is_append: bool
) -> list[Held]:
    """What is person-held after a write. Nobody but a person makes a section held.

    What is appended to a held section becomes part of it: a later rewrite must not take it for a change.
    """
    if author.kind is AuthorKind.PERSON:
        return list(held_sections(before, content, held))
    if is_append:
        were_held = {one.heading for one in held}
        return [one for one in held_sections(before, content, held) if one.heading in were_held]
    return _standing(content, held)


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


def _unchanged(
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
    now: datetime = timezone.now()
    File.unscoped.bulk_create(
        [
            File(
                workspace_id=bucket.workspace_id,
                bucket_id=bucket.id,
                name=name,
                created_at=now,
                updated_at=now,
            )
        ],
        ignore_conflicts=True,
    )
    file = File.objects.of(bucket).select_for_update().get(name=name)
    return file, file.head == 0 or file.deleted_at is not None


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
    raise Conflict(
        "stale_revision",
        f"{file.name} is at revision {file.head}, not {base}; the diff shows what changed since.",
        currentRevision=file.head,
        diff=unified(
            content_at(file, base),
            file.content,
            before_name=f"{file.name}@{base}",
            after_name=f"{file.name}@{file.head}",
        ),
    )


def _held(file: File) -> tuple[Held, ...]:
    return tuple(Held(one["heading"], one["text"]) for one in file.held)


def _warnings(file: File, content: str, cap: int) -> tuple[str, ...]:
    if not cap or len(content) <= cap:
        return ()
    return (f"{file.name} has {len(content)} characters; above {cap} a rewrite by the agent is cut.",)


def _notes(guarded: Guarded, max_loss: float) -> tuple[str, ...]:
    notes = []
    if guarded.restored:
        parts = ", ".join(heading or "the head of the file" for heading in guarded.restored)
        notes.append(f"Kept word for word what a person wrote: {parts}.")
    if guarded.refused:
        notes.append(f"{len(guarded.refused)} lines were refused.")
    if guarded.lost_share > max_loss:
        notes.append(f"{guarded.lost_share:.0%} of the earlier lines would have been lost; they were kept.")
    return tuple(notes)
