"""Turns that another runtime answered, and the context for one."""

from __future__ import annotations

from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from memory.api.shapes import (
    ContextReply,
    ContextRequest,
    ConversationShape,
    MessageShape,
    OwnerQuery,
    TurnsReply,
    TurnsRequest,
    item_bodies,
    provider_bodies,
)
from memory.models import RecallHit
from memory.queries import conversation_named, conversations_of, messages_of
from memory.services.context import build_context
from memory.services.hits import record_hits
from memory.services.turns import delete_conversation, record_turns
from memory.types import Incoming
from workspaces.access import open_personal
from workspaces.api.base import Endpoint, Needs
from workspaces.services.audit import record_audit
from workspaces.tenancy import tenant
from workspaces.types import Grant, Role

_READ = Needs(Role.VIEWER, Grant.READ)
_WRITE = Needs(Role.VIEWER, Grant.WRITE)


class TurnsView(Endpoint):
    """Messages that another runtime exchanged."""

    needs: ClassVar = {"post": _WRITE}

    @extend_schema(
        operation_id="recordTurns", request=TurnsRequest, responses={201: TurnsReply}, tags=["turns"]
    )
    def post(self, request: Request, agent_id: int) -> Response:
        """Stores 1 to 1000 messages in order; the same `externalId` is stored once."""
        asked = self.read(TurnsRequest)
        recorded = record_turns(
            open_personal(
                self.principal, agent_id, end_user_id=asked.get("endUserId"), writes=True, works=True
            ),
            conversation_id=asked["conversationId"],
            source=asked.get("source") or ("api" if self.principal.token_id else "web"),
            owner=asked.get("ownerName"),
            # A repeated request stores nothing twice, even when the first one died before it answered.
            request_id=str(self.claim.row_id) if self.claim else None,
            messages=[
                Incoming(
                    role=one["role"],
                    content=one["content"],
                    speaker=one.get("speaker"),
                    at=one.get("at"),
                    external_id=one.get("externalId"),
                )
                for one in asked["messages"]
            ],
        )
        body = {
            "conversationId": recorded.conversation.external_id,
            "stored": recorded.stored,
            "duplicates": recorded.duplicates,
            "messages": [{"id": pk, "externalId": external_id} for pk, external_id in recorded.messages],
        }
        return Response(body, status=status.HTTP_201_CREATED)


class ContextView(Endpoint):
    """The prompt blocks of one turn, for a runtime that calls its own model."""

    needs: ClassVar = {"post": _READ}

    @extend_schema(
        operation_id="buildContext", request=ContextRequest, responses=ContextReply, tags=["turns"]
    )
    def post(self, request: Request, agent_id: int) -> Response:
        """Builds the prompt blocks of one turn, as text ready to send."""
        asked = self.read(ContextRequest)
        opened = open_personal(
            self.principal, agent_id, end_user_id=asked.get("endUserId"), writes=False, works=True
        )
        conversation = None
        if asked.get("conversationId"):
            with tenant(opened.reach):
                conversation = conversation_named(opened.own, asked["conversationId"])
        context = build_context(
            opened,
            query=asked["query"],
            conversation=conversation,
            max_recalled_tokens=asked.get("maxTokens"),
        )
        if opened.own is not None:
            with tenant(opened.own):
                record_hits(
                    opened.own,
                    context.recalled.items,
                    query=asked["query"],
                    source=RecallHit.HitSource.CONTEXT,
                    now=timezone.now(),
                )
        body = {
            "system": context.system,
            "alwaysOn": context.always_on,
            "recalled": context.recalled.block,
            "items": item_bodies(context.recalled.items),
            "tokens": sum(context.sizes.values()),
            "providers": provider_bodies(context.recalled.providers),
        }
        return Response(body)


class ConversationsView(Endpoint):
    """A person's conversations with the agent."""

    needs: ClassVar = {"get": _READ}

    @extend_schema(
        operation_id="listConversations",
        parameters=[OwnerQuery],
        responses=ConversationShape(many=True),
        tags=["chat"],
    )
    def get(self, request: Request, agent_id: int) -> Response:
        """Lists a person's conversations, the latest first."""
        asked = self.query(OwnerQuery)
        opened = open_personal(self.principal, agent_id, end_user_id=asked.get("endUserId"), writes=False)
        with tenant(opened.reach):
            return self.page(conversations_of(opened.own) if opened.own else [], ConversationShape)


class ConversationView(Endpoint):
    """One conversation."""

    needs: ClassVar = {"get": _READ, "delete": _WRITE}

    @extend_schema(
        operation_id="readConversation",
        parameters=[OwnerQuery],
        responses=MessageShape(many=True),
        tags=["chat"],
    )
    def get(self, request: Request, agent_id: int, conversation_id: str) -> Response:
        """Reads a conversation's messages, in order."""
        asked = self.query(OwnerQuery)
        opened = open_personal(self.principal, agent_id, end_user_id=asked.get("endUserId"), writes=False)
        with tenant(opened.reach):
            conversation = conversation_named(opened.own, conversation_id)
            return self.page(messages_of(conversation), MessageShape)

    @extend_schema(
        operation_id="deleteConversation", parameters=[OwnerQuery], responses={204: None}, tags=["chat"]
    )
    def delete(self, request: Request, agent_id: int, conversation_id: str) -> Response:
        """Removes a conversation with its messages. What was learned from it stays."""
        asked = self.query(OwnerQuery)
        opened = open_personal(self.principal, agent_id, end_user_id=asked.get("endUserId"), writes=False)
        with tenant(opened.reach):
            delete_conversation(opened.personal(), conversation_named(opened.own, conversation_id))
            record_audit(
                self.principal.workspace_id,
                actor=self.principal.actor,
                action="conversation.deleted",
                target=conversation_id,
                address=self.principal.address,
            )
        return Response(status=status.HTTP_204_NO_CONTENT)
