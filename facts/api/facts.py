"""Facts over HTTP: `memory/{agentId}/facts`.

Without `bucket` a caller reads their own, the shared and the global facts, and writes their own; `bucket=shared` is
the agent's shared memory, which members write, `bucket=personal` the caller's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, cast

from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from facts.api.opening import (
    half_life_of,
    open_facts,
    reach_of,
    said_by,
    trace_fact,
    trace_read,
    writable_fact,
)
from facts.api.paging import FactPaging
from facts.api.shapes import (
    FactCreate,
    FactDetail,
    FactPatch,
    FactRevisionShape,
    FactShape,
    FactsQuery,
    FactWritten,
    fact_body,
)
from facts.errors import forgotten
from facts.models import Fact
from facts.queries import FactList, FactsWanted, fact_revisions, fact_within, retired_matches, shown_with
from facts.services.edit import edit_fact
from facts.services.learn import apply_claims, decide_claims
from facts.services.revisions import By
from facts.services.searching import facts_about
from facts.services.tombstones import revive
from facts.types import Claim, Outcome
from workspaces.access import Opened
from workspaces.api.base import Endpoint, Needs
from workspaces.api.file_shapes import Where
from workspaces.errors import BadInput
from workspaces.llm import RULES
from workspaces.tenancy import tenant
from workspaces.types import BucketRef, Grant, Reach, Role

STATED_CONFIDENCE: Final = 0.9
"""Of what a person or a program states on purpose, where they do not say how sure they are."""
_READ: Final = Needs(Role.VIEWER, Grant.READ)
_WRITE: Final = Needs(Role.VIEWER, Grant.WRITE)
_STALE: Final = OpenApiResponse(
    description="It changed meanwhile, is retired, known already, or was forgotten."
)
_NAMES: Final[Mapping[str, str]] = {
    "statement": "statement",
    "category": "category",
    "validFrom": "valid_from",
    "validTo": "valid_to",
    "metadata": "metadata",
    "expiresAt": "expires_at",
}


def _body(opened: Opened, facts: list[Fact]) -> list[dict[str, Any]]:
    now, half_life = timezone.now(), half_life_of(opened)
    return [fact_body(shown, now=now, half_life_days=half_life) for shown in shown_with(facts)]


class FactsView(Endpoint):
    """The facts a caller sees."""

    needs: ClassVar = {"get": _READ, "post": _WRITE}

    @extend_schema(
        operation_id="listFacts", parameters=[FactsQuery], responses=FactShape(many=True), tags=["facts"]
    )
    def get(self, request: Request, agent_id: int) -> Response:
        """Lists facts, the newest first, or the best first with `q`. A list is counted to 10,000; `next` goes on."""
        given = self.query(FactsQuery)
        opened = open_facts(self.principal, agent_id, given, writes=False)
        reach = reach_of(opened, given)
        wanted = FactsWanted(
            category=given.get("category"),
            tier=given.get("tier"),
            includes_retired=given["includeRetired"],
            as_of=given.get("asOf"),
            ids=self._found(opened, reach, given) if given.get("q") else None,
        )
        pager = FactPaging()
        with tenant(opened.reach):
            trace_read(opened, given, "facts")
            facts: Any = pager.paginate_queryset(
                cast("Any", FactList(reach, wanted)), self.request, view=self
            )
            return pager.get_paginated_response(_body(opened, list(facts or ())))

    def _found(self, opened: Opened, reach: Reach, given: Mapping[str, Any]) -> tuple[int, ...]:
        """What is found; what holds no more is in no index and is looked for by its words."""
        found = facts_about(
            reach.buckets, given["q"], now=timezone.now(), half_life_days=half_life_of(opened)
        )
        if given["includeRetired"] or "asOf" in given:
            with tenant(opened.reach):
                found += retired_matches(reach, given["q"])
        return tuple(dict.fromkeys(found))

    @extend_schema(
        operation_id="stateFact",
        request=FactCreate,
        responses={200: FactWritten, 201: FactWritten, 409: OpenApiResponse(description="`forgotten`.")},
        tags=["facts"],
    )
    def post(self, request: Request, agent_id: int) -> Response:
        """States a fact. One that is known already gains this evidence (200); what it replaces is closed, and kept."""
        given = self.read(FactCreate)
        opened = open_facts(self.principal, agent_id, given, writes=True, makes=True)
        bucket, now = opened.writable(), timezone.now()
        statement = given["statement"]
        claim = Claim(
            statement,
            (said_by(self.principal, statement, now=now),),
            confidence=given.get("confidence", STATED_CONFIDENCE),
            subject=given.get("subject", ""),
            predicate=given.get("predicate", ""),
            object=given.get("object", ""),
            category=given.get("category", ""),
            valid_from=given.get("validFrom"),
            valid_to=given.get("validTo"),
            expires_at=given.get("expiresAt"),
            metadata=given.get("metadata", {}),
        )
        decided = decide_claims(bucket, [claim], model=RULES, now=now)
        with tenant(opened.reach):
            if given["revive"]:
                revive(bucket, statement)
            [learned] = apply_claims(bucket, decided, actor=self.principal.actor, now=now)
            if learned.outcome is Outcome.REFUSED:
                raise forgotten()
            trace_fact(opened, "fact.state", f"fact:{learned.fact_id}")
            fact = self._shown(bucket, opened, learned.fact_id)
            [body] = _body(opened, [fact])
        status = 201 if learned.outcome in {Outcome.ADDED, Outcome.UPDATED} else 200
        return Response(body | {"outcome": learned.outcome.value}, status=status)

    def _shown(self, bucket: BucketRef, opened: Opened, fact_id: int | None) -> Fact:
        """The fact that holds now; of one that only closed another, the one that was closed."""
        if fact_id is None:
            rows = Fact.objects.of(bucket).exclude(retired_at=None).order_by("-retired_at", "-pk")
            fact_id = rows.values_list("pk", flat=True).first()
        return fact_within(opened.reach, fact_id or 0)


class FactView(Endpoint):
    """One fact."""

    needs: ClassVar = {"get": _READ, "patch": _WRITE}

    @extend_schema(operation_id="readFact", parameters=[Where], responses=FactDetail, tags=["facts"])
    def get(self, request: Request, agent_id: int, fact_id: int) -> Response:
        """Reads a fact with all its evidence and every change of it; also one that holds no more."""
        given = self.query(Where)
        opened = open_facts(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            fact = fact_within(reach_of(opened, given), fact_id)
            trace_read(opened, given, f"fact:{fact_id}")
            [body] = _body(opened, [fact])
            history = FactRevisionShape(many=True, instance=list(fact_revisions(fact))).data  # type: ignore[arg-type]
        return Response(body | {"history": history}, headers={"ETag": f'"{fact.revision}"'})

    @extend_schema(
        operation_id="changeFact", request=FactPatch, responses={200: FactShape, 409: _STALE}, tags=["facts"]
    )
    def patch(self, request: Request, agent_id: int, fact_id: int) -> Response:
        """Changes what is named of a fact that holds; `baseRevision` or If-Match guards against overwriting."""
        given = self.read(FactPatch)
        opened = open_facts(self.principal, agent_id, given, writes=True)
        changes = {name: given[key] for key, name in _NAMES.items() if key in given}
        now = timezone.now()
        base = given.get("baseRevision", _if_match(request))
        with tenant(opened.reach):
            writable_fact(opened, fact_id)
            fact = edit_fact(
                opened.writable(),
                fact_id,
                changes,
                source=said_by(self.principal, given.get("statement", ""), now=now),
                by=By(self.principal.actor, now, given.get("reason", "")),
                base=base,
            )
            trace_fact(opened, "fact.change", f"fact:{fact_id}")
            [body] = _body(opened, [fact_within(opened.reach, fact_id)])
        return Response(body, headers={"ETag": f'"{fact.revision}"'})


def _if_match(request: Request) -> int | None:
    raw = request.headers.get("If-Match")
    if raw is None or raw.strip() == "*":
        return None
    number = raw.strip().removeprefix("W/").strip('"')
    if not (number.isascii() and number.isdigit() and len(number) <= 9):
        raise BadInput("bad_if_match", f'If-Match {raw[:40]!r} is no revision, such as "3".')
    return int(number)


class FactHistoryView(Endpoint):
    """A fact's changes."""

    needs: ClassVar = {"get": _READ}

    @extend_schema(
        operation_id="listFactRevisions",
        parameters=[Where],
        responses=FactRevisionShape(many=True),
        tags=["facts"],
    )
    def get(self, request: Request, agent_id: int, fact_id: int) -> Response:
        """Lists a fact's changes, newest first."""
        given = self.query(Where)
        opened = open_facts(self.principal, agent_id, given, writes=False)
        with tenant(opened.reach):
            fact = fact_within(reach_of(opened, given), fact_id)
            trace_read(opened, given, f"fact:{fact_id}")
            return self.page(fact_revisions(fact), FactRevisionShape)
