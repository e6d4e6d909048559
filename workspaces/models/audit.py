"""What was done, by whom, from where; and which answer a repeated request gets."""

from __future__ import annotations

from django.db import models

from workspaces.models.tenancy import TenantModel


class AuditEvent(TenantModel):
    """One act. Append-only; kept `mate.memory.retention.audit-days`."""

    at = models.DateTimeField()
    actor = models.CharField(max_length=200)
    action = models.CharField(max_length=64)
    target = models.CharField(max_length=400, blank=True, default="")
    address = models.CharField(max_length=64, blank=True, default="")
    detail = models.JSONField(default=dict, blank=True)

    class Meta(TenantModel.Meta):
        indexes = [models.Index(fields=["-at", "workspace"], name="audit_newest")]

    def __str__(self) -> str:
        return f"{self.actor} {self.action} {self.target}"


class IdempotencyKey(TenantModel):
    """The first answer to a request that carried an `Idempotency-Key`; `status` is NULL while it runs.

    The answer may hold a person's memory while the row is the workspace's: it is kept encrypted.
    """

    caller = models.CharField(max_length=200)
    key = models.CharField(max_length=255)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    body = models.TextField(blank=True, default="", help_text="Encrypted JSON.")
    created_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "caller", "key"], name="idempotency_once"),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotency_oldest")]

    def __str__(self) -> str:
        return self.key
