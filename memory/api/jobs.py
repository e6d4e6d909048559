"""Jobs that a person starts, and the runs of all jobs."""

from __future__ import annotations

import time
from typing import ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.shapes import (
    OwnerQuery,
    RunDetail,
    RunReply,
    RunShape,
    RunsQuery,
    SummarizeQuery,
    SummarizeRequest,
)
from memory.queries import conversation_named
from memory.services.extract import queue_manual
from workspaces.access import Opened, open_personal, open_shared
from workspaces.api.base import Endpoint, Needs
from workspaces.errors import NotFound
from workspaces.models import Run
from workspaces.tenancy import release_connection, tenant
from workspaces.types import BucketRef, Grant, Role

WAIT_S: Final = 30.0
"""Seconds that a job's endpoint waits for its run by default (contract §8)."""
_LOOK_EVERY_S: Final = 0.1
_DONE: Final = ("stored", "nothing", "skipped", "failed")


def wait_for(bucket: BucketRef, run_id: int, *, seconds: float) -> Run:
    """The run once it has ended, or as it stands when the time is up. Holds no connection between its looks."""
    until = time.monotonic() + seconds
    while True:
        with tenant(bucket):
            run: Run = Run.objects.of(bucket).get(pk=run_id)
        if run.status in _DONE or time.monotonic() >= until:
            return run
        release_connection()
        time.sleep(_LOOK_EVERY_S)


class SummarizeView(Endpoint):
    """Extraction of one conversation, now."""

    needs: ClassVar = {"post": Needs(Role.MEMBER, Grant.JOBS)}

    @extend_schema(
        operation_id="summarizeConversation",
        parameters=[SummarizeQuery],
        request=SummarizeRequest,
        responses={200: RunReply, 202: RunReply},
        tags=["jobs"],
    )
    def post(self, request: Request, agent_id: int, conversation_id: str) -> Response:
        """Extracts a conversation now: 200 with the run when it ended within `wait` seconds, else 202."""
        asked = self.read(SummarizeRequest, request.data or {})
        wait = self.query(SummarizeQuery).get("wait", WAIT_S)
        opened = open_personal(self.principal, agent_id, end_user_id=asked.get("endUserId"), writes=False)
        with tenant(opened.reach):
            conversation = conversation_named(opened.own, conversation_id)
            queued = queue_manual(opened.personal(), conversation, actor=self.principal.actor)
        run = wait_for(opened.personal(), queued.pk, seconds=wait)
        return Response({"run": RunShape(run).data}, status=200 if run.status in _DONE else 202)


def _bucket(opened: Opened) -> BucketRef | None:
    return opened.own or (opened.bucket if opened.owner_key == "system" else None)


class RunsView(Endpoint):
    """The runs of a person's jobs, or of the shared memory's."""

    needs: ClassVar = {"get": Needs(Role.VIEWER, Grant.READ)}

    @extend_schema(
        operation_id="listRuns", parameters=[RunsQuery], responses=RunShape(many=True), tags=["jobs"]
    )
    def get(self, request: Request, agent_id: int) -> Response:
        """Lists runs, the latest first."""
        asked = self.query(RunsQuery)
        bucket = _bucket(
            _open(self, agent_id, asked.get("endUserId"), shared=asked.get("bucket") == "shared")
        )
        if bucket is None:
            return self.page([], RunShape)
        with tenant(bucket):
            rows = Run.objects.of(bucket).order_by("-created_at", "-pk")
            for name in ("kind", "status"):
                rows = rows.filter(**{name: asked[name]}) if name in asked else rows
            return self.page(rows, RunShape)


class RunView(Endpoint):
    """One run, with every change it made."""

    needs: ClassVar = {"get": Needs(Role.VIEWER, Grant.READ)}

    @extend_schema(operation_id="readRun", parameters=[OwnerQuery], responses=RunDetail, tags=["jobs"])
    def get(self, request: Request, agent_id: int, run_id: int) -> Response:
        """Reads a run: what it did, with before and after."""
        asked = self.query(OwnerQuery)
        opened = _open(self, agent_id, asked.get("endUserId"), shared=False)
        with tenant(opened.reach):
            run = Run.objects.within(opened.reach).filter(pk=run_id).prefetch_related("changes").first()
            if run is None:
                raise NotFound("run_not_found", f"There is no run {run_id}.")
            shown = RunShape(run).data | {"changes": RunDetail(run).data["changes"]}
        return Response(shown)


def _open(view: Endpoint, agent_id: int, end_user_id: str | None, *, shared: bool) -> Opened:
    if shared:
        return open_shared(view.principal, agent_id, writes=False)
    return open_personal(view.principal, agent_id, end_user_id=end_user_id, writes=False)
