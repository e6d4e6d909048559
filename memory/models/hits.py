"""What was put before an agent, and when."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import BucketModel


class RecallHit(BucketModel):
    """One time that a recalled item was put before an agent, or shown to a program that asked to have it counted.

    The bucket is that of the person whose turn it was. `source_id` and `content_hash` name the record as the index
    does (the hash stays when a line moves in its file); a plugin's item has neither. Append-only.
    """

    class HitSource(models.TextChoices):
        CHAT = "chat"
        CONTEXT = "context"
        SEARCH = "search"
        JOB = "job"

    at = models.DateTimeField()
    source = models.CharField(
        max_length=8, choices=HitSource, help_text="What asked: a job's own recalls do not count as interest."
    )
    query_hash = models.CharField(
        max_length=32, help_text="Tells different questions apart without keeping them."
    )
    turn_id = models.BigIntegerField(null=True)
    item = models.CharField(max_length=200)
    kind = models.CharField(max_length=64)
    source_id = models.BigIntegerField(null=True)
    content_hash = models.CharField(max_length=32, blank=True, default="")
    rank = models.PositiveSmallIntegerField(help_text="0 for the first.")
    score = models.FloatField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.CheckConstraint(
                name="recall_hit_source", condition=Q(source__in=["chat", "context", "search", "job"])
            )
        ]
        indexes = [
            models.Index(fields=["at", "workspace"], name="recall_hit_in_time"),
            models.Index(fields=["bucket", "kind", "source_id"], name="recall_hit_of_record"),
        ]

    def __str__(self) -> str:
        return f"{self.item} at {self.at:%Y-%m-%d %H:%M}"
