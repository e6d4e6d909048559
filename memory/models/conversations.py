"""Conversations, their messages and turns."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import BucketModel


class Conversation(BucketModel):
    """A series of turns. `external_id` is what callers name it by, unique in its bucket.

    `extracted_upto` is the watermark of extraction: the id of the last message that a run has worked through,
    0 for none.
    """

    class Source(models.TextChoices):
        WEB = "web"
        API = "api"
        CHANNEL = "channel"
        IMPORT = "import"
        CRON = "cron"

    external_id = models.CharField(max_length=128)
    source = models.CharField(max_length=8, choices=Source)
    title = models.CharField(max_length=200, blank=True, default="")
    extracted_upto = models.BigIntegerField(default=0)
    length = models.PositiveIntegerField(default=0, help_text="Messages it has had; the next one's place.")
    skip_told_upto = models.BigIntegerField(default=0, help_text="Up to which message a skip was told.")
    last_message = models.BigIntegerField(default=0, help_text="Id of the latest message, 0 for none.")
    created_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["bucket", "external_id"], name="conversation_once"),
            models.UniqueConstraint(fields=["bucket", "id"], name="conversation_in_bucket"),
            models.CheckConstraint(
                name="conversation_source",
                condition=Q(source__in=["web", "api", "channel", "import", "cron"]),
            ),
        ]
        indexes = [
            models.Index(fields=["bucket", "-last_at"], name="conversation_newest"),
            # For extraction: the conversations that have a backlog.
            models.Index(
                fields=["bucket", "-last_message"],
                name="conversation_waiting",
                condition=Q(last_message__gt=models.F("extracted_upto")),
            ),
        ]

    def __str__(self) -> str:
        return self.title or self.external_id


class Message(BucketModel):
    """One side of a turn. `is_owner` tells whether the bucket's owner said it: only that is evidence about them.

    `external_id` is the caller's own, stored once in its conversation; `at` is when it was said.
    """

    class MessageRole(models.TextChoices):
        USER = "user"
        ASSISTANT = "assistant"
        TOOL = "tool"
        SYSTEM = "system"

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="messages")
    role = models.CharField(max_length=9, choices=MessageRole)
    speaker = models.CharField(max_length=128, blank=True, default="")
    is_owner = models.BooleanField(default=False)
    content = models.TextField()
    tokens = models.PositiveIntegerField(default=0)
    failed = models.BooleanField(
        default=False, help_text="An answer that broke off; kept, never learned from."
    )
    external_id = models.CharField(max_length=255, null=True, blank=True)
    request_key = models.CharField(
        max_length=64,
        null=True,
        blank=True,
        help_text="The request that brought it, so that a repetition does not.",
    )
    at = models.DateTimeField()
    created_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["conversation", "external_id"],
                condition=Q(external_id__isnull=False),
                name="message_external_id_once",
            ),
            models.UniqueConstraint(
                fields=["conversation", "request_key"],
                condition=Q(request_key__isnull=False),
                name="message_request_once",
            ),
            models.UniqueConstraint(fields=["bucket", "id"], name="message_in_bucket"),
            models.CheckConstraint(
                name="message_role", condition=Q(role__in=["user", "assistant", "tool", "system"])
            ),
        ]
        indexes = [models.Index(fields=["conversation", "id"], name="message_in_order")]

    def __str__(self) -> str:
        return f"{self.role} {self.pk}"


class Turn(BucketModel):
    """The bookkeeping of one question and its answer, opened when it begins and closed when it ends.

    `recalled` lists the items put before the agent, with their text: what was recalled is never learned again.
    """

    class Status(models.TextChoices):
        STARTED = "started"
        ANSWERED = "answered"
        FAILED = "failed"
        CANCELLED = "cancelled"
        INTERRUPTED = "interrupted"

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="turns")
    question = models.ForeignKey(Message, on_delete=models.CASCADE, related_name="+")
    answer = models.ForeignKey(Message, null=True, on_delete=models.CASCADE, related_name="+")
    status = models.CharField(max_length=11, choices=Status, default=Status.STARTED)
    model = models.CharField(max_length=128, blank=True, default="")
    recalled = models.JSONField(default=list)
    providers = models.JSONField(default=list)
    window = models.JSONField(default=dict)
    tools = models.JSONField(default=list)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True)
    error = models.CharField(max_length=300, blank=True, default="")
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    ms = models.PositiveIntegerField(null=True, help_text="From the question to the end of the answer.")

    class Meta(BucketModel.Meta):
        constraints = [
            models.CheckConstraint(
                name="turn_status",
                condition=Q(status__in=["started", "answered", "failed", "cancelled", "interrupted"]),
            ),
            models.CheckConstraint(
                name="turn_closed", condition=Q(status="started") | Q(finished_at__isnull=False)
            ),
        ]
        indexes = [
            models.Index(fields=["started_at"], name="turn_open", condition=Q(status="started")),
            models.Index(fields=["conversation", "-id"], name="turn_newest"),
            models.Index(fields=["-started_at", "workspace"], name="turn_by_time"),
        ]

    def __str__(self) -> str:
        return f"turn {self.pk} ({self.status})"


class ContextSummary(BucketModel):
    """The summary of a conversation up to a message, kept for a while so that it is not made each turn."""

    conversation = models.ForeignKey(Conversation, on_delete=models.CASCADE, related_name="summaries")
    upto_message = models.BigIntegerField(help_text="Id of the last message it covers.")
    text = models.TextField()
    tokens = models.PositiveIntegerField()
    model = models.CharField(max_length=128)
    prompt_version = models.PositiveIntegerField()
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        verbose_name_plural = "context summaries"
        constraints = [
            models.UniqueConstraint(fields=["conversation", "upto_message"], name="summary_once"),
        ]

    def __str__(self) -> str:
        return f"summary of {self.conversation_id} up to {self.upto_message}"
