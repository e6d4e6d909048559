"""Conversations, to read; who read a person's own is written down."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from memory.models import (
    ContextSummary,
    Conversation,
    Entry,
    EntryRevision,
    ExtractionState,
    Message,
    ProviderBreaker,
    RecallHit,
    Turn,
)
from workspaces.admin.base import BucketAdminMixin, LongAdmin, OperatorAdmin, ShownInline, link_to_list
from workspaces.admin.filters import BetweenFilter, ChosenFilter


class MessageInline(ShownInline):
    model = Message
    fields = ("at", "role", "speaker", "content", "failed")
    ordering = ("id",)


@admin.register(Conversation)
class ConversationAdmin(BucketAdminMixin, LongAdmin):
    section = "Conversations"
    icon = "forum"
    list_display = ("external_id", "source", "scope", "workspace", "agent", "owner", "created_at", "last_at")
    list_filter = (
        ("workspace", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("bucket__owner", ChosenFilter),
        ("source", ChoicesDropdownFilter),
        ("last_at", BetweenFilter),
    )
    search_fields = ("external_id",)
    ordering = ("-last_at",)
    fields = (
        "external_id",
        "title",
        "source",
        "bucket",
        "extracted_upto",
        "its_turns",
        "created_at",
        "last_at",
    )
    readonly_fields = ("its_turns",)
    inlines = (MessageInline,)

    @admin.display(description="Turns")
    def its_turns(self, obj: Conversation) -> SafeString:
        """A link to its turns."""
        return link_to_list(Turn, "Turns of this conversation", conversation__id__exact=obj.pk)


class OfConversation(BucketAdminMixin, LongAdmin):
    """A row of a conversation."""

    ordering = ("-id",)
    exclude = ("workspace",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("conversation")


@admin.register(Message)
class MessageAdmin(OfConversation):
    section = "Conversations"
    icon = "chat"
    list_display = ("id", "conversation_id", "role", "scope", "workspace", "agent", "owner", "tokens", "at")
    list_filter = (
        ("workspace", ChosenFilter),
        ("conversation", ChosenFilter),
        ("role", ChoicesDropdownFilter),
        "failed",
        ("at", BetweenFilter),
    )


@admin.register(Turn)
class TurnAdmin(OfConversation):
    section = "Conversations"
    icon = "swap_horiz"
    list_display = (
        "id",
        "status",
        "model",
        "workspace",
        "agent",
        "owner",
        "input_tokens",
        "output_tokens",
        "ms",
        "error",
        "started_at",
    )
    list_filter = (
        ("status", ChoicesDropdownFilter),
        ("workspace", ChosenFilter),
        ("conversation", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("started_at", BetweenFilter),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("question", "answer")


@admin.register(ContextSummary)
class ContextSummaryAdmin(OfConversation):
    section = "Conversations"
    icon = "short_text"
    list_display = (
        "id",
        "conversation_id",
        "upto_message",
        "tokens",
        "model",
        "workspace",
        "created_at",
        "expires_at",
    )
    list_filter = (("workspace", ChosenFilter),)


@admin.register(ExtractionState)
class ExtractionStateAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Conversations"
    icon = "hourglass"
    list_display = ("id", "scope", "workspace", "agent", "owner", "cooldown_until")
    list_filter = (("workspace", ChosenFilter),)
    ordering = ("-cooldown_until",)
    exclude = ("workspace",)


@admin.register(RecallHit)
class RecallHitAdmin(BucketAdminMixin, OperatorAdmin):
    section = "Conversations"
    icon = "travel_explore"
    list_display = ("at", "item", "source", "rank", "score", "scope", "workspace", "agent", "owner")
    list_filter = (("workspace", ChosenFilter), "source", "kind")
    ordering = ("-at",)
    exclude = ("workspace",)


@admin.register(ProviderBreaker)
class ProviderBreakerAdmin(OperatorAdmin):
    section = "Work"
    icon = "electrical_services"
    list_display = ("provider", "workspace", "failures", "open_until", "changed_at")
    list_select_related = ("workspace",)
    list_filter = (("workspace", ChosenFilter),)
    ordering = ("-changed_at",)


class EntryRevisionInline(ShownInline):
    model = EntryRevision
    fields = ("number", "op", "content", "author_kind", "actor", "reason", "created_at")
    ordering = ("number",)


@admin.register(Entry)
class EntryAdmin(BucketAdminMixin, LongAdmin):
    section = "Memory"
    icon = "label"
    list_display = (
        "type",
        "key",
        "content",
        "author_kind",
        "scope",
        "workspace",
        "agent",
        "owner",
        "updated_at",
    )
    list_filter = (
        ("workspace", ChosenFilter),
        ("bucket__agent", ChosenFilter),
        ("bucket__owner", ChosenFilter),
        ("type", ChoicesDropdownFilter),
        ("author_kind", ChoicesDropdownFilter),
        ("updated_at", BetweenFilter),
    )
    search_fields = ("key",)
    ordering = ("-updated_at",)
    exclude = ("workspace",)
    inlines = (EntryRevisionInline,)


@admin.register(EntryRevision)
class EntryRevisionAdmin(BucketAdminMixin, LongAdmin):
    section = "Memory"
    icon = "history"
    list_display = ("id", "entry_id", "number", "op", "actor", "reason", "workspace", "created_at")
    list_filter = (("workspace", ChosenFilter),)
    ordering = ("-id",)
    exclude = ("workspace",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).select_related("entry")
