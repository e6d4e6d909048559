"""Personal access tokens."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models

from workspaces.models.tenancy import TenantModel


class PersonalAccessToken(TenantModel):
    """A user's token for one workspace. The secret is stored only as its SHA-256, in hex.

    `agent_ids` NULL means all agents; `namespace` goes before every `endUserId` of this token.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="tokens")
    name = models.CharField(max_length=64)
    prefix = models.CharField(max_length=12)
    sha256 = models.CharField(max_length=64, unique=True)
    grants = ArrayField(models.CharField(max_length=16), default=list)
    agent_ids = ArrayField(models.BigIntegerField(), null=True, blank=True)
    namespace = models.CharField(max_length=64, blank=True, default="")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.CheckConstraint(name="token_name_told", condition=~models.Q(name="")),
            models.CheckConstraint(
                name="token_grants",
                condition=models.Q(
                    grants__contained_by=["chat", "read", "write", "jobs", "on_behalf", "agents", "admin"]
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
