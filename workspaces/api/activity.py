"""What was done and what it cost, over HTTP."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, ClassVar, Final

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.admin_queries import audit_of, usage_of
from workspaces.api.base import Endpoint, Paging
from workspaces.api.fields import StrictSerializer, TextField
from workspaces.api.tenants import ADMINISTER
from workspaces.queries import zone_of
from workspaces.tenancy import Door, door, workspace

_USAGE_DAYS: Final = timedelta(days=30)
"""How far back usage is told when nothing else is asked."""


class PeriodQuery(StrictSerializer):
    """`from` (included) to `to` (excluded); `from` is a word of Python, hence `get_fields`."""

    to = serializers.DateTimeField(required=False)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        return {"from": serializers.DateTimeField(required=False), **super().get_fields()}


class AuditQuery(PeriodQuery):
    actor = TextField(required=False, max_length=200, help_text="Such as `user:3` or `token:5`.")
    action = TextField(
        required=False, max_length=64, help_text="An action, or a family of them: `file`, `file.written`."
    )


class AuditRow(serializers.Serializer[Any]):
    """One act."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.CharField()
    target = serializers.CharField()
    address = serializers.CharField()
    detail = serializers.DictField()


class UsageRow(serializers.Serializer[Any]):
    """The questions of one day, purpose and model."""

    day = serializers.DateField(help_text="In the workspace's time zone.")
    purpose = serializers.CharField()
    model = serializers.CharField()
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()
    inputTokens = serializers.IntegerField(source="input_tokens_sum")
    outputTokens = serializers.IntegerField(source="output_tokens_sum")
    costUsd = serializers.FloatField(
        source="cost_usd_sum", allow_null=True, help_text="null: no price known."
    )


class Audit(Endpoint):
    """The audit trail of the workspace."""

    needs: ClassVar = {"get": ADMINISTER}
    pagination_class = Paging

    @extend_schema(operation_id="listAudit", parameters=[AuditQuery], responses=AuditRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists audit events, newest first."""
        given, workspace_id = self.query(AuditQuery), self.principal.workspace_id
        with workspace(workspace_id):
            rows = audit_of(
                workspace_id,
                actor=given.get("actor", ""),
                action=given.get("action", ""),
                start=given.get("from"),
                end=given.get("to"),
            )
            return self.page(rows, AuditRow)


class Usage(Endpoint):
    """What models were asked by the workspace, and what it cost."""

    needs: ClassVar = {"get": ADMINISTER}
    pagination_class = Paging

    @extend_schema(operation_id="listUsage", parameters=[PeriodQuery], responses=UsageRow(many=True))
    def get(self, request: Request) -> Response:
        """Lists totals by day, purpose and model, newest first; the last 30 days unless asked otherwise."""
        given, workspace_id = self.query(PeriodQuery), self.principal.workspace_id
        with workspace(workspace_id):
            zone = zone_of(workspace_id, None)
        start = given.get("from", (given.get("to") or timezone.now()) - _USAGE_DAYS)
        with door(Door.METRICS):
            return self.page(usage_of(workspace_id, zone=zone, start=start, end=given.get("to")), UsageRow)
