"""Background work: what waits, what failed, who works, and what runs did."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.options import ModelAdmin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.contrib.filters.admin import (
    ChoicesDropdownFilter,
    DropdownFilter,
    FieldTextFilter,
)

from workspaces import outbox
from workspaces.admin.base import (
    BucketAdminMixin,
    LongAdmin,
    OperatorAdmin,
    ShownInline,
    actor_of,
    address_of,
    button,
)
from workspaces.admin.filters import BetweenFilter, ChosenFilter
from workspaces.models import Change, Heartbeat, Lane, OutboxMessage, Run, Schedule
from workspaces.services.audit import record_audit
from workspaces.services.schedules import change_schedule


class TopicFilter(DropdownFilter):  # type: ignore[misc] # unfold is not typed
    """By topic; the choices are the registered ones."""

    title = "topic"
    parameter_name = "topic"

    def lookups(self, request: HttpRequest, model_admin: ModelAdmin[Any]) -> list[tuple[str, str]]:  # noqa: ARG002
        return [(name, name) for name in outbox.topics()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002
        return queryset.filter(topic=self.value()) if self.value() else queryset


class MessageInline(ShownInline):
    model = OutboxMessage
    fields = ("topic", "key", "due_at", "attempts", "parked_at", "last_error")
    ordering = ("id",)


@admin.register(Lane)
class LaneAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Work"
    icon = "linear_scale"
    list_display = ("family", "scope", "workspace", "agent", "owner", "due_at", "lease_until")
    list_filter = (
        ("workspace", ChosenFilter),
        ("family", FieldTextFilter),
        ("due_at", admin.EmptyFieldListFilter),
        ("lease_until", admin.EmptyFieldListFilter),
    )
    ordering = ("due_at",)
    fields = ("family", "bucket", "workspace", "due_at", "lease_until")
    inlines = (MessageInline,)


@admin.register(OutboxMessage)
class OutboxMessageAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Work"
    icon = "outbox"
    list_display = (
        "topic",
        "key",
        "scope",
        "workspace",
        "owner",
        "due_at",
        "attempts",
        "parked_at",
        "last_error",
    )
    list_filter = (
        TopicFilter,
        ("parked_at", admin.EmptyFieldListFilter),
        ("workspace", ChosenFilter),
    )
    search_fields = ("key", "last_error")
    ordering = ("due_at",)
    fields = (
        "topic",
        "key",
        "bucket",
        "lane",
        "payload",
        "generation",
        "due_at",
        "attempts",
        "last_error",
        "parked_at",
        "created_at",
    )
    actions = ("run_again",)

    @button(description="Run again")
    def run_again(self, request: HttpRequest, queryset: QuerySet[OutboxMessage]) -> None:
        """Puts the chosen messages to the front of their lanes."""
        chosen = list(queryset.order_by("pk"))
        for message in chosen:
            outbox.rerun(message.pk)
            record_audit(
                message.workspace_id,
                actor=actor_of(request),
                action="outbox.rerun",
                target=f"message:{message.pk}",
                address=address_of(request),
                detail={"topic": message.topic, "key": message.key},
            )
        self.message_user(request, f"{len(chosen)} messages run again.")


@admin.register(Heartbeat)
class HeartbeatAdmin(OperatorAdmin):
    section = "Work"
    icon = "monitor_heart"
    list_display = ("process", "kind", "at")
    list_filter = (("kind", FieldTextFilter),)
    ordering = ("-at",)


class ChangeInline(ShownInline):
    model = Change
    fields = ("target_kind", "target", "note", "decision", "decided_by", "created_at")
    ordering = ("id",)


@admin.register(Run)
class RunAdmin(BucketAdminMixin, LongAdmin):
    section = "Work"
    icon = "play_circle"
    list_display = (
        "kind",
        "status",
        "reason",
        "trigger",
        "scope",
        "workspace",
        "agent",
        "owner",
        "created_at",
        "finished_at",
    )
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("kind", FieldTextFilter),
        ("reason", FieldTextFilter),
        ("workspace", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("created_at", BetweenFilter),
    )
    ordering = ("-id",)
    exclude = ("workspace",)
    inlines = (ChangeInline,)


@admin.register(Change)
class ChangeAdmin(BucketAdminMixin, LongAdmin):
    section = "Work"
    icon = "difference"
    list_display = ("target", "target_kind", "run", "scope", "workspace", "owner", "decision", "created_at")
    list_filter = (
        ("workspace", ChosenFilter),
        ("target_kind", FieldTextFilter),
        ("decision", ChoicesDropdownFilter),
    )
    list_select_related = ("run",)
    ordering = ("-id",)
    exclude = ("workspace",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("run")


@admin.register(Schedule)
class ScheduleAdmin(OperatorAdmin):
    section = "Work"
    icon = "event_repeat"
    may_change = True
    list_display = (
        "job",
        "agent",
        "workspace",
        "goes_by",
        "enabled",
        "next_due_at",
        "last_due_at",
        "note",
    )
    list_filter = (
        ("workspace", ChosenFilter),
        ("agent", ChosenFilter),
        ("job", FieldTextFilter),
        "enabled",
        ("note", admin.EmptyFieldListFilter),
    )
    list_select_related = ("workspace", "agent")
    ordering = ("workspace", "agent", "job")
    fields = (
        "job",
        "agent",
        "workspace",
        "cron",
        "timezone",
        "enabled",
        "goes_by",
        "note",
        "next_due_at",
        "last_due_at",
        "cursor",
    )
    readonly_fields = (
        "job",
        "agent",
        "workspace",
        "goes_by",
        "note",
        "next_due_at",
        "last_due_at",
        "cursor",
    )

    @admin.display(description="Goes by")
    def goes_by(self, obj: Schedule) -> str:
        """The cron and the time zone in force; empty until the next tick has planned the row."""
        return obj.planned_by or "–"

    def save_model(self, request: HttpRequest, obj: Schedule, form: Any, change: bool) -> None:  # noqa: ARG002, FBT001
        names = {"cron": "cron", "timezone": "zone", "enabled": "enabled"}
        change_schedule(
            obj.workspace_id,
            obj.agent_id,
            obj.job,
            now=timezone.now(),
            actor=actor_of(request),
            address=address_of(request),
            **{names[field]: form.cleaned_data[field] for field in form.changed_data},
        )
