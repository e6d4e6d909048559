"""Circuit breakers of plugins."""

from __future__ import annotations

from django.db import models

from workspaces.models.tenancy import TenantModel


class ProviderBreaker(TenantModel):
    """The latest failures in a row of a workspace's provider; a healthy one has no row.

    `open_until` is NULL while the breaker is closed. Past it one probe may go: whoever moves it on from the
    value that was read.
    """

    provider = models.CharField(max_length=24)
    failures = models.PositiveIntegerField()
    open_until = models.DateTimeField(null=True, blank=True)
    changed_at = models.DateTimeField()

    class Meta(TenantModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["workspace", "provider"], name="provider_breaker_once"),
        ]

    def __str__(self) -> str:
        return f"{self.provider}: {self.failures} failures"
