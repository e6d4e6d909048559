"""Memory files and every version they ever had."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import BucketModel
from workspaces.types import AuthorKind


class File(BucketModel):
    """A markdown file of a bucket as it stands. `head` is the number of its latest revision.

    `held` lists the sections that a person wrote last (heading and text): a rewrite by a machine keeps them
    word for word. A deleted file keeps its row and its revisions.
    """

    name = models.CharField(max_length=256)
    content = models.TextField(blank=True, default="")
    size = models.PositiveIntegerField(default=0, help_text="Bytes in UTF-8.")
    enabled = models.BooleanField(default=False, help_text="Part of every prompt.")
    sort_order = models.IntegerField(default=100)
    head = models.PositiveIntegerField(default=0)
    held = models.JSONField(default=list, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["bucket", "name"], name="file_name_once"),
            models.UniqueConstraint(fields=["bucket", "id"], name="file_in_bucket"),
            models.CheckConstraint(name="file_is_markdown", condition=Q(name__endswith=".md")),
            models.CheckConstraint(name="file_size", condition=Q(size__lte=1024 * 1024)),
        ]

    def __str__(self) -> str:
        return self.name


class Revision(BucketModel):
    """One write of a file. An append stores what was appended, any other kind the whole content.

    `sha256` is that of the whole content after the write, in hex; `base` the revision its author had read.
    """

    class Kind(models.TextChoices):
        FULL = "full"
        APPEND = "append"
        DELETE = "delete"

    class Author(models.TextChoices):
        PERSON = AuthorKind.PERSON.value
        PROGRAM = AuthorKind.PROGRAM.value
        MACHINE = AuthorKind.MACHINE.value
        IMPORT = AuthorKind.IMPORT.value
        SYSTEM = AuthorKind.SYSTEM.value

    file = models.ForeignKey(File, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=8, choices=Kind)
    content = models.TextField(blank=True, default="")
    sha256 = models.CharField(max_length=64)
    author_kind = models.CharField(max_length=8, choices=Author)
    actor = models.CharField(max_length=200)
    reason = models.CharField(max_length=300, blank=True, default="")
    base = models.PositiveIntegerField(null=True, blank=True)
    run = models.ForeignKey(
        "workspaces.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="revisions"
    )
    created_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["file", "number"], name="revision_number_once"),
            models.CheckConstraint(name="revision_kind", condition=Q(kind__in=["full", "append", "delete"])),
            models.CheckConstraint(
                name="revision_author",
                condition=Q(author_kind__in=["person", "program", "machine", "import", "system"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.file_id}@{self.number}"
