"""Facts, where each came from, what it said before, and what people think of it."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q

from workspaces.models.tenancy import BucketModel


class Fact(BucketModel):
    """One statement. It holds while `retired_at` is empty; a superseded one is closed, never deleted.

    `fingerprint` is that of the normalised statement (`facts.logic.normal`): one current LONG fact of a bucket
    has it, save `verbatim` ones, which are stored as given and never merged by likeness. `trust` is what it was at
    `confirmed_at`, when the fact was last confirmed or evidenced; from then on it decays when it is read.
    `valid_from` and `valid_to` say when the statement is true in the world, `learned_at` and `retired_at` when we
    knew it. `derived_from` names the entry it follows (`entry:<id>`), empty for any other.
    """

    class Tier(models.TextChoices):
        SHORT = "SHORT"
        LONG = "LONG"

    class Retired(models.TextChoices):
        SUPERSEDED = "superseded"
        REDUNDANT = "redundant"
        SOURCE_GONE = "source_gone"
        CONTRADICTED = "contradicted"
        EXPIRED = "expired"
        DELETED = "deleted"

    uid = models.UUIDField(default=uuid.uuid4, editable=False)
    statement = models.TextField()
    fingerprint = models.CharField(max_length=32)
    subject = models.CharField(max_length=200, blank=True, default="")
    predicate = models.CharField(max_length=200, blank=True, default="")
    object = models.TextField(blank=True, default="")
    category = models.CharField(max_length=64, blank=True, default="")
    tier = models.CharField(max_length=5, choices=Tier, default=Tier.LONG)
    run_id = models.CharField(max_length=64, blank=True, default="", help_text="Of a SHORT fact, else empty.")
    verbatim = models.BooleanField(default=False)
    metadata = models.JSONField(default=dict, blank=True)
    confidence = models.FloatField()
    trust = models.FloatField()
    confirmed_at = models.DateTimeField()
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)
    learned_at = models.DateTimeField()
    retired_at = models.DateTimeField(null=True, blank=True)
    retired_why = models.CharField(max_length=16, choices=Retired, blank=True, default="")
    superseded_by = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="supersedes"
    )
    expires_at = models.DateTimeField(null=True, blank=True)
    derived_from = models.CharField(max_length=64, blank=True, default="")
    revision = models.PositiveIntegerField(default=1)
    checked = models.BooleanField(default=False, help_text="Held against its neighbours for contradictions.")
    updated_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["uid"], name="fact_uid_once"),
            models.UniqueConstraint(fields=["bucket", "id"], name="fact_in_bucket"),
            models.UniqueConstraint(
                fields=["bucket", "fingerprint"],
                condition=Q(retired_at__isnull=True, tier="LONG", verbatim=False),
                name="fact_current_once",
            ),
            models.UniqueConstraint(
                fields=["bucket", "derived_from"],
                condition=Q(retired_at__isnull=True) & ~Q(derived_from=""),
                name="fact_of_entry_once",
            ),
            models.CheckConstraint(name="fact_tier", condition=Q(tier__in=["SHORT", "LONG"])),
            models.CheckConstraint(
                name="fact_short_has_run",
                condition=(Q(tier="SHORT") & ~Q(run_id="")) | Q(tier="LONG", run_id=""),
            ),
            models.CheckConstraint(name="fact_confidence", condition=Q(confidence__gte=0, confidence__lte=1)),
            models.CheckConstraint(name="fact_trust", condition=Q(trust__gte=0, trust__lte=1)),
            models.CheckConstraint(
                name="fact_retired_has_reason",
                condition=Q(retired_at__isnull=True, retired_why="")
                | (Q(retired_at__isnull=False) & ~Q(retired_why="")),
            ),
            models.CheckConstraint(
                name="fact_validity",
                condition=Q(valid_from__isnull=True)
                | Q(valid_to__isnull=True)
                | Q(valid_to__gte=F("valid_from")),
            ),
        ]
        indexes = [
            models.Index(
                fields=["bucket", "-learned_at", "-id"],
                name="fact_newest",
                condition=Q(retired_at__isnull=True),
            ),
            models.Index(fields=["bucket", "-learned_at", "-id"], name="fact_newest_all"),
            models.Index(fields=["bucket", "fingerprint"], name="fact_of_words"),
            models.Index(
                fields=["bucket", "id"],
                name="fact_unchecked",
                condition=Q(checked=False, retired_at__isnull=True),
            ),
            # For what is known of an attribute when something new is said of it.
            models.Index(
                fields=["bucket", "predicate", "-id"],
                name="fact_of_attribute",
                condition=Q(retired_at__isnull=True) & ~Q(predicate=""),
            ),
            models.Index(fields=["bucket", "run_id"], name="fact_of_run", condition=~Q(run_id="")),
        ]

    def __str__(self) -> str:
        return self.statement[:80]


class Evidence(BucketModel):
    """Where a fact came from, said once for each root.

    `root` is what it goes back to (`message:<id>`, `file:<id>#<hash of the section>`, `entry:<id>`, `api:<id>`):
    trust counts different ones. `quote` holds the source's own words. `prompt`, `prompt_version` and `model` tell by
    what it was learned, empty where nothing was asked.
    """

    class Kind(models.TextChoices):
        MESSAGE = "message"
        FILE = "file"
        ENTRY = "entry"
        IMPORT = "import"
        PIPELINE = "pipeline"
        API = "api"
        PERSON = "person"

    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="evidence")
    kind = models.CharField(max_length=8, choices=Kind)
    root = models.CharField(max_length=128)
    message_id = models.BigIntegerField(null=True, blank=True)
    file = models.ForeignKey(
        "workspaces.File", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    heading = models.CharField(max_length=300, blank=True, default="")
    entry_id = models.BigIntegerField(null=True, blank=True)
    quote = models.TextField(blank=True, default="")
    speaker = models.CharField(max_length=128, blank=True, default="")
    at = models.DateTimeField(help_text="When it was said or written.")
    prompt = models.CharField(max_length=64, blank=True, default="")
    prompt_version = models.PositiveIntegerField(null=True, blank=True)
    model = models.CharField(max_length=128, blank=True, default="")
    run = models.ForeignKey(
        "workspaces.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        verbose_name_plural = "evidence"
        constraints = [
            models.UniqueConstraint(fields=["fact", "root"], name="evidence_once"),
            models.CheckConstraint(
                name="evidence_kind",
                condition=Q(kind__in=["message", "file", "entry", "import", "pipeline", "api", "person"]),
            ),
        ]
        indexes = [
            models.Index(fields=["bucket", "message_id"], name="evidence_of_message"),
            models.Index(fields=["file"], name="evidence_of_file"),
        ]

    def __str__(self) -> str:
        return self.root


class FactRevision(BucketModel):
    """One change of a fact: what it was before and is after. `before` and `after` hold the fields that changed."""

    class Op(models.TextChoices):
        ADD = "add"
        UPDATE = "update"
        RETIRE = "retire"
        RESTORE = "restore"

    fact = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    op = models.CharField(max_length=7, choices=Op)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    actor = models.CharField(max_length=200)
    reason = models.CharField(max_length=300, blank=True, default="")
    run = models.ForeignKey(
        "workspaces.Run", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["fact", "number"], name="fact_revision_once"),
            models.CheckConstraint(
                name="fact_revision_op", condition=Q(op__in=["add", "update", "retire", "restore"])
            ),
        ]

    def __str__(self) -> str:
        return f"{self.fact_id}@{self.number} {self.op}"


class Feedback(BucketModel):
    """What one person thinks of one recalled item (`fact:12`, `message:7`, …); withdrawn, the row goes."""

    item = models.CharField(max_length=64)
    voter = models.CharField(max_length=200, help_text="The owner key of the person who votes.")
    helpful = models.BooleanField()
    at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        verbose_name_plural = "feedback"
        constraints = [
            models.UniqueConstraint(fields=["bucket", "item", "voter"], name="feedback_once"),
        ]

    def __str__(self) -> str:
        return f"{self.voter} on {self.item}"


class ProjectedSection(BucketModel):
    """A section of a file as it was last read for facts: unchanged, it is not read again."""

    file = models.ForeignKey("workspaces.File", on_delete=models.CASCADE, related_name="+")
    digest = models.CharField(max_length=32)
    heading = models.CharField(max_length=300, blank=True, default="")
    facts = models.PositiveIntegerField(default=0, help_text="Statements found in it.")
    at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["file", "digest"], name="projected_section_once"),
        ]

    def __str__(self) -> str:
        return f"{self.file_id}#{self.digest}"
