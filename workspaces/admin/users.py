"""Accounts. What a person may do in a workspace is their membership's role; here is who they are."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, User
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from workspaces.admin.base import AuditedAdmin, ShownInline
from workspaces.models import Member

admin.site.unregister(User)
admin.site.unregister(Group)  # roles are ours


class MembershipInline(ShownInline):
    model = Member
    fields = ("workspace", "role", "created_at")
    ordering = ("workspace__name",)


@admin.register(User)
class UserAdmin(AuditedAdmin, DjangoUserAdmin):  # type: ignore[type-arg]
    """Accounts are made and deactivated, never deleted: traces name them."""

    section = "People and clock"
    icon = "manage_accounts"
    may_add = may_change = True
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "first_name", "last_name", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    ordering = ("username",)
    filter_horizontal = ()
    inlines = (MembershipInline,)
    fieldsets = (
        (None, {"fields": ("username", "password")}),
        ("Person", {"fields": ("first_name", "last_name", "email")}),
        (
            "Access",
            {
                "fields": ("is_active", "is_staff", "is_superuser"),
                "description": "A global administrator needs staff and superuser; nobody else needs either.",
            },
        ),
        ("Times", {"fields": ("last_login", "date_joined")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("username", "usable_password", "password1", "password2")}),
    )
    readonly_fields = ("last_login", "date_joined")
