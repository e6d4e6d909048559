"""What the endpoints of facts take and give."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from rest_framework import serializers

from facts.errors import MAX_STATEMENT
from facts.logic.trust import decayed
from facts.models import Evidence, Fact, FactRevision
from facts.queries import Shown
from workspaces.api.fields import FlagField, TextField
from workspaces.api.file_shapes import MAX_REVISION, Where

MAX_METADATA: Final = 8192
"""Characters of a fact's metadata as JSON."""

# --- what is sent -----------------------------------------------------------------------------------------


class FactsQuery(Where):
    q = TextField(required=False, max_length=20_000, help_text="Searched by words and meaning, best first.")
    category = TextField(required=False, max_length=64)
    tier = serializers.ChoiceField(Fact.Tier.values, required=False)
    includeRetired = serializers.BooleanField(
        required=False, default=False, help_text="Also what holds no more: superseded, expired, deleted."
    )
    asOf = serializers.DateTimeField(
        required=False, help_text="What was true at that moment, also if it was superseded since."
    )


class FactFields(Where):
    category = TextField(required=False, allow_blank=True, max_length=64)
    validFrom = serializers.DateTimeField(required=False, allow_null=True, help_text="True from then on.")
    validTo = serializers.DateTimeField(required=False, allow_null=True, help_text="True until then.")
    expiresAt = serializers.DateTimeField(
        required=False, allow_null=True, help_text="From then on it is not recalled; null: never."
    )
    metadata = serializers.JSONField(required=False, help_text="An object of at most 8,192 characters.")
    reason = TextField(required=False, allow_blank=True, max_length=300)

    def validate_metadata(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise serializers.ValidationError("It must be an object.", code="not_an_object")
        if len(json.dumps(value)) > MAX_METADATA:
            raise serializers.ValidationError(f"At most {MAX_METADATA} characters.", code="too_long")
        return value

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        begins, ends = attrs.get("validFrom"), attrs.get("validTo")
        if begins and ends and ends < begins:
            raise serializers.ValidationError({"validTo": "It is before `validFrom`."}, code="bad_range")
        return attrs


class FactCreate(FactFields):
    statement = TextField(help_text=f"At most {MAX_STATEMENT} characters.")
    subject = TextField(required=False, allow_blank=True, max_length=200)
    predicate = TextField(required=False, allow_blank=True, max_length=200)
    object = TextField(required=False, allow_blank=True, max_length=MAX_STATEMENT)
    confidence = serializers.FloatField(required=False, min_value=0.0, max_value=1.0)
    revive = FlagField(
        required=False,
        default=False,
        help_text="Learn it although it was forgotten: the person wants it known again.",
    )


class FactPatch(FactFields):
    statement = TextField(required=False, help_text=f"At most {MAX_STATEMENT} characters.")
    baseRevision = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_REVISION, help_text="Or the header If-Match."
    )


class FactFeedbackBody(Where):
    helpful = FlagField(allow_null=True, help_text="null withdraws the vote.")


class FeedbackBody(FactFeedbackBody):
    recallId = TextField(max_length=64, help_text="The `id` of a recalled item.")


# --- what is answered -------------------------------------------------------------------------------------


class EvidenceShape(serializers.Serializer[Any]):
    kind = serializers.CharField()
    quote = serializers.CharField()
    at = serializers.CharField()
    speaker = serializers.CharField(required=False)
    messageId = serializers.IntegerField(required=False)
    file = serializers.CharField(required=False)
    heading = serializers.CharField(required=False)
    entryId = serializers.IntegerField(required=False)
    prompt = serializers.CharField(
        required=False, help_text="Who read it: a prompt, its version and the model."
    )
    promptVersion = serializers.IntegerField(required=False)
    model = serializers.CharField(required=False)
    runId = serializers.IntegerField(required=False)


class FeedbackCounts(serializers.Serializer[Any]):
    helpful = serializers.IntegerField()
    unhelpful = serializers.IntegerField()


