"""Plugins: a form made from each one's own schema. Secrets are never shown again, and kept when left blank."""

from __future__ import annotations

from enum import Enum
from typing import Any, Final, Literal, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from unfold.contrib.filters.admin import FieldTextFilter
from unfold.widgets import (
    UnfoldAdminDecimalFieldWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminPasswordWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from workspaces.admin.base import OperatorAdmin, actor_of, address_of, is_operator
from workspaces.admin.filters import ChosenFilter
from workspaces.errors import BadInput, DomainError
from workspaces.models import GLOBAL_WORKSPACE_ID, Plugin, Workspace
from workspaces.services.plugins import (
    Actor,
    PluginKind,
    fields_of,
    plugin_kind,
    plugin_kinds,
    save_plugin,
    secret_names,
    secrets_set,
)
from workspaces.tenancy import OWN_DOORS, Door, door

ENABLED: Final = "pluginEnabled"
"""The switch's name in the form; the plugin's own fields have theirs."""


@admin.register(Plugin)
class PluginAdmin(OperatorAdmin):
    section = "Settings"
    icon = "extension"
    may_add = True
    may_change = True
    list_display = ("kind", "workspace", "enabled", "status", "found", "last_error", "checked_at")
    list_select_related = ("workspace",)
    list_filter = (("workspace", ChosenFilter), ("kind", FieldTextFilter), "enabled")
    search_fields = ("kind",)
    ordering = ("workspace__name", "kind")

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:  # noqa: ARG002
        """Asks for the workspace and the kind, then shows the kind's form."""
        if not is_operator(request):
            raise PermissionDenied
        chosen = ChoiceForm(request.GET or None)
        with door(Door.OPERATOR):
            if not chosen.is_valid():
                return self._page(request, chosen, title="Set a plugin up", method="get").render()
            workspace = chosen.cleaned_data["workspace"]
            row = Plugin.objects.of_workspace(workspace.pk).filter(kind=chosen.cleaned_data["kind"]).first()
        if row is not None:
            return HttpResponseRedirect(reverse("admin:workspaces_plugin_change", args=[row.pk]))
        return self._form(request, Plugin(workspace=workspace, kind=chosen.cleaned_data["kind"]))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",  # noqa: ARG002
        extra_context: Any = None,  # noqa: ARG002
    ) -> HttpResponse:
        """Shows the kind's form as it is filled, without its secrets."""
        if not is_operator(request):
            raise PermissionDenied
        with door(Door.OPERATOR):
            rows = Plugin.unscoped.select_related("workspace")
            row = rows.filter(pk=object_id).first() if object_id.isdigit() else None
        if row is None:
            raise Http404("There is no such plugin.")
        return self._form(request, row)

    # Whether a plugin can be reached is found out between two transactions, never inside one.
    setattr(add_view, OWN_DOORS, True)
    setattr(change_view, OWN_DOORS, True)

    def _form(self, request: HttpRequest, row: Plugin) -> HttpResponse:
        try:
            kind = plugin_kind(row.kind)
        except DomainError as missing:
            raise Http404(f"The plugin {row.kind!r} is not installed.") from missing
        form = form_of(kind, row, request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid() and self._save(request, row, form):
            return HttpResponseRedirect(reverse("admin:workspaces_plugin_changelist"))
        with door(Door.OPERATOR):
            title = f"{kind.title} in {row.workspace.name}"
            return self._page(request, form, title=title, about=kind.about, row=row).render()

    def _save(self, request: HttpRequest, row: Plugin, form: forms.Form) -> bool:
        given = {name: value for name, value in form.cleaned_data.items() if value is not None}
        enabled = given.pop(ENABLED)
        try:
            saved = save_plugin(
                row.workspace_id,
                row.kind,
                config=given,
                enabled=enabled,
                by=Actor(actor_of(request), address_of(request)),
            )
        except BadInput as bad:
            told = bad.fields.get("errors")
            for one in told if isinstance(told, list) else []:
                form.add_error(one["field"] if one["field"] in form.fields else None, one["message"])
            return False
        except DomainError as refused:
            form.add_error(None, refused.message)
            return False
        done = f"{row.kind} is enabled: {saved.found}" if enabled else f"{row.kind} is saved, not enabled."
        self.message_user(request, done, messages.SUCCESS)
        return True

    def _page(self, request: HttpRequest, form: forms.Form, **more: Any) -> TemplateResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "form": form,
            "method": "post",
            **more,
        }
        return TemplateResponse(request, "admin/workspaces/plugin_form.html", context)


