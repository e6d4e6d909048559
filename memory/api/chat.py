"""Chat: one answer, or a stream of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.shapes import ChatReply, ChatRequest, chat_body, item_bodies, provider_bodies
from memory.api.sse import event_bytes, with_heartbeats
from memory.services.chat import answer_turn, stream_turn
from memory.services.turns import Begun, begin_turn
from workspaces.access import Opened, Principal, open_personal
from workspaces.api.base import Endpoint, Needs
from workspaces.services.idempotency import Claim, keep_answer, release_key
from workspaces.tenancy import release_connection
from workspaces.types import Grant, Role

_CHAT = Needs(Role.VIEWER, Grant.CHAT)


def _open(principal: Principal, asked: dict[str, Any]) -> Opened:
    return open_personal(
        principal, asked.get("agentId"), end_user_id=asked.get("endUserId"), writes=True, works=True
    )


def _source(principal: Principal) -> str:
    return "api" if principal.token_id is not None else "web"


class ChatView(Endpoint):
    """One message, one answer."""

    needs: ClassVar = {"post": _CHAT}

    @extend_schema(operation_id="chat", request=ChatRequest, responses=ChatReply, tags=["chat"])
    def post(self, request: Request) -> Response:
        """Answers with what the agent knows about this person."""
        asked = self.read(ChatRequest)
        reply = answer_turn(
            _open(self.principal, asked),
            text=asked["message"],
            conversation_id=asked.get("conversationId"),
            source=_source(self.principal),
        )
        return Response(chat_body(reply))


class EventStreamRenderer(BaseRenderer):
    """Lets a client ask for `text/event-stream`; the stream writes itself, and errors are JSON."""

    media_type = "text/event-stream"
    format = "sse"

    def render(
        self, data: Any, accepted_media_type: str | None = None, renderer_context: Any = None
    ) -> bytes:
        response = (renderer_context or {}).get("response")
        if response is not None and response.status_code == 200:
            # The answer of a repeated request.
            return event_bytes("done", data)
        return bytes(JSONRenderer().render(data, None, renderer_context))


class ChatStreamView(Endpoint):
    """The same, as it is written."""

    needs: ClassVar = {"post": _CHAT}
    renderer_classes = (JSONRenderer, EventStreamRenderer)

    @extend_schema(
        operation_id="streamChat",
        request=ChatRequest,
        responses={
            (200, "text/event-stream"): OpenApiResponse(
                OpenApiTypes.STR, "Events: session, recall, delta, tool, usage, memory, done, error."
            )
        },
        tags=["chat"],
    )
    def post(self, request: Request) -> StreamingHttpResponse:
        """Streams the answer; a client that goes away stops the model."""
        asked = self.read(ChatRequest)
        begun = begin_turn(
            _open(self.principal, asked),
            conversation_id=asked.get("conversationId"),
            text=asked["message"],
            source=_source(self.principal),
        )
        # The stream lives longer than this thread's part in it.
        release_connection()
        response = StreamingHttpResponse(
            with_heartbeats(_events(begun, self.claim)), content_type="text/event-stream"
        )
        response["Cache-Control"] = "no-cache"
        response["X-Accel-Buffering"] = "no"
        return response


async def _events(begun: Begun, claim: Claim | None) -> AsyncGenerator[bytes, None]:
    kept = False
    try:
        async with aclosing(_bodies(begun)) as bodies:
            async for name, data in bodies:
                if name == "done" and claim is not None:
                    await sync_to_async(keep_answer)(claim, status=200, body=data)
                    kept = True
                yield event_bytes(name, data)
    finally:
        if claim is not None and not kept:
            # It broke off: whoever sends it again is heard. Shielded, since the reader may be going away.
            await asyncio.shield(sync_to_async(release_key)(claim))


async def _bodies(begun: Begun) -> AsyncGenerator[tuple[str, Any], None]:
    async with aclosing(stream_turn(begun)) as events:
        async for event in events:
            data: Any = event.data
            if event.name == "recall":
                data = {
                    "items": item_bodies(data["items"]),
                    "providers": provider_bodies(data["providers"]),
                }
            elif event.name == "done":
                data = chat_body(data["reply"])
            yield event.name, data