class FactShape(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    uid = serializers.CharField()
    statement = serializers.CharField()
    subject = serializers.CharField()
    predicate = serializers.CharField()
    object = serializers.CharField()
    category = serializers.CharField()
    tier = serializers.ChoiceField(Fact.Tier.values)
    scope = serializers.CharField(help_text="PERSONAL, TEAM or GLOBAL.")
    ownerKey = serializers.CharField(allow_null=True)
    trust = serializers.FloatField(help_text="At this moment: it decays until the fact is confirmed.")
    confidence = serializers.FloatField()
    validFrom = serializers.CharField(allow_null=True)
    validTo = serializers.CharField(allow_null=True)
    learnedAt = serializers.CharField()
    confirmedAt = serializers.CharField()
    retiredAt = serializers.CharField(allow_null=True)
    retiredWhy = serializers.CharField(allow_null=True)
    supersededBy = serializers.IntegerField(allow_null=True)
    expiresAt = serializers.CharField(allow_null=True)
    metadata = serializers.DictField()
    revision = serializers.IntegerField()
    evidence = EvidenceShape(many=True)
    feedback = FeedbackCounts()


class FactRevisionShape(serializers.Serializer[FactRevision]):
    """One change: the fields that changed, as they were and as they became."""

    number = serializers.IntegerField()
    op = serializers.CharField(help_text="add, update, retire or restore.")
    before = serializers.DictField()
    after = serializers.DictField()
    actor = serializers.CharField()
    reason = serializers.CharField()
    runId = serializers.IntegerField(source="run_id", allow_null=True)
    at = serializers.DateTimeField()


class FactDetail(FactShape):
    history = FactRevisionShape(many=True)


class FactWritten(FactShape):
    outcome = serializers.CharField(
        help_text="added; confirmed: it was known; updated: it took another's place; retired: it closed one."
    )


class FeedbackReply(serializers.Serializer[Any]):
    recallId = serializers.CharField()
    helpful = serializers.BooleanField(allow_null=True)
    feedback = FeedbackCounts()
    trust = serializers.FloatField(allow_null=True)


def fact_body(shown: Shown, *, now: datetime, half_life_days: float) -> dict[str, Any]:
    """A fact as `FactShape` describes it."""
    fact = shown.fact
    trust = decayed(fact.trust, since=fact.confirmed_at, now=now, half_life_days=half_life_days)
    return {
        "id": fact.pk,
        "uid": str(fact.uid),
        "statement": fact.statement,
        "subject": fact.subject,
        "predicate": fact.predicate,
        "object": fact.object,
        "category": fact.category,
        "tier": fact.tier,
        "scope": fact.bucket.scope,
        "ownerKey": fact.bucket.owner.key if fact.bucket.owner else None,
        "trust": round(trust, 4),
        "confidence": fact.confidence,
        "validFrom": _moment(fact.valid_from),
        "validTo": _moment(fact.valid_to),
        "learnedAt": _moment(fact.learned_at),
        "confirmedAt": _moment(fact.confirmed_at),
        "retiredAt": _moment(fact.retired_at),
        "retiredWhy": fact.retired_why or None,
        "supersededBy": fact.superseded_by_id,
        "expiresAt": _moment(fact.expires_at),
        "metadata": fact.metadata,
        "revision": fact.revision,
        "evidence": evidence_bodies(shown.evidence),
        "feedback": {"helpful": shown.helpful, "unhelpful": shown.unhelpful},
    }


def evidence_bodies(rows: Sequence[Evidence]) -> list[dict[str, Any]]:
    """Evidence as `EvidenceShape` describes it; what is not known of a piece is left out."""
    told = [
        {
            "messageId": row.message_id,
            "file": row.file.name if row.file else None,
            "heading": row.heading,
            "entryId": row.entry_id,
            "speaker": row.speaker,
            "prompt": row.prompt,
            "promptVersion": row.prompt_version,
            "model": row.model,
            "runId": row.run_id,
        }
        for row in rows
    ]
    return [
        {"kind": row.kind, "quote": row.quote, "at": row.at.isoformat()}
        | {name: value for name, value in more.items() if value not in {None, ""}}
        for row, more in zip(rows, told, strict=True)
    ]


def _moment(value: datetime | None) -> str | None:
    return value.isoformat() if value else None
