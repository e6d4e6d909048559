"""Plugins as workspaces have set them up."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from workspaces.models.tenancy import TenantModel


class Plugin(TenantModel):
    """A plugin's configuration in a workspace. `secrets` is sealed JSON, empty without any.

    `updated_at` tells one configuration from the next: whatever was made of an earlier one is not used again.
    """

    class Status(models.TextChoices):
        UNCHECKED = "unchecked"
        OK = "ok"
        FAILED = "failed"

    kind = models.CharField(max_length=24)
    enabled = models.BooleanField(default=False)
    config = models.JSONField(default=dict, blank=True)
    secrets = models.TextField(blank=True, default="")
    status = models.CharField(max_length=9, choices=Status, default=Status.UNCHECKED)
    found = models.CharField(max_length=500, blank=True, default="", help_text="What the last check found.")
    last_error = models.CharField(max_length=500, blank=True, default="")
    checked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "kind"], name="plugin_once"),
            models.CheckConstraint(
                name="plugin_status", condition=Q(status__in=["unchecked", "ok", "failed"])
            ),
        ]

    def __str__(self) -> str:
        return self.kind
