"""Structured memory: entries by type and key, and every version they ever had."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import BucketModel
from workspaces.types import AuthorKind


class Entry(BucketModel):
    """One structured memory, exact by type and key. `structured/<type>.md` is a view of these rows.

    `source` says in words where it came from; `author_kind` who wrote it last: what a person wrote is never merged
    away by a job. `revision` goes up with each change. A deleted one keeps its row and its versions.
    """

    class Type(models.TextChoices):
        USER = "user"
        FEEDBACK = "feedback"
        PROJECT = "project"
        REFERENCE = "reference"

    class Author(models.TextChoices):
        PERSON = AuthorKind.PERSON.value
        PROGRAM = AuthorKind.PROGRAM.value
        MACHINE = AuthorKind.MACHINE.value
        IMPORT = AuthorKind.IMPORT.value
        SYSTEM = AuthorKind.SYSTEM.value

    type = models.CharField(max_length=9, choices=Type)
    key = models.CharField(max_length=64)
    content = models.TextField()
    source = models.CharField(max_length=200, blank=True, default="")
    author_kind = models.CharField(max_length=8, choices=Author)
    confidence = models.FloatField(null=True, blank=True, help_text="Of one that was extracted.")
    expires_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta(BucketModel.Meta):
        verbose_name_plural = "entries"
        constraints = [
            models.UniqueConstraint(fields=["bucket", "type", "key"], name="entry_once"),
            models.UniqueConstraint(fields=["bucket", "id"], name="entry_in_bucket"),
            models.CheckConstraint(
                name="entry_type", condition=Q(type__in=["user", "feedback", "project", "reference"])
            ),
            models.CheckConstraint(name="entry_key", condition=Q(key__regex=r"^[a-z0-9_]+$")),
            models.CheckConstraint(
                name="entry_author",
                condition=Q(author_kind__in=["person", "program", "machine", "import", "system"]),
            ),
        ]
        indexes = [
            models.Index(
                fields=["bucket", "type", "-updated_at"],
                name="entry_newest",
                condition=Q(deleted_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type}/{self.key}"


class EntryRevision(BucketModel):
    """One version of an entry. `quotes` holds the words it came from: `[{messageId, speaker, text}]`."""

    class Op(models.TextChoices):
        PUT = "put"
        DELETE = "delete"

    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    op = models.CharField(max_length=6, choices=Op)
    content = models.TextField(blank=True, default="")
    source = models.CharField(max_length=200, blank=True, default="")
    author_kind = models.CharField(max_length=8, choices=Entry.Author)
    actor = models.CharField(max_length=200)
    reason = models.CharField(max_length=300, blank=True, default="")
    quotes = models.JSONField(default=list, blank=True)
    prompt_version = models.PositiveIntegerField(null=True, blank=True)
    model = models.CharField(max_length=128, blank=True, default="")
    run = models.ForeignKey(
        "workspaces.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["entry", "number"], name="entry_revision_once"),
            models.CheckConstraint(name="entry_revision_op", condition=Q(op__in=["put", "delete"])),
            models.CheckConstraint(
                name="entry_revision_author",
                condition=Q(author_kind__in=["person", "program", "machine", "import", "system"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.entry_id}@{self.number}"
