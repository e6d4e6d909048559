"""Overrides of settings."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from workspaces.models.tenancy import TenantModel


class SettingOverride(TenantModel):
    """A value that beats the default and the environment. A global one belongs to the reserved workspace."""

    agent = models.ForeignKey(
        "workspaces.Agent", null=True, blank=True, on_delete=models.CASCADE, related_name="+"
    )
    key = models.CharField(max_length=128)
    value = models.JSONField()
    updated_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    updated_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(
                fields=["workspace", "agent", "key"], nulls_distinct=False, name="setting_override_once"
            ),
        ]

    def __str__(self) -> str:
        return self.key
