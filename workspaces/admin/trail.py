"""What was done, and what models cost."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, Sum
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.contrib.filters.admin import FieldTextFilter

from workspaces.admin.base import BucketAdminMixin, LongAdmin
from workspaces.admin.filters import BetweenFilter, ChosenFilter
from workspaces.models import AuditEvent, ModelUsage


@admin.register(AuditEvent)
class AuditAdmin(LongAdmin):
    section = "Trail"
    icon = "fact_check"
    list_display = ("at", "actor", "action", "target", "workspace", "address")
    list_select_related = ("workspace",)
    list_filter = (
        ("workspace", ChosenFilter),
        ("action", FieldTextFilter),
        ("actor", FieldTextFilter),
        ("at", BetweenFilter),
    )
    search_fields = ("target",)
    ordering = ("-at", "-id")
    fields = ("at", "workspace", "actor", "action", "target", "address", "detail")


@admin.register(ModelUsage)
class UsageAdmin(BucketAdminMixin, LongAdmin):
    section = "Trail"
    icon = "payments"
    list_display = (
        "at",
        "purpose",
        "model",
        "workspace",
        "agent",
        "owner",
        "input_tokens",
        "output_tokens",
        "cost_usd",
        "ms",
        "error",
    )
    list_filter = (
        ("workspace", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("purpose", FieldTextFilter),
        ("model", FieldTextFilter),
        ("error", admin.EmptyFieldListFilter),
        ("at", BetweenFilter),
    )
    ordering = ("-at", "-id")
    list_before_template = "admin/workspaces/usage_totals.html"
    exclude = ("workspace",)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        answer: HttpResponse = super().changelist_view(request, extra_context)
        if isinstance(answer, TemplateResponse) and answer.context_data and "cl" in answer.context_data:
            rows = answer.context_data["cl"].queryset.order_by()
            answer.context_data["totals"] = rows.aggregate(
                calls=Count("pk"),
                failed=Count("pk", filter=~Q(error="")),
                sent=Sum("input_tokens"),
                received=Sum("output_tokens"),
                cost=Sum("cost_usd"),
            )
        return answer
