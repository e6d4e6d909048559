"""Facts, contradictions and receipts, to read."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from facts.models import (
    Contradiction,
    Evidence,
    Fact,
    FactRevision,
    Feedback,
    ProjectedSection,
    Receipt,
    Tombstone,
)
from workspaces.admin.base import BucketAdminMixin, LongAdmin, OperatorAdmin, ShownInline
from workspaces.admin.filters import BetweenFilter, ChosenFilter


class EvidenceInline(ShownInline):
    model = Evidence
    fields = ("at", "kind", "root", "speaker", "quote", "prompt", "prompt_version", "model")
    ordering = ("id",)


class RevisionInline(ShownInline):
    model = FactRevision
    fields = ("number", "op", "before", "after", "actor", "reason", "at")
    ordering = ("number",)


@admin.register(Fact)
class FactAdmin(BucketAdminMixin, LongAdmin):
    section = "Facts"
    icon = "fact_check"
    list_display = (
        "statement",
        "tier",
        "category",
        "trust",
        "scope",
        "workspace",
        "agent",
        "owner",
        "learned_at",
        "retired_at",
    )
    list_filter = (
        ("workspace", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("bucket__owner", ChosenFilter),
        ("tier", ChoicesDropdownFilter),
        ("retired_why", ChoicesDropdownFilter),
        ("learned_at", BetweenFilter),
    )
    search_fields = ("statement",)
    ordering = ("-id",)
    exclude = ("workspace",)
    inlines = (EvidenceInline, RevisionInline)


class OfFact(BucketAdminMixin, LongAdmin):
    """A row about a fact."""

    section = "Facts"
    ordering = ("-id",)
    exclude = ("workspace",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("fact")


@admin.register(Evidence)
class EvidenceAdmin(OfFact):
    icon = "find_in_page"
    list_display = ("id", "fact_id", "kind", "root", "speaker", "workspace", "at")
    list_filter = (("workspace", ChosenFilter), ("kind", ChoicesDropdownFilter))


@admin.register(FactRevision)
class FactRevisionAdmin(OfFact):
    icon = "history"
    list_display = ("id", "fact_id", "number", "op", "actor", "reason", "workspace", "at")
    list_filter = (("workspace", ChosenFilter), ("op", ChoicesDropdownFilter))


@admin.register(Contradiction)
class ContradictionAdmin(BucketAdminMixin, LongAdmin):
    section = "Facts"
    icon = "balance"
    list_display = (
        "id",
        "a_id",
        "b_id",
        "reason",
        "decision",
        "judged_by",
        "scope",
        "workspace",
        "agent",
        "owner",
        "found_at",
    )
    list_filter = (
        ("workspace", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("decision", ChoicesDropdownFilter),
    )
    ordering = ("-id",)
    exclude = ("workspace",)


@admin.register(Feedback)
class FeedbackAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Facts"
    icon = "thumbs_up_down"
    list_display = ("item", "voter", "helpful", "scope", "workspace", "agent", "owner", "at")
    list_filter = (("workspace", ChosenFilter), "helpful")
    ordering = ("-at",)
    exclude = ("workspace",)


@admin.register(ProjectedSection)
class ProjectedSectionAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Facts"
    icon = "segment"
    list_display = ("file_id", "heading", "facts", "scope", "workspace", "agent", "owner", "at")
    list_filter = (("workspace", ChosenFilter),)
    ordering = ("-at",)
    exclude = ("workspace",)


@admin.register(Receipt)
class ReceiptAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Facts"
    icon = "receipt_long"
    list_display = ("uid", "by", "actor", "scope", "workspace", "agent", "owner", "at")
    list_filter = (("workspace", ChosenFilter),)
    ordering = ("-at",)
    exclude = ("workspace",)


@admin.register(Tombstone)
class TombstoneAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Facts"
    icon = "block"
    list_display = ("fingerprint", "refused", "scope", "workspace", "agent", "owner", "created_at")
    list_filter = (("workspace", ChosenFilter),)
    ordering = ("-created_at",)
    exclude = ("workspace",)