class ChoiceForm(forms.Form):
    """Whose plugin, and which."""

    workspace = forms.ModelChoiceField(queryset=Workspace.unscoped.none(), widget=UnfoldAdminSelectWidget())
    kind = forms.ChoiceField(widget=UnfoldAdminSelectWidget())

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        rows = Workspace.unscoped.exclude(pk=GLOBAL_WORKSPACE_ID).order_by("name")
        self.fields["workspace"].queryset = rows  # type: ignore[attr-defined]
        self.fields["kind"].choices = [(one.kind, one.title) for one in plugin_kinds()]  # type: ignore[attr-defined]


def form_of(kind: type[PluginKind], row: Plugin, data: Any) -> forms.Form:
    """The form of a kind, filled with what is stored; what is wrong in it is found by the kind's own schema too."""
    kept = secrets_set(row)
    fields: dict[str, forms.Field] = {
        ENABLED: forms.BooleanField(
            required=False,
            label="Enabled",
            help_text="It is checked first; when that fails, nothing is changed.",
            widget=UnfoldBooleanSwitchWidget(),
        )
    }
    hidden = secret_names(kind)
    for name, own in fields_of(kind).items():
        fields[name] = _field(kind.Config.model_fields[own], is_kept=name in kept)
        fields[name].label = name
    made = type("PluginForm", (forms.Form,), fields)
    shown = {name: value for name, value in row.config.items() if name not in hidden}
    form: forms.Form = made(data, initial=shown | {ENABLED: row.enabled})
    return form


def _field(info: FieldInfo, *, is_kept: bool) -> forms.Field:
    kinds = (info.annotation, *get_args(info.annotation))
    default = None if info.default is PydanticUndefined else info.default
    common: dict[str, Any] = {"required": info.is_required(), "help_text": info.description or ""}
    if SecretStr in kinds:
        kept = " A value is kept; left blank, it stays." if is_kept else ""
        return forms.CharField(
            required=False,
            strip=False,
            help_text=f"{info.description or ''}{kept}",
            widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        )
    common["initial"] = default.value if isinstance(default, Enum) else default
    if bool in kinds:
        return forms.BooleanField(**common | {"required": False}, widget=UnfoldBooleanSwitchWidget())
    if choices := _choices(kinds):
        return forms.ChoiceField(**common, choices=choices, widget=UnfoldAdminSelectWidget())
    if int in kinds and float not in kinds:
        return forms.IntegerField(**common, **_bounds(info), widget=UnfoldAdminIntegerFieldWidget())
    if float in kinds:
        return forms.FloatField(**common, **_bounds(info), widget=UnfoldAdminDecimalFieldWidget())
    return forms.CharField(**common, empty_value=None, widget=UnfoldAdminTextInputWidget())


def _choices(kinds: tuple[Any, ...]) -> list[tuple[str, str]]:
    for kind in kinds:
        if get_origin(kind) is Literal:
            return [(str(value), str(value)) for value in get_args(kind)]
        if isinstance(kind, type) and issubclass(kind, Enum):
            return [(str(one.value), str(one.value)) for one in kind]
    if get_origin(kinds[0]) is Literal:
        return [(str(value), str(value)) for value in kinds[1:]]
    return []


def _bounds(info: FieldInfo) -> dict[str, Any]:
    """What the browser can check; the schema itself checks all of it."""
    bounds: dict[str, Any] = {}
    for rule in info.metadata:
        if isinstance(rule, Ge | Gt):
            bounds["min_value"] = rule.ge if isinstance(rule, Ge) else rule.gt
        elif isinstance(rule, Le | Lt):
            bounds["max_value"] = rule.le if isinstance(rule, Le) else rule.lt
    return bounds
