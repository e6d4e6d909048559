"""Workspaces, their members, the people whom agents remember, and buckets."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from unfold.contrib.filters.admin import ChoicesDropdownFilter

from workspaces.admin.base import OperatorAdmin, ShownInline, actor_of, address_of, link_to_list
from workspaces.admin.filters import ChosenFilter
from workspaces.errors import BadInput
from workspaces.logic.zones import check_zone
from workspaces.models import GLOBAL_WORKSPACE_ID, Agent, Bucket, File, Member, Owner, Workspace
from workspaces.services.audit import record_audit
from workspaces.services.tenants import (
    add_member,
    change_owner,
    change_role,
    change_workspace,
    create_workspace,
    remove_member,
)
from workspaces.types import Role


class ZoneForm(forms.ModelForm):  # type: ignore[type-arg] # of any model with a time zone
    """Tells a wrong time zone beside its field."""

    def clean_timezone(self) -> str:
        """An IANA name, or nothing where the table allows it."""
        zone = str(self.cleaned_data["timezone"])
        try:
            if zone:
                check_zone(zone)
        except BadInput as bad:
            raise forms.ValidationError(bad.message) from bad
        return zone


class MemberInline(ShownInline):
    model = Member
    fields = ("user", "role", "created_at")
    ordering = ("user__username",)


class AgentInline(ShownInline):
    model = Agent
    fields = ("name", "model", "enabled", "is_default", "created_at")
    ordering = ("name",)


@admin.register(Workspace)
class WorkspaceAdmin(OperatorAdmin):
    section = "Workspaces"
    icon = "workspaces"
    may_add = may_change = True
    form = ZoneForm
    list_display = ("name", "slug", "language", "timezone", "created_at")
    search_fields = ("name", "slug")
    ordering = ("name",)
    fields = ("name", "slug", "language", "timezone")
    inlines = (MemberInline, AgentInline)

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        is_reserved = isinstance(obj, Workspace) and obj.pk == GLOBAL_WORKSPACE_ID
        return not is_reserved and super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("slug", "created_at") if obj else ()

    def get_prepopulated_fields(self, request: HttpRequest, obj: Any = None) -> dict[str, tuple[str, ...]]:  # noqa: ARG002
        return {} if obj else {"slug": ("name",)}

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:  # noqa: FBT001, ARG002
        if change:
            change_workspace(
                obj.pk,
                name=obj.name,
                language=obj.language,
                zone=obj.timezone,
                actor=actor_of(request),
                address=address_of(request),
            )
            return
        made = create_workspace(name=obj.name, slug=obj.slug, language=obj.language, zone=obj.timezone)
        record_audit(
            made.pk,
            actor=actor_of(request),
            action="workspace.created",
            target=f"workspace:{made.pk}",
            address=address_of(request),
        )
        obj.pk = made.pk


@admin.register(Member)
class MemberAdmin(OperatorAdmin):
    section = "Workspaces"
    icon = "group"
    may_add = may_change = may_delete = True
    list_display = ("user", "workspace", "role", "created_at")
    list_select_related = ("user", "workspace")
    list_filter = (("workspace", ChosenFilter), ("role", ChoicesDropdownFilter))
    search_fields = ("user__username", "workspace__name")
    ordering = ("workspace__name", "user__username")
    fields = ("workspace", "user", "role")
    autocomplete_fields = ("workspace", "user")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("workspace", "user") if obj else ()

    def save_model(self, request: HttpRequest, obj: Member, form: Any, change: bool) -> None:  # noqa: FBT001, ARG002
        if change:
            change_role(
                obj.workspace_id,
                user_id=obj.user_id,
                role=Role(obj.role),
                by=Role.OWNER,
                actor=actor_of(request),
                address=address_of(request),
            )
            return
        made = add_member(
            obj.workspace_id,
            user=obj.user,
            role=Role(obj.role),
            actor=actor_of(request),
            address=address_of(request),
        )
        obj.pk = made.pk

    def delete_model(self, request: HttpRequest, obj: Member) -> None:
        remove_member(
            obj.workspace_id,
            user_id=obj.user_id,
            by=Role.OWNER,
            actor=actor_of(request),
            address=address_of(request),
        )


@admin.register(Owner)
class OwnerAdmin(OperatorAdmin):
    section = "Memory"
    icon = "person"
    may_change = True
    form = ZoneForm
    list_display = ("key", "name", "workspace", "timezone", "created_at")
    list_select_related = ("workspace",)
    list_filter = (("workspace", ChosenFilter),)
    search_fields = ("key", "name")
    ordering = ("workspace__name", "key")
    fields = ("workspace", "key", "name", "timezone", "their_files", "created_at")
    readonly_fields = ("workspace", "key", "their_files", "created_at")

    @admin.display(description="Files")
    def their_files(self, obj: Owner) -> SafeString:
        """A link to their own files."""
        return link_to_list(File, "Their own files", bucket__owner__id__exact=obj.pk)

    def save_model(self, request: HttpRequest, obj: Owner, form: Any, change: bool) -> None:  # noqa: FBT001, ARG002
        change_owner(
            obj.workspace_id,
            obj.pk,
            name=obj.name,
            zone=obj.timezone,
            actor=actor_of(request),
            address=address_of(request),
        )


@admin.register(Bucket)
class BucketAdmin(OperatorAdmin):
    section = "Memory"
    icon = "inventory_2"
    list_display = ("id", "scope", "workspace", "agent", "owner", "created_at")
    list_filter = (
        ("workspace", ChosenFilter),
        ("agent", ChosenFilter),
        ("owner", ChosenFilter),
        ("scope", ChoicesDropdownFilter),
    )
    search_fields = ("agent__name", "owner__key", "owner__name", "workspace__name")
    ordering = ("-id",)
    fields = ("scope", "workspace", "agent", "owner", "its_files", "created_at")
    readonly_fields = ("its_files",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Bucket]:
        rows = super().get_queryset(request).select_related("workspace", "agent", "owner")
        return cast("QuerySet[Bucket]", rows)

    @admin.display(description="Files")
    def its_files(self, obj: Bucket) -> SafeString:
        """A link to the files of this bucket."""
        return link_to_list(File, "Files of this bucket", bucket__id__exact=obj.pk)
