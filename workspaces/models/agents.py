"""Agents and the people they remember."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from workspaces.models.tenancy import TenantModel


class Agent(TenantModel):
    """A digital employee of a workspace."""

    name = models.CharField(max_length=128)
    description = models.TextField(blank=True, default="")
    system_prompt = models.TextField(blank=True, default="")
    model = models.CharField(
        max_length=128, blank=True, default="", help_text="Empty: the model of the installation (MATE_MODEL)."
    )
    enabled = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "name"], name="agent_name_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="agent_in_workspace"),
            models.UniqueConstraint(
                fields=["workspace"], condition=models.Q(is_default=True), name="agent_one_default"
            ),
            models.CheckConstraint(name="agent_name_told", condition=~models.Q(name="")),
        ]

    def __str__(self) -> str:
        return self.name


class Owner(TenantModel):
    """A person whom agents remember. `key` never changes; `name` is what they are called, empty if unknown.

    `timezone` is empty where the workspace's holds.
    """

    key = models.CharField(max_length=400)
    name = models.CharField(max_length=128, blank=True, default="")
    timezone = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "key"], name="owner_key_once"),
            models.UniqueConstraint(fields=["workspace", "id"], name="owner_in_workspace"),
            models.CheckConstraint(name="owner_key_told", condition=~models.Q(key="")),
        ]

    def __str__(self) -> str:
        return self.name or self.key
