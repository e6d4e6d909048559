"""Settings over HTTP: what is in force, where it came from, and overrides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import Principal, open_agent
from workspaces.api.base import Endpoint, Needs, Paging
from workspaces.api.fields import IdField, StrictSerializer, TextField
from workspaces.api.tenants import ADMINISTER
from workspaces.services.overrides import Editor, Place, clear_override, set_override
from workspaces.settings import InForce, effective
from workspaces.tenancy import workspace
from workspaces.types import Grant, Role

_READ: Final = Needs(Role.MEMBER, Grant.READ)
_KEY: Final = OpenApiParameter("key", OpenApiTypes.STR, OpenApiParameter.PATH, description="The full key.")


@extend_schema_field({"oneOf": [{"type": "boolean"}, {"type": "number"}, {"type": "string"}]})
class ValueField(serializers.JSONField):
    """A boolean, a number or a text, as the key wants it."""


class SettingRow(serializers.Serializer[Any]):
    """A setting: the value in force and where it came from."""

    key = serializers.CharField(source="setting.key")
    value = ValueField()
    origin = serializers.CharField(help_text="default, environment, global, workspace or agent.")
    default = ValueField(source="setting.default")
    kind = serializers.CharField(source="setting.kind", help_text="bool, int, float, cron or text.")
    minimum = serializers.FloatField(source="setting.low", allow_null=True)
    maximum = serializers.FloatField(source="setting.high", allow_null=True)
    help = serializers.CharField(source="setting.help")
    envName = serializers.CharField(source="setting.env_name")


class AgentQuery(StrictSerializer):
    agentId = IdField(required=False, help_text="Absent: the workspace.")


class SettingBody(AgentQuery):
    key = TextField(max_length=128)
    value = ValueField()


class Settings(Endpoint):
    """All settings in force for an agent, or for the workspace."""

    needs: ClassVar = {"get": _READ, "put": ADMINISTER}
    pagination_class = Paging

    @extend_schema(operation_id="listSettings", parameters=[AgentQuery], responses=SettingRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists settings with their values and origins."""
        place = _place(self.principal, self.query(AgentQuery))
        with workspace(place.workspace_id):
            rows = effective(place.workspace_id, place.agent_id).all()
        return self.page(rows, SettingRow)

    @extend_schema(operation_id="setSetting", request=SettingBody, responses=SettingRow)
    def put(self, request: Request) -> Response:
        """Overrides a setting; in force on the next turn, everywhere."""
        given = self.read(SettingBody)
        place = _place(self.principal, given)
        with workspace(place.workspace_id):
            set_override(place, given["key"], given["value"], by=_editor(self.principal))
            row = _in_force(place, given["key"])
        return Response(SettingRow(row).data)


class OneSetting(Endpoint):
    """A setting by its key."""

    needs: ClassVar = {"delete": ADMINISTER}

    @extend_schema(operation_id="resetSetting", parameters=[_KEY, AgentQuery], responses=SettingRow)
    def delete(self, request: Request, key: str) -> Response:
        """Takes an override away and answers what holds now."""
        place = _place(self.principal, self.query(AgentQuery))
        with workspace(place.workspace_id):
            clear_override(place, key, by=_editor(self.principal))
            row = _in_force(place, key)
        return Response(SettingRow(row).data)


def _place(caller: Principal, given: Mapping[str, Any]) -> Place:
    agent_id = given.get("agentId")
    if agent_id is not None:
        open_agent(caller, agent_id)
    return Place(caller.workspace_id, agent_id)


def _editor(caller: Principal) -> Editor:
    return Editor(caller.user_id, caller.actor, caller.address)


def _in_force(place: Place, key: str) -> InForce:
    rows = effective(place.workspace_id, place.agent_id).all()
    return next(row for row in rows if row.setting.key == key)
