"""The inbox of contradictions over HTTP: `memory/{agentId}/contradictions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from facts.api.opening import half_life_of, open_facts, reach_of, trace_fact, trace_read
from facts.api.shapes import FactShape, fact_body
from facts.errors import MAX_STATEMENT
from facts.models import Contradiction
from facts.queries import contradiction_list, contradiction_within, shown_with
from facts.services.contradictions import Ruling, resolve_contradiction, undo_decision
from workspaces.access import Opened
from workspaces.api.base import Endpoint, Needs, Paging
from workspaces.api.fields import TextField
from workspaces.api.file_shapes import Where
from workspaces.errors import Unprocessable
from workspaces.tenancy import tenant
from workspaces.types import BucketRef, Grant, Role

_READ: Final = Needs(Role.VIEWER, Grant.READ)
_WRITE: Final = Needs(Role.VIEWER, Grant.WRITE)
_DECISIONS: Final = [one.value for one in Contradiction.Decision if one.value]
_TAKEN: Final = OpenApiResponse(description="Decided already, open still, or changed since.")


class ContradictionsQuery(Where):
    status = serializers.ChoiceField(["open", "decided"], required=False, default="open")


class RulingBody(Where):
    decision = serializers.ChoiceField(
        _DECISIONS,
        help_text="`keep_a`, `keep_b`, `both` (maybe each in its time), `merge` (a text), `ignore`.",
    )
    text = TextField(
        required=False, max_length=MAX_STATEMENT, help_text="What takes the place of both: `merge`."
    )
    aFrom = serializers.DateTimeField(required=False)
    aTo = serializers.DateTimeField(required=False)
    bFrom = serializers.DateTimeField(required=False)
    bTo = serializers.DateTimeField(required=False, help_text="For `both`: when each is true.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["decision"] == Contradiction.Decision.MERGE and not attrs.get("text", "").strip():
            raise serializers.ValidationError(
                {"text": "A merge needs the text that takes the place of both."}
            )
        return attrs


class ContradictionShape(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    a = FactShape()
    b = FactShape()
    reason = serializers.CharField()
    judgedBy = serializers.CharField()
    foundAt = serializers.DateTimeField()
    decision = serializers.CharField(allow_null=True)
    decidedBy = serializers.CharField(allow_null=True)
    decidedAt = serializers.DateTimeField(allow_null=True)


def _bodies(opened: Opened, rows: Sequence[Contradiction]) -> list[dict[str, Any]]:
    """Three queries, however many there are."""
    now, half_life = timezone.now(), half_life_of(opened)
    facts = {fact.pk: fact for row in rows for fact in (row.a, row.b)}
    shown = {
        one.fact.pk: fact_body(one, now=now, half_life_days=half_life)
        for one in shown_with(list(facts.values()))
    }
    return [
        {
            "id": row.pk,
            "a": shown[row.a_id],
            "b": shown[row.b_id],
            "reason": row.reason,
            "judgedBy": row.judged_by,
            "foundAt": row.found_at.isoformat(),
            "decision": row.decision or None,
            "decidedBy": row.decided_by or None,
            "decidedAt": row.decided_at.isoformat() if row.decided_at else None,
        }
        for row in rows
    ]


class ContradictionsView(Endpoint):
    """What waits for a decision."""

    needs: ClassVar = {"get": _READ}

    @extend_schema(
        operation_id="listContradictions",
        parameters=[ContradictionsQuery],
        responses=ContradictionShape(many=True),
        tags=["facts"],
    )
    def get(self, request: Request, agent_id: int) -> Response:
        """Lists contradictions, the newest first, with both facts and their evidence."""
        given = self.query(ContradictionsQuery)
        opened = open_facts(self.principal, agent_id, given, writes=False)
        pager = Paging()
        with tenant(opened.reach):
            trace_read(opened, given, "contradictions")
            rows = contradiction_list(reach_of(opened, given), is_open=given["status"] == "open")
            shown: Any = pager.paginate_queryset(rows, request, view=self)
            return pager.get_paginated_response(_bodies(opened, list(shown or ())))


class ResolveView(Endpoint):
    """A decision."""

    needs: ClassVar = {"post": _WRITE}

    @extend_schema(
        operation_id="resolveContradiction",
        request=RulingBody,
        responses={200: ContradictionShape, 409: _TAKEN},
        tags=["facts"],
    )
    def post(self, request: Request, agent_id: int, contradiction_id: int) -> Response:
        """Decides; the facts follow, and it can be undone. The second who decides is told who was first (409)."""
        given = self.read(RulingBody)
        opened = open_facts(self.principal, agent_id, given, writes=True)
        ruling = Ruling(
            Contradiction.Decision(given["decision"]),
            given.get("text", ""),
            given.get("aFrom"),
            given.get("aTo"),
            given.get("bFrom"),
            given.get("bTo"),
        )
        with tenant(opened.reach):
            bucket = _bucket_of(opened, contradiction_id)
            resolve_contradiction(
                bucket, contradiction_id, ruling, actor=self.principal.actor, now=timezone.now()
            )
            trace_fact(opened, "contradiction.resolved", f"contradiction:{contradiction_id}")
            return Response(_bodies(opened, [contradiction_within(opened.reach, contradiction_id)])[0])


class UndoView(Endpoint):
    """A decision taken back."""

    needs: ClassVar = {"post": _WRITE}

    @extend_schema(
        operation_id="undoContradiction",
        request=Where,
        responses={200: ContradictionShape, 409: _TAKEN},
        tags=["facts"],
    )
    def post(self, request: Request, agent_id: int, contradiction_id: int) -> Response:
        """The facts stand as before the decision, and the contradiction is open again."""
        opened = open_facts(self.principal, agent_id, self.read(Where), writes=True)
        with tenant(opened.reach):
            bucket = _bucket_of(opened, contradiction_id)
            undo_decision(bucket, contradiction_id, actor=self.principal.actor, now=timezone.now())
            trace_fact(opened, "contradiction.reopened", f"contradiction:{contradiction_id}")
            return Response(_bodies(opened, [contradiction_within(opened.reach, contradiction_id)])[0])


def _bucket_of(opened: Opened, contradiction_id: int) -> BucketRef:
    """The bucket that is written, which must be the contradiction's. Inside `tenant(…)`."""
    row = contradiction_within(opened.reach, contradiction_id)
    if opened.bucket is None or row.bucket_id != opened.bucket.id:
        raise Unprocessable(
            "contradiction_elsewhere",
            f"Contradiction {contradiction_id} is in {row.bucket.scope} memory; name the bucket that it is in.",
            field="bucket",
        )
    return opened.bucket
