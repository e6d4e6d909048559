"""What must not be learned again, and what a forget removed. Neither holds the words."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models

from workspaces.models.tenancy import BucketModel


class Receipt(BucketModel):
    """What one forget removed, where. `removed` is `{facts: n, …}`, `providers` `{name: pending|done|failed}`,
    `residue` `[{where, similarity}]`: never the words themselves."""

    uid = models.UUIDField(default=uuid.uuid4, editable=False)
    actor = models.CharField(max_length=200)
    by = models.CharField(max_length=8, help_text="fact, entry or text.")
    removed = models.JSONField(default=dict)
    providers = models.JSONField(default=dict, blank=True)
    residue = models.JSONField(default=list, blank=True)
    at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["uid"], name="receipt_uid_once"),
            models.UniqueConstraint(fields=["bucket", "id"], name="receipt_in_bucket"),
        ]

    def __str__(self) -> str:
        return str(self.uid)


class Tombstone(BucketModel):
    """A statement that a person had forgotten: its keyed fingerprint, and those of its words.

    Both are made with the server's secret, so that the words cannot be guessed from a copy of the table.
    """

    fingerprint = models.CharField(max_length=32)
    words = ArrayField(models.BigIntegerField(), default=list, help_text="Keyed hashes of the lexemes.")
    receipt = models.ForeignKey(
        Receipt, null=True, blank=True, on_delete=models.SET_NULL, related_name="tombstones"
    )
    refused = models.PositiveIntegerField(default=0, help_text="How often it was kept from coming back.")
    created_at = models.DateTimeField()

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["bucket", "fingerprint"], name="tombstone_once"),
        ]

    def __str__(self) -> str:
        return self.fingerprint
