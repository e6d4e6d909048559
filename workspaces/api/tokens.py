"""Personal access tokens over HTTP: listed and revoked by anyone for themselves, made by a session only."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import Principal
from workspaces.admin_queries import tokens_of
from workspaces.api.base import Endpoint, Needs, Paging
from workspaces.api.fields import IdField, StrictSerializer, TextField
from workspaces.errors import Forbidden
from workspaces.services.idempotency import keep_answer
from workspaces.services.tokens import issue_token, revoke_token
from workspaces.tenancy import workspace
from workspaces.types import Grant, Role

_READ: Final = Needs(Role.VIEWER, Grant.READ)


class TokenRow(serializers.Serializer[Any]):
    """A token without its secret."""

    id = serializers.IntegerField()
    name = serializers.CharField()
    prefix = serializers.CharField(help_text="How the token begins.")
    userId = serializers.IntegerField(source="user_id")
    username = serializers.CharField(source="user.username")
    grants = serializers.ListField(child=serializers.CharField())
    agents = serializers.ListField(
        source="agent_ids", child=serializers.IntegerField(), allow_null=True, help_text="null: all agents."
    )
    namespace = serializers.CharField()
    expiresAt = serializers.DateTimeField(source="expires_at", allow_null=True)
    revokedAt = serializers.DateTimeField(source="revoked_at", allow_null=True)
    lastUsedAt = serializers.DateTimeField(source="last_used_at", allow_null=True)
    createdAt = serializers.DateTimeField(source="created_at")


class IssuedToken(TokenRow):
    """A new token; `token` is told this once, and null when the request is repeated."""

    token = serializers.CharField(allow_null=True)


class TokenBody(StrictSerializer):
    """What the token is for and may do; never more than its user."""

    name = TextField(max_length=64)
    grants = serializers.ListField(
        child=serializers.ChoiceField([grant.value for grant in Grant]), allow_empty=False, max_length=20
    )
    agents = serializers.ListField(
        child=IdField(), required=False, allow_null=True, allow_empty=False, max_length=1000
    )
    namespace = TextField(required=False, allow_blank=True, max_length=64)
    expiresAt = serializers.DateTimeField(required=False, allow_null=True)


class Tokens(Endpoint):
    """Tokens of the workspace: one's own; an administrator sees all."""

    needs: ClassVar = {"get": _READ, "post": _READ}
    pagination_class = Paging

    @extend_schema(operation_id="listTokens", responses=TokenRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists tokens, newest first, also revoked ones."""
        caller = self.principal
        with workspace(caller.workspace_id):
            return self.page(tokens_of(caller.workspace_id, user_id=_limit(caller)), TokenRow)

    @extend_schema(operation_id="issueToken", request=TokenBody, responses={201: IssuedToken})
    def post(self, request: Request) -> Response:
        """Makes a token for oneself; only in a session, never with a token."""
        caller = self.principal
        if caller.token_id is not None:
            raise Forbidden(
                "session_needed", "A token makes no tokens: log in, or use `manage.py issue_token`."
            )
        given = self.read(TokenBody)
        with workspace(caller.workspace_id):
            token, secret = issue_token(
                caller.workspace_id,
                user_id=caller.user_id,
                name=given["name"],
                grants=given["grants"],
                agent_ids=given.get("agents"),
                namespace=given.get("namespace", ""),
                expires_at=given.get("expiresAt"),
                within=caller.grants,
                actor=caller.actor,
                address=caller.address,
            )
        shown = TokenRow(token).data
        self._keep_without_secret(shown)
        return Response({**shown, "token": secret}, status=201)

    def _keep_without_secret(self, shown: dict[str, Any]) -> None:
        """What is kept for a repeated request never holds the secret."""
        if self.claim is not None:
            keep_answer(self.claim, status=201, body={**shown, "token": None})
            self.claim = None


class OneToken(Endpoint):
    """A token by its id."""

    needs: ClassVar = {"delete": _READ}

    @extend_schema(operation_id="revokeToken", responses={204: None})
    def delete(self, request: Request, token_id: int) -> Response:
        """Ends a token at once: one's own; an administrator, any."""
        caller = self.principal
        with workspace(caller.workspace_id):
            revoke_token(
                caller.workspace_id,
                token_id,
                user_id=_limit(caller),
                actor=caller.actor,
                address=caller.address,
            )
        return Response(status=204)


def _limit(caller: Principal) -> int | None:
    """Whose tokens the caller may see and end; None: everybody's."""
    is_administrator = caller.has_role(Role.ADMIN) and Grant.ADMIN in caller.grants
    return None if is_administrator else caller.user_id
