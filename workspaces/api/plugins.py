"""Plugins over HTTP: what there is, how it is set up, and whether it can be reached. Never a secret."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import Principal
from workspaces.api.base import Endpoint, Paging
from workspaces.api.fields import FlagField, StrictSerializer
from workspaces.api.tenants import ADMINISTER
from workspaces.models import Plugin
from workspaces.services.plugins import (
    Actor,
    PluginKind,
    check_plugin,
    plugin_kind,
    plugin_kinds,
    plugins_of,
    save_plugin,
    secret_names,
    secrets_set,
)
from workspaces.tenancy import workspace

_KIND = OpenApiParameter("kind", OpenApiTypes.STR, OpenApiParameter.PATH, description="The plugin's name.")


@extend_schema_field({"type": "object", "additionalProperties": True})
class ObjectField(serializers.JSONField):
    """A JSON object."""

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            raise serializers.ValidationError("It must be an object.", code="invalid")
        return super().to_internal_value(data)


@dataclass(frozen=True, slots=True)
class Shown:
    """A kind of plugin, and how this workspace has set it up, if it has."""

    kind: type[PluginKind]
    row: Plugin | None


class PluginRow(serializers.Serializer[Any]):
    """A plugin with its form's JSON schema; secrets only by name."""

    kind = serializers.CharField()
    title = serializers.CharField()
    about = serializers.CharField()
    enabled = serializers.BooleanField()
    config = ObjectField()
    secretsSet = serializers.ListField(child=serializers.CharField())
    status = serializers.ChoiceField(Plugin.Status.values)
    found = serializers.CharField(help_text="What the last check found.")
    lastError = serializers.CharField()
    checkedAt = serializers.DateTimeField(allow_null=True)
    schema = ObjectField(help_text="JSON schema of `config`; secrets are `writeOnly`.")

    def to_representation(self, instance: Shown) -> dict[str, Any]:
        row = instance.row or Plugin(kind=instance.kind.kind)
        hidden = secret_names(instance.kind)
        return super().to_representation(
            {
                "kind": instance.kind.kind,
                "title": instance.kind.title,
                "about": instance.kind.about,
                "enabled": row.enabled,
                "config": {name: value for name, value in row.config.items() if name not in hidden},
                "secretsSet": secrets_set(row),
                "status": row.status,
                "found": row.found,
                "lastError": row.last_error,
                "checkedAt": row.checked_at,
                "schema": instance.kind.Config.model_json_schema(),
            }
        )


class PluginBody(StrictSerializer):
    """The whole configuration; a secret that is left out or blank is kept, null removes it."""

    enabled = FlagField()
    config = ObjectField()


class Plugins(Endpoint):
    """The plugins that are installed."""

    needs: ClassVar = {"get": ADMINISTER}
    pagination_class = Paging

    @extend_schema(operation_id="listPlugins", responses=PluginRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists the installed plugins and how this workspace has set them up."""
        with workspace(self.principal.workspace_id):
            rows = plugins_of(self.principal.workspace_id)
        return self.page([Shown(kind, rows.get(kind.kind)) for kind in plugin_kinds()], PluginRow)


class OnePlugin(Endpoint):
    """A plugin by its name."""

    needs: ClassVar = {"get": ADMINISTER, "put": ADMINISTER}

    @extend_schema(operation_id="readPlugin", parameters=[_KIND], responses=PluginRow)
    def get(self, request: Request, kind: str) -> Response:
        """Reads a plugin; secrets only by name."""
        found = plugin_kind(kind)
        with workspace(self.principal.workspace_id):
            row = plugins_of(self.principal.workspace_id).get(kind)
        return Response(PluginRow(Shown(found, row)).data)

    @extend_schema(operation_id="setPlugin", parameters=[_KIND], request=PluginBody, responses=PluginRow)
    def put(self, request: Request, kind: str) -> Response:
        """Sets a plugin up; to be enabled it is checked first, and 422 tells why it cannot be reached."""
        given = self.read(PluginBody)
        row = save_plugin(
            self.principal.workspace_id,
            kind,
            config=given["config"],
            enabled=given["enabled"],
            by=_actor(self.principal),
        )
        return Response(PluginRow(Shown(plugin_kind(kind), row)).data)


class PluginCheck(Endpoint):
    """Whether a plugin can be reached."""

    needs: ClassVar = {"post": ADMINISTER}

    @extend_schema(operation_id="checkPlugin", parameters=[_KIND], request=None, responses=PluginRow)
    def post(self, request: Request, kind: str) -> Response:
        """Checks a plugin as it is set up; `status`, `found` and `lastError` tell what came of it."""
        row = check_plugin(self.principal.workspace_id, kind, by=_actor(self.principal))
        return Response(PluginRow(Shown(plugin_kind(kind), row)).data)


def _actor(caller: Principal) -> Actor:
    return Actor(caller.actor, caller.address)
