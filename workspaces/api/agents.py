"""Agents over HTTP."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import Principal, open_agent
from workspaces.api.base import Endpoint, Needs, Paging
from workspaces.api.fields import FlagField, StrictSerializer, TextField
from workspaces.models import Agent
from workspaces.services.agents import change_agent, create_agent, delete_agent
from workspaces.tenancy import workspace
from workspaces.types import Grant, Role

_READ: Final = Needs(Role.VIEWER, Grant.READ)
_MANAGE: Final = Needs(Role.ADMIN, Grant.AGENTS)
_FIELDS: Final = {
    "name": "name",
    "description": "description",
    "systemPrompt": "system_prompt",
    "model": "model",
    "enabled": "enabled",
    "isDefault": "is_default",
}
"""What can be changed: name on the wire → name in the table."""


class AgentRow(serializers.Serializer[Any]):
    """An agent."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    description = serializers.CharField()
    systemPrompt = serializers.CharField(source="system_prompt")
    model = serializers.CharField(help_text="Empty: the model of the installation.")
    enabled = serializers.BooleanField()
    isDefault = serializers.BooleanField(source="is_default")
    createdAt = serializers.DateTimeField(source="created_at")


class ChangeBody(StrictSerializer):
    """What is absent stays as it is."""

    name = TextField(required=False, max_length=128)
    description = TextField(required=False, allow_blank=True, max_length=10_000)
    systemPrompt = TextField(required=False, allow_blank=True, max_length=100_000)
    model = TextField(required=False, allow_blank=True, max_length=128)
    enabled = FlagField(required=False)
    isDefault = FlagField(required=False)


class CreateBody(StrictSerializer):
    name = TextField(max_length=128)
    description = TextField(required=False, allow_blank=True, max_length=10_000)
    systemPrompt = TextField(required=False, allow_blank=True, max_length=100_000)
    model = TextField(required=False, allow_blank=True, max_length=128)
    isDefault = FlagField(required=False)


class DeleteQuery(StrictSerializer):
    confirm = TextField(required=False, default="", help_text="The agent's name.")


class Agents(Endpoint):
    """The agents of the workspace."""

    needs: ClassVar = {"get": _READ, "post": _MANAGE}
    pagination_class = Paging

    @extend_schema(operation_id="listAgents", responses=AgentRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists agents by name; a token with a list of agents sees those."""
        caller = self.principal
        with workspace(caller.workspace_id):
            rows = Agent.objects.of_workspace(caller.workspace_id)
            if caller.agent_ids is not None:
                rows = rows.filter(pk__in=caller.agent_ids)
            return self.page(rows.order_by("name"), AgentRow)

    @extend_schema(operation_id="createAgent", request=CreateBody, responses={201: AgentRow})
    def post(self, request: Request) -> Response:
        """Makes an agent with its four files."""
        given, caller = self.read(CreateBody), self.principal
        agent, _ = create_agent(
            caller.workspace_id,
            **{_FIELDS[name]: value for name, value in given.items()},
            user_id=caller.user_id,
            actor=caller.actor,
            address=caller.address,
        )
        return Response(AgentRow(agent).data, status=201)


class OneAgent(Endpoint):
    """An agent by its id."""

    needs: ClassVar = {"get": _READ, "patch": _MANAGE, "delete": _MANAGE}

    @extend_schema(operation_id="readAgent", responses=AgentRow)
    def get(self, request: Request, agent_id: int) -> Response:
        """Reads an agent."""
        return Response(_shown(self.principal, agent_id))

    @extend_schema(operation_id="changeAgent", request=ChangeBody, responses=AgentRow)
    def patch(self, request: Request, agent_id: int) -> Response:
        """Changes what is given. A disabled agent answers nobody and keeps its memory."""
        given, caller = self.read(ChangeBody), self.principal
        open_agent(caller, agent_id)
        with workspace(caller.workspace_id):
            agent = change_agent(
                caller.workspace_id,
                agent_id,
                actor=caller.actor,
                address=caller.address,
                **{_FIELDS[name]: value for name, value in given.items()},
            )
        return Response(AgentRow(agent).data)

    @extend_schema(operation_id="deleteAgent", parameters=[DeleteQuery], responses={204: None})
    def delete(self, request: Request, agent_id: int) -> Response:
        """Removes an agent and all that it remembers, for good; confirmed by its name."""
        given, caller = self.query(DeleteQuery), self.principal
        open_agent(caller, agent_id)
        delete_agent(
            caller.workspace_id,
            agent_id,
            confirm=given["confirm"],
            actor=caller.actor,
            address=caller.address,
        )
        return Response(status=204)


def _shown(caller: Principal, agent_id: int) -> dict[str, Any]:
    opened = open_agent(caller, agent_id)
    with workspace(caller.workspace_id):
        return AgentRow(Agent.objects.of_workspace(caller.workspace_id).get(pk=opened.id)).data
