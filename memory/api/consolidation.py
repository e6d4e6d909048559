"""Structured consolidation, when a person asks for it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.jobs import WAIT_S, wait_for
from memory.api.shapes import OwnerQuery, RunShape, SummarizeQuery
from memory.services.rounds import Outcome, outcome_of, queue_consolidation, queue_round
from workspaces.access import open_personal, open_shared, require
from workspaces.api.base import Endpoint, Needs
from workspaces.errors import BadInput
from workspaces.models import Run
from workspaces.tenancy import release_connection, tenant
from workspaces.types import BucketRef, Grant, Reach, Role

_LOOK_EVERY_S: Final = 0.2


class ConsolidationRequest(OwnerQuery):
    """Whose entries: a person's own, the shared ones, or all (the shared ones and the next owners in turn)."""

    bucket = serializers.ChoiceField(["personal", "shared", "all"], required=False, default="personal")


class ConsolidationReply(serializers.Serializer[Any]):
    """The run, and what it came to; of `all`, with the owners' runs that were started with it."""

    run = RunShape()
    ownersConsolidated = serializers.IntegerField(source="outcome.owners")
    updated = serializers.IntegerField(source="outcome.updated", help_text="Entries changed or taken away.")
    entriesBefore = serializers.IntegerField(source="outcome.before")
    entriesAfter = serializers.IntegerField(source="outcome.after")
    pending = serializers.IntegerField(source="outcome.pending", help_text="Runs still under way.")
    failed = serializers.IntegerField(source="outcome.failed", help_text="Runs that failed and are parked.")
    deferred = serializers.BooleanField(help_text="More owners have their turn in the next round.")


class ConsolidationView(Endpoint):
    """Merging entries that say the same, now."""

    needs: ClassVar = {"post": Needs(Role.MEMBER, Grant.JOBS)}

    @extend_schema(
        operation_id="consolidateEntries",
        parameters=[SummarizeQuery],
        request=ConsolidationRequest,
        responses={200: ConsolidationReply, 202: ConsolidationReply},
        tags=["jobs"],
    )
    def post(self, request: Request, agent_id: int) -> Response:
        """Merges entries now: 200 when it ended within `wait` seconds, else 202. `all` needs the role admin."""
        asked = self.read(ConsolidationRequest, request.data or {})
        until = time.monotonic() + self.query(SummarizeQuery).get("wait", WAIT_S)
        if asked["bucket"] != "personal" and "endUserId" in asked:
            raise BadInput("bad_bucket", "With an endUserId the bucket is theirs: personal.", field="bucket")
        if asked["bucket"] == "all":
            require(self.principal, role=Role.ADMIN)
            return self._all(agent_id, until)
        if asked["bucket"] == "shared":
            bucket = open_shared(self.principal, agent_id, writes=True).writable()
        else:
            end_user_id = asked.get("endUserId")
            bucket = open_personal(self.principal, agent_id, end_user_id=end_user_id, writes=False).personal()
        with tenant(bucket):
            queued = queue_consolidation(bucket, trigger="manual", actor=self.principal.actor)
        run = wait_for(bucket, queued.pk, seconds=until - time.monotonic())
        shared = bucket.id if asked["bucket"] == "shared" else 0
        return _reply(run, outcome_of([run], shared_bucket=shared), deferred=False)

    def _all(self, agent_id: int, until: float) -> Response:
        team = open_shared(self.principal, agent_id, writes=True).writable()
        made = queue_round(team, trigger="manual", actor=self.principal.actor)
        assert made is not None  # noqa: S101 - only a message makes none
        while True:
            runs = _runs(team, made.owners, made.shared)
            outcome = outcome_of(runs, shared_bucket=team.id)
            if not outcome.pending or time.monotonic() >= until:
                return _reply(runs[0], outcome, deferred=made.deferred)
            release_connection()
            time.sleep(_LOOK_EVERY_S)


def _runs(team: BucketRef, owners: Sequence[BucketRef], shared: Run) -> list[Run]:
    """The round's runs as they stand, the shared one first."""
    reach = Reach(team.workspace_id, (team.id, *(one.id for one in owners)))
    with tenant(reach):
        first = Run.objects.of(team).get(pk=shared.pk)
        rows = Run.objects.within(reach).filter(kind=first.kind, subject=f"run:{shared.pk}")
        return [first, *rows.order_by("pk")]


def _reply(run: Run, outcome: Outcome, *, deferred: bool) -> Response:
    body = ConsolidationReply({"run": run, "outcome": outcome, "deferred": deferred}).data
    return Response(body, status=202 if outcome.pending else 200)
