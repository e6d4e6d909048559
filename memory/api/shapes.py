"""What the endpoints of the memory app take and give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rest_framework import serializers

from memory.services.chat import Reply, usage_of
from memory.types import ProviderAnswer, RecallItem
from workspaces.api.fields import EndUserIdField, FlagField, IdField, StrictSerializer, TextField
from workspaces.models import Run

EARLIEST: Final = 1900
LATEST: Final = 2200
"""Years in which something may have been said; further out the calendar itself gives way."""


class ConversationIdField(TextField):
    """A conversation's id: a string of at most 128 characters, the caller's own or ours."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=128, min_length=1, **options)


class ChatRequest(StrictSerializer):
    agentId = IdField(required=False, help_text="Absent: the workspace's default agent.")
    message = TextField(help_text="At most 256 KiB.")
    conversationId = ConversationIdField(required=False, allow_null=True, help_text="Absent: a new one.")
    endUserId = EndUserIdField(required=False)

    def validate_message(self, value: str) -> str:
        if not value.strip():
            raise serializers.ValidationError("The message is empty.", code="blank")
        return value


class RecallItemShape(serializers.Serializer[Any]):
    id = serializers.CharField()
    kind = serializers.CharField()
    text = serializers.CharField()
    score = serializers.FloatField()
    scope = serializers.CharField()
    at = serializers.CharField(allow_null=True)
    speaker = serializers.CharField(allow_null=True)
    trust = serializers.FloatField(
        allow_null=True, help_text="At this moment: it decays until it is confirmed."
    )
    source = serializers.DictField(  # type: ignore[assignment]
        help_text="Where it comes from; of what was learned also `evidence` and `learnedBy`."
    )
    why = serializers.DictField(child=serializers.FloatField(), required=False)


class ProviderShape(serializers.Serializer[ProviderAnswer]):
    name = serializers.CharField()
    status = serializers.ChoiceField(["answered", "skipped", "failed", "late"])
    ms = serializers.IntegerField()
    reason = serializers.CharField(required=False)


class WindowShape(serializers.Serializer[Any]):
    tokens = serializers.IntegerField()
    budget = serializers.IntegerField()
    summarised = serializers.IntegerField()
    dropped = serializers.IntegerField()


class UsageShape(serializers.Serializer[Any]):
    inputTokens = serializers.IntegerField()
    outputTokens = serializers.IntegerField()
    cost = serializers.FloatField(required=False, help_text="US dollars, where the price is known.")


class ChatReply(serializers.Serializer[Any]):
    conversationId = serializers.CharField()
    messageId = serializers.IntegerField()
    reply = serializers.CharField()
    recalled = RecallItemShape(many=True)
    providers = ProviderShape(many=True)
    window = WindowShape()
    usage = UsageShape()
    model = serializers.CharField(help_text="`rules` when no model is set.")


class TurnMessage(StrictSerializer):
    role = serializers.ChoiceField(["user", "assistant", "tool", "system"])
    content = TextField(allow_blank=False)
    speaker = TextField(required=False, allow_null=True, allow_blank=True, max_length=128)
    at = serializers.DateTimeField(
        required=False, allow_null=True, help_text="When it was said; absent: now."
    )
    externalId = TextField(required=False, allow_null=True, max_length=255, help_text="Stored once.")

    def validate_at(self, value: datetime | None) -> datetime | None:
        if value is not None and not EARLIEST <= value.year <= LATEST:
            raise serializers.ValidationError(
                f"The year {value.year} is outside {EARLIEST} to {LATEST}.", code="bad_date"
            )
        return value


class TurnsRequest(StrictSerializer):
    conversationId = ConversationIdField()
    endUserId = EndUserIdField(required=False)
    source = serializers.ChoiceField(  # type: ignore[assignment]
        ["web", "api", "channel", "import", "cron"], required=False
    )
    ownerName = TextField(
        required=False,
        max_length=128,
        help_text="What the person is called; a user's message by this speaker is their own.",
    )
    messages = TurnMessage(many=True, allow_empty=False)

    def validate_messages(self, value: list[Any]) -> list[Any]:
        if len(value) > 1000:
            raise serializers.ValidationError(
                f"{len(value)} messages; at most 1000 a request.", code="too_many"
            )
        return value


