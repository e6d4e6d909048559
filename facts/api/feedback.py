"""Thumbs up and down for facts and for whatever was recalled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Final

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from facts.api.opening import open_facts, reach_of, trace_fact
from facts.api.shapes import FactFeedbackBody, FeedbackBody, FeedbackReply
from facts.errors import only_members_judge
from facts.services.feedback import Item, item_named, vote
from workspaces.access import Opened
from workspaces.api.base import Endpoint, Needs
from workspaces.tenancy import tenant
from workspaces.types import BucketRef, Grant, Role

_WRITE: Final = Needs(Role.VIEWER, Grant.WRITE)


class _Voting(Endpoint):
    """One vote a person: another replaces it, null withdraws it."""

    def _vote(self, agent_id: int, recall_id: str, given: Mapping[str, Any]) -> Response:
        opened = open_facts(self.principal, agent_id, {**given, "bucket": None}, writes=False)
        with tenant(opened.reach):
            item = item_named(reach_of(opened, given), recall_id)
        bucket = _bucket_of(opened, item)
        with tenant(replace(opened.reach, writes=(bucket.id,))):
            votes = vote(bucket, item, voter=opened.owner_key, helpful=given["helpful"], now=timezone.now())
            trace_fact(opened, "feedback", recall_id)
        return Response(
            {
                "recallId": recall_id,
                "helpful": given["helpful"],
                "feedback": {"helpful": votes.helpful, "unhelpful": votes.unhelpful},
                "trust": votes.trust,
            }
        )


def _bucket_of(opened: Opened, item: Item) -> BucketRef:
    """The item's bucket, which the caller may write: their own, or the shared one of members."""
    if opened.own is not None and item.bucket_id == opened.own.id:
        return opened.own
    if item.bucket_id != opened.agent.team.id or not opened.principal.has_role(Role.MEMBER):
        raise only_members_judge()
    return opened.agent.team


class FeedbackView(_Voting):
    """What a person thinks of a recalled item."""

    needs: ClassVar = {"post": _WRITE}

    @extend_schema(
        operation_id="judgeRecalled", request=FeedbackBody, responses=FeedbackReply, tags=["recall"]
    )
    def post(self, request: Request, agent_id: int) -> Response:
        """Votes on a recalled item; recall ranks by it from then on."""
        given = self.read(FeedbackBody)
        return self._vote(agent_id, given["recallId"], given)


class FactFeedbackView(_Voting):
    """What a person thinks of a fact."""

    needs: ClassVar = {"post": _WRITE}

    @extend_schema(
        operation_id="judgeFact", request=FactFeedbackBody, responses=FeedbackReply, tags=["facts"]
    )
    def post(self, request: Request, agent_id: int, fact_id: int) -> Response:
        """Votes on a fact; its trust follows."""
        return self._vote(agent_id, f"fact:{fact_id}", self.read(FactFeedbackBody))
