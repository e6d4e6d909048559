"""Two facts that cannot both be true, and what a person decided."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q

from facts.models.facts import Fact
from workspaces.models.tenancy import BucketModel


class Contradiction(BucketModel):
    """One unordered pair of facts (`a` has the lower id). Both stand until somebody decides.

    `undo` holds what the decision changed, so that it can be taken back.
    """

    class Decision(models.TextChoices):
        OPEN = ""
        KEEP_A = "keep_a"
        KEEP_B = "keep_b"
        BOTH = "both"
        MERGE = "merge"
        IGNORE = "ignore"

    a = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="+")
    b = models.ForeignKey(Fact, on_delete=models.CASCADE, related_name="+")
    reason = models.CharField(max_length=300, blank=True, default="")
    judged_by = models.CharField(max_length=128, help_text="The model's name, or rules.")
    prompt_version = models.PositiveIntegerField(null=True, blank=True)
    found_at = models.DateTimeField()
    decision = models.CharField(max_length=6, choices=Decision, blank=True, default=Decision.OPEN)
    decided_by = models.CharField(max_length=200, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    undo = models.JSONField(default=dict, blank=True)

    class Meta(BucketModel.Meta):
        constraints = [
            models.UniqueConstraint(fields=["a", "b"], name="contradiction_once"),
            models.CheckConstraint(name="contradiction_is_ordered", condition=Q(a__lt=F("b"))),
            models.CheckConstraint(
                name="contradiction_decision",
                condition=Q(decision__in=["", "keep_a", "keep_b", "both", "merge", "ignore"]),
            ),
            models.CheckConstraint(
                name="contradiction_decided_when",
                condition=Q(decision="", decided_at__isnull=True)
                | (~Q(decision="") & Q(decided_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(fields=["bucket", "-found_at"], name="contradiction_open", condition=Q(decision="")),
        ]

    def __str__(self) -> str:
        return f"{self.a_id} and {self.b_id}"