class StoredMessage(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    externalId = serializers.CharField(allow_null=True)


class TurnsReply(serializers.Serializer[Any]):
    conversationId = serializers.CharField()
    stored = serializers.IntegerField()
    duplicates = serializers.IntegerField()
    messages = StoredMessage(many=True)


class ContextRequest(StrictSerializer):
    query = TextField(allow_blank=False)
    endUserId = EndUserIdField(required=False)
    conversationId = ConversationIdField(required=False, allow_null=True)
    maxTokens = serializers.IntegerField(
        required=False, min_value=100, max_value=1_000_000, help_text="Bounds the recalled block."
    )


class ContextReply(serializers.Serializer[Any]):
    system = serializers.CharField()
    alwaysOn = serializers.CharField()
    recalled = serializers.CharField()
    items = RecallItemShape(many=True)
    tokens = serializers.IntegerField()
    providers = ProviderShape(many=True)


class WrittenShape(serializers.Serializer[Any]):
    files = serializers.ListField(child=serializers.CharField())
    entries = serializers.IntegerField()
    facts = serializers.IntegerField()


class RunShape(serializers.Serializer[Run]):
    id = serializers.IntegerField()
    kind = serializers.CharField()
    status = serializers.ChoiceField(Run.Status.values)
    trigger = serializers.CharField()
    subject = serializers.CharField()
    reason = serializers.CharField(help_text="A stable code.")
    detail = serializers.CharField()
    startedAt = serializers.DateTimeField(source="started_at", allow_null=True)
    finishedAt = serializers.DateTimeField(source="finished_at", allow_null=True)
    written = serializers.SerializerMethodField()
    result = serializers.DictField()
    model = serializers.CharField()
    promptVersion = serializers.IntegerField(source="prompt_version", allow_null=True)
    usage = serializers.SerializerMethodField()

    def get_written(self, run: Run) -> dict[str, Any]:
        return {"files": [], "entries": 0, "facts": 0} | dict(run.written)

    def get_usage(self, run: Run) -> dict[str, Any]:
        used: dict[str, Any] = {"inputTokens": run.input_tokens, "outputTokens": run.output_tokens}
        if run.cost_usd is not None:
            used["cost"] = float(run.cost_usd)
        return used


class ChangeShape(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    targetKind = serializers.CharField(source="target_kind")
    target = serializers.CharField()
    before = serializers.CharField()
    after = serializers.CharField()
    quotes = serializers.ListField(child=serializers.DictField())
    note = serializers.CharField()
    decision = serializers.CharField()


class RunReply(serializers.Serializer[Any]):
    run = RunShape()


class RunDetail(RunShape):
    changes = ChangeShape(many=True)


class ConversationShape(serializers.Serializer[Any]):
    conversationId = serializers.CharField(source="external_id")
    title = serializers.CharField()
    source = serializers.CharField()  # type: ignore[assignment]
    messageCount = serializers.IntegerField(source="message_count")
    createdAt = serializers.DateTimeField(source="created_at")
    lastAt = serializers.DateTimeField(source="last_at")


class MessageShape(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    role = serializers.CharField()
    speaker = serializers.CharField()
    content = serializers.CharField()
    failed = serializers.BooleanField()
    externalId = serializers.CharField(source="external_id", allow_null=True)
    at = serializers.DateTimeField()


class OwnerQuery(StrictSerializer):
    endUserId = EndUserIdField(required=False)


class RunsQuery(OwnerQuery):
    bucket = serializers.ChoiceField(["shared", "personal"], required=False)
    kind = TextField(required=False, max_length=32)
    status = serializers.ChoiceField(Run.Status.values, required=False)


class SummarizeQuery(StrictSerializer):
    wait = serializers.FloatField(required=False, min_value=0, max_value=60)


class SummarizeRequest(StrictSerializer):
    endUserId = EndUserIdField(required=False)


def chat_body(reply: Reply) -> dict[str, Any]:
    """The body of `POST /chat`, and of a stream's `done`."""
    outcome = reply.outcome
    return {
        "conversationId": reply.begun.conversation.external_id,
        "messageId": reply.message.pk if reply.message else None,
        "reply": reply.text,
        "recalled": item_bodies(outcome.items),
        "providers": provider_bodies(outcome.providers),
        "window": outcome.window,
        "usage": usage_of(outcome),
        "model": outcome.model,
    }


def item_bodies(items: Sequence[RecallItem], *, explained: bool = True) -> list[dict[str, Any]]:
    """Recalled items as `RecallItemShape` describes them; a serializer took as long as the search."""
    return [
        {
            "id": item.id,
            "kind": item.kind,
            "text": item.text,
            "score": item.score,
            "scope": item.scope,
            "at": item.at,
            "speaker": item.speaker,
            "trust": item.trust,
            "source": item.source,
        }
        | ({"why": item.why} if explained else {})
        for item in items
    ]


def provider_bodies(answers: tuple[ProviderAnswer, ...]) -> list[dict[str, Any]]:
    """What became of each provider; a reason only where there is one."""
    return [
        {"name": one.name, "status": one.status, "ms": one.ms}
        | ({"reason": one.reason} if one.reason else {})
        for one in answers
    ]


class SearchRequest(StrictSerializer):
    query = TextField(allow_blank=False, max_length=20_000)
    endUserId = EndUserIdField(required=False)
    topK = serializers.IntegerField(required=False, min_value=1, max_value=100, default=10)
    kinds = serializers.ListField(
        child=serializers.ChoiceField(["message", "file", "entry", "fact"]), required=False, allow_empty=False
    )
    threshold = serializers.FloatField(
        required=False,
        min_value=0.0,
        max_value=1.0,
        help_text="Leaves out what scores less. Scores compare within one answer.",
    )
    explain = FlagField(required=False, default=False)
    record = FlagField(
        required=False, default=False, help_text="Counts the results as recalled, as chat and context do."
    )

    def get_fields(self) -> dict[str, Any]:
        # `from` is a word of Python.
        bounds = {
            "from": serializers.DateTimeField(required=False, help_text="Said at this moment or later."),
            "to": serializers.DateTimeField(required=False, help_text="Said before this moment."),
        }
        return super().get_fields() | bounds


class SearchReply(serializers.Serializer[Any]):
    results = RecallItemShape(many=True)
    providers = ProviderShape(many=True)
    tookMs = serializers.IntegerField()
