"""Facts and entries as they are recalled: legs of the turn's one search, as files and messages are.

Each tells where it comes from: the words it was learned from, who said them and when, and by which prompt and model.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from django.utils import timezone

from facts.logic.trust import decayed
from memory.providers.base import Asked
from memory.providers.builtin import scope_of, shown_score
from memory.types import RecallItem
from recall.types import Found, RecordKind
from workspaces.settings import Effective
from workspaces.tenancy import read_as_tenant
from workspaces.types import BucketRef, Reach

HALF_LIFE: Final = "mate.memory.fact.trust-half-life-days"
MOST_EVIDENCE: Final = 3
"""Pieces of evidence that a recalled fact names, the oldest first; the fact itself shows all."""
MOST_QUOTED: Final = 300
"""Characters of a quote."""


class FactProvider:
    """Recalls what was learned as facts."""

    name = "fact"

    def prefetch(self, asked: Asked) -> list[RecallItem]:
        """The facts that were found, best first."""
        found = [one for one in asked.found if one.kind is RecordKind.FACT]
        return fact_items(asked.reach, found, own=asked.own, half_life_days=half_life_of(asked.settings))


class StructuredProvider:
    """Recalls structured memory; of every prompt a part stands in the always-on block already."""

    name = "structured"

    def prefetch(self, asked: Asked) -> list[RecallItem]:
        """The entries that were found, best first."""
        found = [one for one in asked.found if one.kind is RecordKind.ENTRY]
        return entry_items(asked.reach, found, own=asked.own)


def half_life_of(settings: Effective) -> int:
    """Days in which unconfirmed trust halves."""
    return settings.count(HALF_LIFE)


def fact_items(
    reach: Reach, found: Sequence[Found], *, own: BucketRef | None, half_life_days: float
) -> list[RecallItem]:
    """What was found among facts, as `tenant(reach)` sees it: those that hold now. One statement.

    One that is retired, expired or outside its range is left out, whatever the index still says.
    """
    if not found:
        return []
    now = timezone.now()
    ids = [one.source_id for one in found]
    told = read_as_tenant(reach, _FACTS, [MOST_EVIDENCE, list(reach.buckets), ids, now, now, now])
    rows = {row[0]: _Learned(*row) for row in told}
    return [
        _fact_item(rows[one.source_id], one, own=own, now=now, half_life_days=half_life_days)
        for one in found
        if one.source_id in rows
    ]


class _Learned(NamedTuple):
    id: int
    bucket_id: int
    statement: str
    trust: float
    confirmed_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    learned_at: datetime
    derived_from: str
    roots: int
    evidence: str


def _fact_item(
    row: _Learned, found: Found, *, own: BucketRef | None, now: datetime, half_life_days: float
) -> RecallItem:
    evidence = [_evidence(one) for one in json.loads(row.evidence or "[]")]
    first = evidence[0] if evidence else {}
    places = ("conversationId", "messageId", "externalId", "file", "heading", "entryId")
    source: dict[str, Any] = {"factId": row.id} | {name: first[name] for name in places if name in first}
    source |= {
        "evidence": evidence,
        "evidenceCount": row.roots,
        "learnedAt": row.learned_at.isoformat(),
        "learnedBy": first.get("learnedBy"),
        "validFrom": row.valid_from.isoformat() if row.valid_from else None,
        "validTo": row.valid_to.isoformat() if row.valid_to else None,
    }
    at = row.valid_from.isoformat() if row.valid_from else first.get("at") or row.learned_at.isoformat()
    return RecallItem(
        id=f"fact:{row.id}",
        kind="fact",
        text=row.statement,
        score=shown_score(found.score),
        scope=scope_of(row.bucket_id, own),
        at=at,
        speaker=first.get("speaker"),
        source=source,
        why={name: round(value, 4) for name, value in found.why.items()},
        record_source=row.id,
        content_hash=found.content_hash,
        trust=round(decayed(row.trust, since=row.confirmed_at, now=now, half_life_days=half_life_days), 4),
    )


def _evidence(told: dict[str, Any]) -> dict[str, Any]:
    """One piece of evidence as it is shown; what is not known of it is left out."""
    shown = {
        "kind": told["kind"],
        "at": told["at"],
        "quote": (told["quote"] or "")[:MOST_QUOTED],
        "speaker": told["speaker"] or ("owner" if told["is_owner"] else None),
        "conversationId": told["conversation"],
        "messageId": told["message_id"],
        "externalId": told["external_id"],
        "file": told["file"],
        "heading": told["heading"] or None,
        "entryId": told["entry_id"],
        "learnedBy": {
            "prompt": told["prompt"],
            "promptVersion": told["prompt_version"],
            "model": told["model"],
        }
        if told["prompt"] or told["model"]
        else None,
    }
    return {name: value for name, value in shown.items() if value is not None}


_FACTS: Final = """
SELECT f.id, f.bucket_id, f.statement, f.trust, f.confirmed_at, f.valid_from, f.valid_to, f.learned_at,
  f.derived_from, (SELECT count(*) FROM facts_evidence n WHERE n.fact_id = f.id),
  (SELECT json_agg(told ORDER BY told.id)::text FROM (
    SELECT e.id, e.kind, e.at, e.quote, coalesce(nullif(e.speaker, ''), m.speaker) AS speaker, m.is_owner,
      e.message_id, m.external_id, c.external_id AS conversation, p.name AS file, e.heading, e.entry_id,
      e.prompt, e.prompt_version, e.model
    FROM facts_evidence e
    LEFT JOIN memory_message m ON m.id = e.message_id LEFT JOIN memory_conversation c ON c.id = m.conversation_id
    LEFT JOIN workspaces_file p ON p.id = e.file_id
    WHERE e.fact_id = f.id ORDER BY e.id LIMIT %s) told)
