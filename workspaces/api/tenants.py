"""Workspaces and their members over HTTP."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib.auth.models import User
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import Principal
from workspaces.api.base import Endpoint, Needs, Paging
from workspaces.api.fields import StrictSerializer, TextField
from workspaces.errors import NotFound
from workspaces.models import Member
from workspaces.services.tenants import add_member, change_role, remove_member
from workspaces.tenancy import Door, door, workspace
from workspaces.types import Grant, Role

READ: Final = Needs(Role.VIEWER, Grant.READ)
ADMINISTER: Final = Needs(Role.ADMIN, Grant.ADMIN)
_WORKSPACE_HEADER: Final = "HTTP_X_WORKSPACE_ID"


class RoleField(serializers.ChoiceField):
    """A role by its name in small letters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(choices=[role.name.lower() for role in Role], **options)

    def to_representation(self, value: Any) -> str:
        return Role(value).name.lower()


class WorkspaceRow(serializers.Serializer[Any]):
    """A workspace of the caller, with their role in it."""

    id = serializers.IntegerField(source="workspace.pk")
    name = serializers.CharField(source="workspace.name")
    slug = serializers.CharField(source="workspace.slug")
    language = serializers.CharField(source="workspace.language", help_text="en or zh.")
    timezone = serializers.CharField(source="workspace.timezone")
    role = RoleField()


class MemberRow(serializers.Serializer[Any]):
    """A user in a workspace."""

    userId = serializers.IntegerField(source="user_id")
    username = serializers.CharField(source="user.username")
    name = serializers.CharField(source="user.get_full_name")
    role = RoleField()
    active = serializers.BooleanField(source="user.is_active")
    createdAt = serializers.DateTimeField(source="created_at")


class MemberBody(StrictSerializer):
    """A user who has an account, and the role they get."""

    username = TextField(max_length=150)
    role = RoleField()


class RoleBody(StrictSerializer):
    role = RoleField()


class Workspaces(Endpoint):
    """The caller's workspaces."""

    needs: ClassVar = {"get": READ}
    pagination_class = Paging

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        _name_any_workspace(request)
        super().initial(request, *args, **kwargs)

    @extend_schema(operation_id="listWorkspaces", responses=WorkspaceRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists one's workspaces; a token knows its own only."""
        with door(Door.AUTHENTICATE):
            rows = Member.unscoped.filter(user_id=self.principal.user_id).select_related("workspace")
            if self.principal.token_id is not None:
                rows = rows.filter(workspace_id=self.principal.workspace_id)
            return self.page(rows.order_by("workspace__name", "pk"), WorkspaceRow)


def _name_any_workspace(request: Request) -> None:
    """Lets a session ask which workspaces there are before it has named one of them."""
    if "HTTP_AUTHORIZATION" in request.META or _WORKSPACE_HEADER in request.META:
        return
    user = getattr(request._request, "user", None)
    if not isinstance(user, User):
        return
    with door(Door.AUTHENTICATE):
        mine = Member.unscoped.filter(user=user).order_by("pk")
        first = mine.values_list("workspace_id", flat=True).first()
    if first is not None:
        request.META[_WORKSPACE_HEADER] = str(first)


class Members(Endpoint):
    """The members of the workspace."""

    needs: ClassVar = {"get": READ, "post": ADMINISTER}
    pagination_class = Paging

    @extend_schema(operation_id="listMembers", responses=MemberRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists members by username."""
        workspace_id = self.principal.workspace_id
        with workspace(workspace_id):
            rows = Member.objects.of_workspace(workspace_id).select_related("user")
            return self.page(rows.order_by("user__username"), MemberRow)

    @extend_schema(operation_id="addMember", request=MemberBody, responses={201: MemberRow})
    def post(self, request: Request) -> Response:
        """Makes a user a member; accounts themselves are made in the operator's admin."""
        given, caller = self.read(MemberBody), self.principal
        user = User.objects.filter(username=given["username"], is_active=True).first()
        if user is None:
            raise NotFound("user_not_found", f"There is no user {given['username']!r}.")
        with workspace(caller.workspace_id):
            member = add_member(
                caller.workspace_id,
                user=user,
                role=Role[given["role"].upper()],
                by=caller.role,
                actor=caller.actor,
                address=caller.address,
            )
        return Response(MemberRow(member).data, status=201)


class OneMember(Endpoint):
    """A member by their user id."""

    needs: ClassVar = {"get": READ, "patch": ADMINISTER, "delete": ADMINISTER}

    @extend_schema(operation_id="readMember", responses=MemberRow)
    def get(self, request: Request, user_id: int) -> Response:
        """Reads a member."""
        return Response(MemberRow(_member(self.principal, user_id)).data)

    @extend_schema(operation_id="changeMember", request=RoleBody, responses=MemberRow)
    def patch(self, request: Request, user_id: int) -> Response:
        """Gives a member another role, at most one's own."""
        given, caller = self.read(RoleBody), self.principal
        with workspace(caller.workspace_id):
            change_role(
                caller.workspace_id,
                user_id=user_id,
                role=Role[given["role"].upper()],
                by=caller.role,
                actor=caller.actor,
                address=caller.address,
            )
        return Response(MemberRow(_member(caller, user_id)).data)

    @extend_schema(operation_id="removeMember", responses={204: None})
    def delete(self, request: Request, user_id: int) -> Response:
        """Ends a membership; the person's tokens stop with it."""
        caller = self.principal
        with workspace(caller.workspace_id):
            remove_member(
                caller.workspace_id,
                user_id=user_id,
                by=caller.role,
                actor=caller.actor,
                address=caller.address,
            )
        return Response(status=204)


def _member(caller: Principal, user_id: int) -> Member:
    with workspace(caller.workspace_id):
        rows = Member.objects.of_workspace(caller.workspace_id).select_related("user")
        found: Member | None = rows.filter(user_id=user_id).first()
    if found is None:
        raise NotFound("member_not_found", f"User {user_id} is no member of this workspace.")
    return found
