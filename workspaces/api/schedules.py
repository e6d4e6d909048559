"""When an agent's jobs are due, over HTTP."""

from __future__ import annotations

from typing import Any, ClassVar

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from workspaces.access import open_agent
from workspaces.api.base import Endpoint, Paging
from workspaces.api.fields import FlagField, StrictSerializer, TextField
from workspaces.api.tenants import ADMINISTER
from workspaces.errors import NotFound
from workspaces.models import Schedule
from workspaces.services.schedules import Plan, change_schedule, current_plan, jobs
from workspaces.tenancy import workspace

_JOB = OpenApiParameter(
    "job", OpenApiTypes.STR, OpenApiParameter.PATH, description="Such as structured-consolidation."
)


class ScheduleRow(serializers.Serializer[Any]):
    """When a job is due. `nextDueAt` is null while it is off, and for at most a minute after a change of settings."""

    job = serializers.CharField()
    cron = serializers.CharField(help_text="Its own; empty: the setting's.")
    timezone = serializers.CharField(help_text="Its own; empty: the workspace's.")
    enabled = serializers.BooleanField()
    effective = serializers.SerializerMethodField()
    nextDueAt = serializers.DateTimeField(source="next_due_at", allow_null=True)
    lastDueAt = serializers.DateTimeField(source="last_due_at", allow_null=True)
    note = serializers.CharField(help_text="What is wrong with its cron or zone; empty if nothing.")

    def get_effective(self, row: Schedule) -> dict[str, str | bool]:
        plan = _plan(row)
        return {"cron": plan.text, "timezone": plan.zone.key, "enabled": plan.is_on and row.enabled}


class ScheduleBody(StrictSerializer):
    """What is absent stays as it is."""

    cron = TextField(required=False, allow_blank=True, max_length=100)
    timezone = TextField(required=False, allow_blank=True, max_length=64)
    enabled = FlagField(required=False)


def _plan(row: Schedule) -> Plan:
    return current_plan(row, now=timezone.now())


class Schedules(Endpoint):
    """The jobs of an agent that run on a schedule."""

    needs: ClassVar = {"get": ADMINISTER}
    pagination_class = Paging

    @extend_schema(operation_id="listSchedules", responses=ScheduleRow(many=True))
    def get(self, request: Request, agent_id: int) -> Response:
        """Lists the jobs of an agent with what their times go by."""
        agent = open_agent(self.principal, agent_id)
        with workspace(agent.workspace_id):
            rows = Schedule.objects.of_workspace(agent.workspace_id).filter(agent_id=agent.id, job__in=jobs())
            return self.page(rows.order_by("job"), ScheduleRow)


class OneSchedule(Endpoint):
    """A job of an agent by its name."""

    needs: ClassVar = {"get": ADMINISTER, "patch": ADMINISTER}

    @extend_schema(operation_id="readSchedule", parameters=[_JOB], responses=ScheduleRow)
    def get(self, request: Request, agent_id: int, job: str) -> Response:
        """Reads when a job is due."""
        agent = open_agent(self.principal, agent_id)
        with workspace(agent.workspace_id):
            rows = Schedule.objects.of_workspace(agent.workspace_id).filter(agent_id=agent.id, job__in=jobs())
            row = rows.filter(job=job).first()
            if row is None:
                raise NotFound(
                    "schedule_not_found", f"The agent {agent.id} has no job {job!r} on a schedule."
                )
            return Response(ScheduleRow(row).data)

    @extend_schema(
        operation_id="changeSchedule", parameters=[_JOB], request=ScheduleBody, responses=ScheduleRow
    )
    def patch(self, request: Request, agent_id: int, job: str) -> Response:
        """Changes its cron, time zone or switch; empty: what the setting and the workspace say."""
        given, caller = self.read(ScheduleBody), self.principal
        agent = open_agent(caller, agent_id)
        with workspace(agent.workspace_id):
            row = change_schedule(
                agent.workspace_id,
                agent.id,
                job,
                now=timezone.now(),
                actor=caller.actor,
                address=caller.address,
                cron=given.get("cron"),
                zone=given.get("timezone"),
                enabled=given.get("enabled"),
            )
            return Response(ScheduleRow(row).data)
