"""The state of extraction in a bucket."""

from __future__ import annotations

from django.db import models

from workspaces.models.tenancy import BucketModel


class ExtractionState(BucketModel):
    """When a bucket may be extracted again. The lock is the bucket's lane; this is the cooldown."""

    cooldown_until = models.DateTimeField(null=True, blank=True)

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["bucket"], name="extraction_state_once"),
        ]

    def __str__(self) -> str:
        return f"extraction of bucket {self.bucket_id}"
