"""Personal access tokens: made with a form that shows the secret once, and revoked. Never the hash."""

from __future__ import annotations

from typing import Any, cast

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminSelect2MultipleWidget

from workspaces.admin.base import OperatorAdmin, actor_of, address_of, button
from workspaces.admin.filters import ChosenFilter
from workspaces.models import Agent, Member, PersonalAccessToken
from workspaces.services.tokens import issue_token, revoke_token
from workspaces.types import Grant

_SECRET = "_issued_secret"  # noqa: S105 - the name of an attribute of the request


class AgentsField(forms.ModelMultipleChoiceField):  # type: ignore[type-arg]
    """Agents with their workspaces' names."""

    def label_from_instance(self, obj: Any) -> str:
        return f"{obj.workspace} / {obj.name}"


class TokenForm(forms.ModelForm):  # type: ignore[type-arg]
    """A token for a member of a workspace."""

    grants = forms.MultipleChoiceField(
        choices=[(grant.value, grant.value) for grant in Grant],
        widget=UnfoldAdminCheckboxSelectMultipleWidget(),
    )
    agents = AgentsField(
        queryset=Agent.unscoped.none(),
        required=False,
        widget=UnfoldAdminSelect2MultipleWidget(),
        help_text="None chosen: all agents.",
    )

    class Meta:
        model = PersonalAccessToken
        fields = ("workspace", "user", "name", "namespace", "expires_at")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        agents = Agent.unscoped.select_related("workspace").order_by("workspace__name", "name")
        cast("AgentsField", self.fields["agents"]).queryset = agents

    def clean(self) -> dict[str, Any]:
        """The user is a member of the workspace."""
        given = super().clean() or self.cleaned_data
        workspace, user = given.get("workspace"), given.get("user")
        if workspace and user and not Member.unscoped.filter(workspace=workspace, user=user).exists():
            raise forms.ValidationError(f"{user} is no member of {workspace}.")
        return given


@admin.register(PersonalAccessToken)
class TokenAdmin(OperatorAdmin):
    section = "Workspaces"
    icon = "key"
    may_add = True
    list_display = (
        "name",
        "shown",
        "user",
        "workspace",
        "grants",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = (
        ("workspace", ChosenFilter),
        ("user", ChosenFilter),
        ("revoked_at", admin.EmptyFieldListFilter),
    )
    search_fields = ("name", "prefix", "user__username")
    ordering = ("-id",)
    autocomplete_fields = ("workspace", "user")
    actions = ("revoke",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[PersonalAccessToken]:
        rows = super().get_queryset(request).select_related("workspace", "user").defer("sha256")
        return cast("QuerySet[PersonalAccessToken]", rows)

    def get_form(self, request: HttpRequest, obj: Any = None, **options: Any) -> Any:
        if obj is None:
            options["form"] = TokenForm
        return super().get_form(request, obj, **options)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        if obj is None:
            return ("workspace", "user", "name", "grants", "agents", "namespace", "expires_at")
        times = ("created_at", "last_used_at", "expires_at", "revoked_at")
        return ("workspace", "user", "name", "shown", "grants", "agent_ids", "namespace", *times)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("shown",) if obj else ()

    @admin.display(description="Token")
    def shown(self, obj: PersonalAccessToken) -> str:
        """How it begins."""
        return f"{obj.prefix}…"

    def save_model(self, request: HttpRequest, obj: PersonalAccessToken, form: Any, change: bool) -> None:  # noqa: FBT001, ARG002
        given = form.cleaned_data
        made, secret = issue_token(
            obj.workspace_id,
            user_id=obj.user_id,
            name=obj.name,
            grants=given["grants"],
            agent_ids=[agent.pk for agent in given["agents"]] or None,
            namespace=obj.namespace,
            expires_at=obj.expires_at,
            actor=actor_of(request),
            address=address_of(request),
        )
        obj.pk, obj.prefix, obj.grants = made.pk, made.prefix, made.grants
        setattr(request, _SECRET, secret)

    def response_add(
        self,
        request: HttpRequest,
        obj: PersonalAccessToken,
        post_url_continue: str | None = None,  # noqa: ARG002
    ) -> HttpResponse:
        # Shown in the answer itself: a message would carry the secret through a cookie.
        context = {
            **self.admin_site.each_context(request),
            "title": f"Token {obj.name}",
            "opts": self.opts,
            "token": obj,
            "secret": getattr(request, _SECRET),
        }
        return TemplateResponse(
            request, "admin/workspaces/token_issued.html", context, headers={"Cache-Control": "no-store"}
        )

    @button(description="Revoke at once")
    def revoke(self, request: HttpRequest, queryset: QuerySet[PersonalAccessToken]) -> None:
        """Ends the chosen tokens."""
        for token in queryset:
            revoke_token(token.workspace_id, token.pk, actor=actor_of(request), address=address_of(request))
        self.message_user(request, f"{len(queryset)} tokens are revoked.")
