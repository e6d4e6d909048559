"""Agents."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.safestring import SafeString
from unfold.forms import BaseDialogForm
from unfold.widgets import UnfoldAdminTextInputWidget

from workspaces.admin.base import OperatorAdmin, actor_of, address_of, button, done, link_to_list
from workspaces.admin.filters import ChosenFilter
from workspaces.errors import DomainError
from workspaces.models import Agent, File, Owner
from workspaces.services.agents import change_agent, create_agent, delete_agent


class DeleteForm(BaseDialogForm):  # type: ignore[misc] # unfold is not typed
    confirm = forms.CharField(label="The agent's name", widget=UnfoldAdminTextInputWidget())


@admin.register(Agent)
class AgentAdmin(OperatorAdmin):
    section = "Workspaces"
    icon = "smart_toy"
    may_add = may_change = True
    list_display = ("name", "workspace", "model", "enabled", "is_default", "created_at")
    list_select_related = ("workspace",)
    list_filter = (("workspace", ChosenFilter), "enabled", "is_default")
    search_fields = ("name", "workspace__name")
    ordering = ("workspace__name", "name")
    autocomplete_fields = ("workspace",)
    actions_detail = ("remove",)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        fields = ("workspace", "name", "description", "system_prompt", "model", "is_default")
        return (*fields, "enabled", "its_files", "its_people", "created_by", "created_at") if obj else fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:  # noqa: ARG002
        return ("workspace", "its_files", "its_people", "created_by", "created_at") if obj else ()

    @admin.display(description="Files")
    def its_files(self, obj: Agent) -> SafeString:
        """A link to its files, also those of the people it remembers."""
        return link_to_list(File, "Files of this agent", bucket__agent__id__exact=obj.pk)

    @admin.display(description="People")
    def its_people(self, obj: Agent) -> SafeString:
        """A link to the people of its workspace."""
        return link_to_list(Owner, "People of this workspace", workspace__id__exact=obj.workspace_id)

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:  # noqa: FBT001
        who = {"actor": actor_of(request), "address": address_of(request)}
        if change:
            changed = {name: form.cleaned_data[name] for name in form.changed_data}
            change_agent(obj.workspace_id, obj.pk, **who, **changed)
            return
        made, _ = create_agent(
            obj.workspace_id,
            name=obj.name,
            description=obj.description,
            system_prompt=obj.system_prompt,
            model=obj.model,
            is_default=obj.is_default,
            user_id=request.user.pk,
            **who,
        )
        obj.pk = made.pk

    @button(
        description="Delete",
        url_path="remove",
        dialog={
            "title": "Delete this agent",
            "description": "All that it remembers, of everybody, is removed for good. To stop it, disable it.",
            "form_class": DeleteForm,
            "form_submit_text": "Delete for good",
        },
    )
    def remove(self, request: HttpRequest, form: Any, object_id: str) -> HttpResponse:
        """Deletes the agent, confirmed by its name."""
        agent = self.get_object(request, object_id)
        here = reverse("admin:workspaces_agent_change", args=[object_id])
        if agent is None:
            return done(request, reverse("admin:workspaces_agent_changelist"))
        try:
            delete_agent(
                agent.workspace_id,
                agent.pk,
                confirm=form.cleaned_data["confirm"],
                actor=actor_of(request),
                address=address_of(request),
            )
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
            return done(request, here)
        self.message_user(request, f"The agent {agent.name!r} is deleted.")
        return done(request, reverse("admin:workspaces_agent_changelist"))
