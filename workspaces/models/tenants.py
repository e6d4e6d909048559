"""Workspaces and their members."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.db import models

from workspaces.models.tenancy import TenantModel
from workspaces.types import Role

GLOBAL_WORKSPACE_ID: Final = 1
"""The reserved workspace that GLOBAL rows belong to; has no member and no agent."""


class Workspace(models.Model):
    """A tenant."""

    class Language(models.TextChoices):
        ENGLISH = "en", "English"
        CHINESE = "zh", "中文"

    name = models.CharField(max_length=128)
    slug = models.SlugField(max_length=64, unique=True)
    language = models.CharField(max_length=8, choices=Language, default=Language.ENGLISH)
    timezone = models.CharField(max_length=64, default="UTC")
    created_at = models.DateTimeField()

    unscoped = models.Manager["Workspace"]()
    objects = unscoped

    class Meta:
        constraints = [
            models.CheckConstraint(name="workspace_language", condition=models.Q(language__in=["en", "zh"])),
            models.CheckConstraint(name="workspace_name_told", condition=~models.Q(name="")),
        ]

    def __str__(self) -> str:
        return self.name


class Member(TenantModel):
    """A user in a workspace, with a role."""

    class RoleChoice(models.IntegerChoices):
        VIEWER = Role.VIEWER.value, "viewer"
        MEMBER = Role.MEMBER.value, "member"
        ADMIN = Role.ADMIN.value, "admin"
        OWNER = Role.OWNER.value, "workspace owner"

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.SmallIntegerField(choices=RoleChoice, default=RoleChoice.MEMBER)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="member_once"),
            models.CheckConstraint(name="member_role", condition=models.Q(role__gte=1, role__lte=4)),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} ({Role(self.role).name.lower()})"
