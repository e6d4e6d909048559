"""The people whom a workspace's agents remember: who they are, never what is remembered."""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.admin_queries import OwnerOverview, owner_overviews, owners_of
from workspaces.api.base import Endpoint, Paging
from workspaces.api.fields import StrictSerializer, TextField
from workspaces.api.tenants import ADMINISTER
from workspaces.errors import NotFound
from workspaces.services.tenants import change_owner
from workspaces.tenancy import workspace


class OwnerRow(serializers.Serializer[Any]):
    """A person with their owner key."""

    id = serializers.IntegerField()
    key = serializers.CharField()
    name = serializers.CharField(help_text="What they are called; empty if unknown.")
    timezone = serializers.CharField(help_text="Empty: the workspace's.")
    agents = serializers.IntegerField(help_text="Agents that remember them.")
    files = serializers.IntegerField(help_text="Their own files, with all agents.")
    lastActivityAt = serializers.DateTimeField(source="last_at", allow_null=True)
    createdAt = serializers.DateTimeField(source="created_at")


class SearchQuery(StrictSerializer):
    q = TextField(required=False, allow_blank=True, max_length=200, help_text="Part of a key or a name.")


class OwnerBody(StrictSerializer):
    """What is absent stays as it is."""

    name = TextField(required=False, allow_blank=True, max_length=128)
    timezone = TextField(required=False, allow_blank=True, max_length=64)


class Owners(Endpoint):
    """The people of the workspace."""

    needs: ClassVar = {"get": ADMINISTER}
    pagination_class = Paging

    @extend_schema(operation_id="listOwners", parameters=[SearchQuery], responses=OwnerRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists people by key."""
        given, workspace_id = self.query(SearchQuery), self.principal.workspace_id
        pager = Paging()
        with workspace(workspace_id):
            rows = owners_of(workspace_id, search=given.get("q", ""))
            shown = pager.paginate_queryset(rows, request, view=self) or []
            overviews = owner_overviews(workspace_id, shown)
        return pager.get_paginated_response(OwnerRow(overviews, many=True).data)


class OneOwner(Endpoint):
    """A person by their id."""

    needs: ClassVar = {"get": ADMINISTER, "patch": ADMINISTER}

    @extend_schema(operation_id="readOwner", responses=OwnerRow)
    def get(self, request: Request, owner_id: int) -> Response:
        """Reads a person."""
        return Response(OwnerRow(_overview(self.principal.workspace_id, owner_id)).data)

    @extend_schema(operation_id="changeOwner", request=OwnerBody, responses=OwnerRow)
    def patch(self, request: Request, owner_id: int) -> Response:
        """Sets what a person is called, or their time zone."""
        given, caller = self.read(OwnerBody), self.principal
        with workspace(caller.workspace_id):
            change_owner(
                caller.workspace_id,
                owner_id,
                actor=caller.actor,
                address=caller.address,
                name=given.get("name"),
                zone=given.get("timezone"),
            )
        return Response(OwnerRow(_overview(caller.workspace_id, owner_id)).data)


def _overview(workspace_id: int, owner_id: int) -> OwnerOverview:
    with workspace(workspace_id):
        found = owners_of(workspace_id).filter(pk=owner_id).first()
        if found is None:
            raise NotFound("owner_not_found", f"There is no owner {owner_id} in this workspace.")
        return owner_overviews(workspace_id, [found])[0]
