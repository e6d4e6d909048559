"""Settings: every key with the value in force and where it came from, changed and reset for a place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from unfold.contrib.filters.admin import FieldTextFilter

from workspaces.admin.base import OperatorAdmin, actor_of, address_of, is_operator
from workspaces.admin.filters import ChosenFilter
from workspaces.errors import DomainError
from workspaces.models import GLOBAL_WORKSPACE_ID, Agent, SettingOverride, Workspace
from workspaces.services.overrides import Editor, Place, clear_override, set_override
from workspaces.settings import InForce, effective


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the page; `is_here` tells whether its value was set at the place shown."""

    in_force: InForce
    is_here: bool

    @property
    def text(self) -> str:
        """The value as a person writes it."""
        value = self.in_force.value
        return str(value).lower() if isinstance(value, bool) else str(value)


@admin.register(SettingOverride)
class SettingOverrideAdmin(OperatorAdmin):
    section = "Settings"
    icon = "rule_settings"
    list_display = ("key", "value", "workspace", "agent", "updated_by", "updated_at")
    list_select_related = ("workspace", "agent", "updated_by")
    list_filter = (
        ("workspace", ChosenFilter),
        ("agent", ChosenFilter),
        ("key", FieldTextFilter),
    )
    search_fields = ("key",)
    ordering = ("key", "workspace__name")
    fields = ("key", "value", "workspace", "agent", "updated_by", "updated_at")

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.in_force_view)
        own = path("in-force/", view, name="settings_in_force")
        return [own, *super().get_urls()]

    def in_force_view(self, request: HttpRequest) -> HttpResponse:
        """Shows and changes the settings of a place: `?workspace=` (1 is everyone) and `&agent=`."""
        if not is_operator(request):
            raise PermissionDenied
        place = _place(request)
        if request.method == "POST":
            return self._change(request, place)
        rows = effective(place.workspace_id, place.agent_id).all()
        context = {
            **self.admin_site.each_context(request),
            "title": "Settings in force",
            "opts": self.opts,
            "rows": [Row(one, is_here=one.origin == place.origin) for one in rows],
            "place": place,
            "everyone": GLOBAL_WORKSPACE_ID,
            "workspaces": Workspace.unscoped.exclude(pk=GLOBAL_WORKSPACE_ID).order_by("name"),
            "agents": Agent.objects.of_workspace(place.workspace_id).order_by("name"),
        }
        return TemplateResponse(request, "admin/workspaces/settings_in_force.html", context)

    def _change(self, request: HttpRequest, place: Place) -> HttpResponse:
        key = request.POST.get("key", "")
        by = Editor(cast("int", request.user.pk), actor_of(request), address_of(request))
        try:
            if "reset" in request.POST:
                clear_override(place, key, by=by)
                self.message_user(request, f"{key} is reset.")
            else:
                value = set_override(place, key, request.POST.get("value", ""), by=by)
                self.message_user(request, f"{key} is {value!r} now, from the next turn on.")
        except DomainError as error:
            self.message_user(request, error.message, messages.ERROR)
        where: dict[str, Any] = {"workspace": place.workspace_id}
        if place.agent_id is not None:
            where["agent"] = place.agent_id
        return HttpResponseRedirect(f"{reverse('admin:settings_in_force')}?{urlencode(where)}#{key}")


def _place(request: HttpRequest) -> Place:
    """The place that the address names; everyone without one. 404 for one that is not there."""
    workspace_id = _number(request, "workspace") or GLOBAL_WORKSPACE_ID
    agent_id = _number(request, "agent")
    if not Workspace.unscoped.filter(pk=workspace_id).exists():
        raise Http404("There is no such workspace.")
    if agent_id is not None and not Agent.objects.of_workspace(workspace_id).filter(pk=agent_id).exists():
        # Another workspace was chosen while an agent was; it has none of that number.
        agent_id = None
    return Place(workspace_id, agent_id)


def _number(request: HttpRequest, name: str) -> int | None:
    raw = request.GET.get(name, "")
    if raw and not (raw.isascii() and raw.isdigit()):
        raise Http404("That is no number.")
    return int(raw) if raw else None