FROM facts_fact f
WHERE f.bucket_id = ANY(%s) AND f.id = ANY(%s) AND f.retired_at IS NULL
  AND (f.expires_at IS NULL OR f.expires_at > %s)
  AND (f.valid_from IS NULL OR f.valid_from <= %s) AND (f.valid_to IS NULL OR f.valid_to > %s)
"""


def entry_items(reach: Reach, found: Sequence[Found], *, own: BucketRef | None) -> list[RecallItem]:
    """What was found among entries, as `tenant(reach)` sees it: those that are there now. One statement."""
    if not found:
        return []
    told = read_as_tenant(
        reach, _ENTRIES, [list(reach.buckets), [one.source_id for one in found], timezone.now()]
    )
    rows = {row[0]: _Kept(*row) for row in told}
    return [_entry_item(rows[one.source_id], one, own=own) for one in found if one.source_id in rows]


class _Kept(NamedTuple):
    id: int
    bucket_id: int
    type: str
    key: str
    content: str
    source: str
    author_kind: str
    confidence: float | None
    updated_at: datetime
    quotes: str
    actor: str
    prompt_version: int | None
    model: str


def _entry_item(row: _Kept, found: Found, *, own: BucketRef | None) -> RecallItem:
    quotes = json.loads(row.quotes or "[]")
    learned = {"prompt": "extract", "promptVersion": row.prompt_version, "model": row.model or None}
    source: dict[str, Any] = {
        "entryId": row.id,
        "type": row.type,
        "key": row.key,
        "said": row.source,
        "writtenBy": row.author_kind,
        "actor": row.actor,
        "evidence": [{"kind": "message"} | one for one in quotes if isinstance(one, dict)][:MOST_EVIDENCE],
        "learnedBy": learned if row.prompt_version is not None else None,
    }
    first = source["evidence"][0] if source["evidence"] else {}
    if "messageId" in first:
        source["messageId"] = first["messageId"]
    return RecallItem(
        id=f"entry:{row.id}",
        kind="entry",
        text=row.content,
        score=shown_score(found.score),
        scope=scope_of(row.bucket_id, own),
        at=row.updated_at.isoformat(),
        speaker=first.get("speaker") or None,
        source=source,
        why={name: round(value, 4) for name, value in found.why.items()},
        record_source=row.id,
        content_hash=found.content_hash,
        trust=row.confidence,
    )


_ENTRIES: Final = """
SELECT e.id, e.bucket_id, e.type, e.key, e.content, e.source, e.author_kind, e.confidence, e.updated_at,
  r.quotes::text, r.actor, r.prompt_version, r.model
FROM memory_entry e LEFT JOIN memory_entryrevision r ON r.entry_id = e.id AND r.number = e.revision
WHERE e.bucket_id = ANY(%s) AND e.id = ANY(%s) AND e.deleted_at IS NULL AND (e.expires_at IS NULL OR e.expires_at > %s)
"""
