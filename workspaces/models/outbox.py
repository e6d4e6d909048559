"""The outbox: lanes, their messages, and who is alive to work them."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import BucketModel


class Lane(BucketModel):
    """The queue of one bucket for one family of work, and its own lock.

    `due_at` is when its next message may be worked, NULL when none waits. While `lease_until` lies ahead,
    the holder of `lease_token` alone works the lane.
    """

    family = models.CharField(max_length=32)
    due_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    lease_by = models.CharField(max_length=128, blank=True, default="", help_text="host:pid of the holder.")

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["bucket", "family"], name="lane_once"),
            models.UniqueConstraint(fields=["bucket", "id"], name="lane_in_bucket"),
        ]
        indexes = [
            # For the claim: the earliest lane that is due.
            models.Index(fields=["due_at"], name="lane_due", condition=Q(due_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.family} of bucket {self.bucket_id}"


class OutboxMessage(BucketModel):
    """A piece of work that was committed together with the change it announces.

    Messages of one lane, topic and `key` coalesce while they wait; `generation` counts the news, so that
    news during a run causes another run. `attempts` counts failures.
    """

    lane = models.ForeignKey(Lane, on_delete=models.CASCADE, related_name="messages")
    topic = models.CharField(max_length=64)
    key = models.CharField(max_length=200, blank=True, default="")
    payload = models.JSONField(default=dict, blank=True)
    generation = models.PositiveIntegerField(default=1)
    due_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True, default="")
    parked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["lane", "topic", "key"],
                condition=Q(parked_at__isnull=True) & ~Q(key=""),
                name="outbox_coalesce",
            ),
        ]
        indexes = [
            models.Index(fields=["lane", "id"], name="outbox_in_order"),
            models.Index(fields=["topic", "due_at"], name="outbox_due_by_topic"),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.pk}"


class Heartbeat(models.Model):
    """When a process last said that it lives. No tenant's data."""

    process = models.CharField(max_length=128, unique=True, help_text="kind@host:pid")
    kind = models.CharField(max_length=16)
    at = models.DateTimeField()

    def __str__(self) -> str:
        return self.process
