"""What models were asked, and what it cost."""

from __future__ import annotations

from django.db import models

from workspaces.models.tenancy import BucketModel


class ModelUsage(BucketModel):
    """One question to a model, answered or not. Append-only; kept `mate.memory.retention.usage-days`."""

    at = models.DateTimeField()
    purpose = models.CharField(max_length=64)
    model = models.CharField(max_length=128)
    prompt_version = models.PositiveIntegerField(null=True, blank=True)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    ms = models.PositiveIntegerField(default=0)
    error = models.CharField(
        max_length=32, blank=True, default="", help_text="Kind of error; empty if answered."
    )

    class Meta(BucketModel.Meta):
        indexes = [models.Index(fields=["-at", "workspace"], name="usage_newest")]

    def __str__(self) -> str:
        return f"{self.purpose} {self.model}"
