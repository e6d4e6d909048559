"""Background work that people can read: runs and the changes they made."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import BucketModel, TenantModel
from workspaces.types import RunStatus


class Run(BucketModel):
    """One execution of a job. `reason` is a stable code for its outcome, `detail` says it in words.

    `written` is `{files: [name…], entries: n, facts: n}`; `result` holds what is the job's own.
    """

    class Status(models.TextChoices):
        QUEUED = RunStatus.QUEUED.value
        RUNNING = RunStatus.RUNNING.value
        STORED = RunStatus.STORED.value
        NOTHING = RunStatus.NOTHING.value
        SKIPPED = RunStatus.SKIPPED.value
        FAILED = RunStatus.FAILED.value

    kind = models.CharField(max_length=32)
    status = models.CharField(max_length=8, choices=Status, default=Status.QUEUED)
    trigger = models.CharField(max_length=16, default="turn", help_text="turn, manual, schedule or retry.")
    night = models.DateField(
        null=True, blank=True, help_text="The day a scheduled run is for: one of a kind, bucket and day."
    )
    actor = models.CharField(max_length=200, default="system")
    subject = models.CharField(max_length=200, blank=True, default="", help_text="What it is about.")
    reason = models.CharField(max_length=64, blank=True, default="")
    detail = models.TextField(blank=True, default="")
    written = models.JSONField(default=dict, blank=True)
    result = models.JSONField(default=dict, blank=True)
    model = models.CharField(max_length=128, blank=True, default="")
    prompt_version = models.PositiveIntegerField(null=True, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    created_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["bucket", "id"], name="run_in_bucket"),
            models.UniqueConstraint(fields=["workspace", "id"], name="run_in_workspace"),
            models.UniqueConstraint(
                fields=["bucket", "kind", "night"],
                condition=Q(night__isnull=False),
                name="run_once_a_night",
            ),
            models.UniqueConstraint(
                fields=["bucket", "kind"],
                condition=Q(status__in=["queued", "running"])
                & Q(kind__in=["structured-consolidation", "dream"]),
                name="run_one_at_a_time",
            ),
            models.CheckConstraint(
                name="run_status",
                condition=Q(status__in=["queued", "running", "stored", "nothing", "skipped", "failed"]),
            ),
            models.CheckConstraint(
                name="run_finished_when_done",
                condition=Q(status__in=["queued", "running"]) | Q(finished_at__isnull=False),
            ),
        ]
        indexes = [models.Index(fields=["bucket", "-created_at"], name="run_newest")]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk} ({self.status})"


class Change(BucketModel):
    """One edit that a run made: what stood before, what stands after, and the words it came from."""

    class Decision(models.TextChoices):
        NONE = "none"
        CONFIRMED = "confirmed"
        EDITED = "edited"
        FORGOTTEN = "forgotten"
        UNDONE = "undone"

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="changes")
    target_kind = models.CharField(max_length=16)
    target = models.CharField(max_length=300)
    before = models.TextField(blank=True, default="")
    after = models.TextField(blank=True, default="")
    before_revision = models.PositiveIntegerField(null=True, blank=True)
    after_revision = models.PositiveIntegerField(null=True, blank=True)
    quotes = models.JSONField(default=list, blank=True)
    note = models.TextField(blank=True, default="", help_text="What the guards did: restored, refused, cut.")
    decision = models.CharField(max_length=9, choices=Decision, default=Decision.NONE)
    decided_by = models.CharField(max_length=200, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.CheckConstraint(
                name="change_decision",
                condition=Q(decision__in=["none", "confirmed", "edited", "forgotten", "undone"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.target_kind} {self.target}"


class Schedule(TenantModel):
    """When a job of an agent is due. `cron` has five fields or six in the Quartz form, read in `timezone`.

    Both empty: the setting's cron and the workspace's zone hold. `cursor` is the job's own: where a fair rotation
    over owners goes on. `planned_by` is the cron and the zone that `next_due_at` was computed by, empty where it
    has to be computed anew; `note` says what was wrong with them and what holds instead.
    """

    agent = models.ForeignKey("workspaces.Agent", on_delete=models.CASCADE, related_name="schedules")
    job = models.CharField(max_length=32)
    cron = models.CharField(max_length=100, blank=True, default="")
    timezone = models.CharField(max_length=64, blank=True, default="")
    enabled = models.BooleanField(default=True)
    next_due_at = models.DateTimeField(null=True, blank=True, db_index=True)
    last_due_at = models.DateTimeField(null=True, blank=True)
    cursor = models.BigIntegerField(default=0)
    planned_by = models.CharField(max_length=2100, blank=True, default="")
    note = models.CharField(max_length=500, blank=True, default="")

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["agent", "job"], name="schedule_once"),
        ]
        indexes = [
            models.Index(fields=["id"], name="schedule_unplanned", condition=Q(planned_by="")),
        ]

    def __str__(self) -> str:
        return f"{self.job} of agent {self.agent_id}"
