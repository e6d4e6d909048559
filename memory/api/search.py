"""Search over everything that a person may recall."""

from __future__ import annotations

import time
from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.shapes import SearchReply, SearchRequest, item_bodies
from memory.models import RecallHit
from memory.services.hits import record_hits
from memory.services.recall import search_memory
from recall.types import RecordKind
from workspaces.access import open_personal
from workspaces.api.base import Endpoint, Needs
from workspaces.tenancy import tenant
from workspaces.types import Grant, Role


class SearchView(Endpoint):
    """Messages and files, by words and by meaning."""

    needs: ClassVar = {"post": Needs(Role.VIEWER, Grant.READ)}

    @extend_schema(operation_id="searchMemory", request=SearchRequest, responses=SearchReply, tags=["recall"])
    def post(self, request: Request, agent_id: int) -> Response:
        """Finds the best of what is within reach; with `explain`, what each score is made of."""
        asked = self.read(SearchRequest)
        began = time.monotonic()
        opened = open_personal(self.principal, agent_id, end_user_id=asked.get("endUserId"), writes=False)
        items, reason = search_memory(
            opened,
            query=asked["query"],
            limit=asked["topK"],
            kinds=[RecordKind(kind) for kind in asked.get("kinds", ())],
            since=asked.get("from"),
            until=asked.get("to"),
            threshold=asked.get("threshold"),
        )
        if asked["record"] and opened.own is not None:
            with tenant(opened.own):
                record_hits(
                    opened.own,
                    items,
                    query=asked["query"],
                    source=RecallHit.HitSource.SEARCH,
                    now=timezone.now(),
                )
        took = round((time.monotonic() - began) * 1000)
        results = item_bodies(items, explained=asked["explain"])
        provider = {"name": "recall", "status": "answered", "ms": took} | (
            {"reason": reason} if reason else {}
        )
        return Response({"results": results, "providers": [provider], "tookMs": took})
