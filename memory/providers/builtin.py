"""The product's own providers: what people's files say, and what was said in other conversations.

Both are legs of the turn's one search (`recall.services.search`): they read the text of what it found, under the
tenant's policies, and leave out what has changed since it was indexed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from django.db.models import Q

from memory.providers.base import Asked
from memory.types import RecallItem
from recall.services.index import content_hash
from recall.types import Found, RecordKind
from workspaces.logic.names import MEMORY, PROFILE
from workspaces.logic.passages import Passage, Source, passages_of
from workspaces.models import GLOBAL_BUCKET_ID, File
from workspaces.tenancy import read_as_tenant, tenant
from workspaces.types import BucketRef, Reach, Scope

ALWAYS_CHARS: Final = 1500
"""How much of the profile and the memory goes along whatever is asked: a question seldom names what it needs."""


class BuiltinProvider:
    """Recalls passages of files; of the owner's profile and memory also what the question does not name."""

    name = "builtin"

    def prefetch(self, asked: Asked) -> list[RecallItem]:
        """The passages that were found, best first, then what always goes along."""
        found = [one for one in asked.found if one.kind is RecordKind.FILE]
        with tenant(Reach(asked.reach.workspace_id, asked.reach.buckets)):
            items = file_items(asked.reach, found, own=asked.own, is_prompted=False)
            always = _always(asked.own) if asked.own else []
        known = {item.id for item in items}
        left = ALWAYS_CHARS
        for passage in always:
            item = _file_item(passage, score=0.0, why={"always": 1.0})
            if item.id not in known and len(item.text) <= left:
                left -= len(item.text)
                items.append(item)
        return items


class SessionProvider:
    """Recalls what was said in the owner's other conversations."""

    name = "session"

    def prefetch(self, asked: Asked) -> list[RecallItem]:
        """The messages that were found, best first."""
        found = [one for one in asked.found if one.kind is RecordKind.MESSAGE]
        return message_items(asked.reach, found, without=asked.conversation)


def file_items(
    reach: Reach, found: Sequence[Found], *, own: BucketRef | None, is_prompted: bool = True
) -> list[RecallItem]:
    """What was found in files, as it stands there now. Inside `tenant(…)`; one query.

    Without `is_prompted`, shared files that are part of every prompt are left out: they stand there already.
    """
    rows = File.objects.within(reach).filter(pk__in={one.source_id for one in found})
    if not is_prompted:
        rows = rows.exclude(~Q(bucket_id=own.id if own else 0), enabled=True)
    texts = {
        file.pk: _Text(Source(file.pk, file.name, scope_of(file.bucket_id, own), file.content))
        for file in rows
    }
    items = []
    for one in found:
        passage = texts[one.source_id].passage(one) if one.source_id in texts else None
        if passage is not None:
            items.append(_file_item(passage, score=shown_score(one.score), why=one.why))
    return items


class _Text:
    """A file as it stands, and its passages by what the index knows of them."""

    def __init__(self, source: Source) -> None:
        self._by_line = {passage.line: passage for passage in passages_of(source)}
        self._by_hash: dict[str, Passage] = {}

    def passage(self, found: Found) -> Passage | None:
        """What was found, where it stood when it was indexed or wherever it stands now."""
        there = self._by_line.get(found.part)
        if there is not None and content_hash(there.searched) == found.content_hash:
            return there
        if not self._by_hash:
            self._by_hash = {content_hash(one.searched): one for one in self._by_line.values()}
        return self._by_hash.get(found.content_hash)


def message_items(reach: Reach, found: Sequence[Found], *, without: int | None = None) -> list[RecallItem]:
    """What was found among messages, as `tenant(reach)` sees it; one statement."""
    if not found:
        return []
    # In plain SQL: putting this query together by the ORM took longer than the query.
    told = read_as_tenant(reach, _MESSAGES, [list(reach.buckets), [one.source_id for one in found]])
    rows = {row[0]: _Said(*row) for row in told}
    items = []
    for one in found:
        row = rows.get(one.source_id)
        if row is None or row.conversation == without:
            continue
        items.append(
            RecallItem(
                id=f"message:{row.id}",
                kind="message",
                text=row.content,
                score=shown_score(one.score),
                scope=Scope.PERSONAL.value,
                at=row.at.isoformat(),
                speaker=row.speaker
                or ("owner" if row.is_owner else "agent" if row.role == "assistant" else None),
                source={
                    "conversationId": row.known_as,
                    "messageId": row.id,
                    "externalId": row.external_id,
                    "role": row.role,
                },
                why={name: round(value, 4) for name, value in one.why.items()},
                record_source=row.id,
                content_hash=one.content_hash,
            )
        )
    return items


class _Said(NamedTuple):
    id: int
    content: str
    at: datetime
    speaker: str
    is_owner: bool
    role: str
    external_id: str | None
    conversation: int
    known_as: str


_MESSAGES: Final = """
SELECT m.id, m.content, m.at, m.speaker, m.is_owner, m.role, m.external_id, c.id, c.external_id
FROM memory_message m JOIN memory_conversation c ON c.id = m.conversation_id
WHERE m.bucket_id = ANY(%s) AND m.id = ANY(%s)
"""


def shown_score(points: float) -> float:
    """Points of a ranking between 0 and 1, in the same order; 0 points, which an average candidate has, are .5."""
    return round(1 / (1 + math.exp(-points / 2)), 6)


def _always(own: BucketRef) -> list[Passage]:
    files = File.objects.of(own).filter(name__in=[PROFILE, MEMORY], deleted_at=None).order_by("-name")
    return [
        passage
        for file in files
        for passage in passages_of(Source(file.pk, file.name, Scope.PERSONAL.value, file.content))
    ]


def _file_item(passage: Passage, *, score: float, why: dict[str, float]) -> RecallItem:
    return RecallItem(
        id=f"file:{passage.source.file_id}:{passage.line}",
        kind="file",
        text=passage.text.removeprefix("- "),
        score=score,
        scope=passage.source.scope,
        at=passage.day.isoformat() if passage.day else None,
        source={"file": passage.source.name, "heading": passage.heading, "line": passage.line},
        why={name: round(value, 4) for name, value in why.items()},
        record_source=passage.source.file_id,
        content_hash=content_hash(passage.searched),
    )


def scope_of(bucket_id: int, own: BucketRef | None) -> str:
    """The scope of a bucket within reach."""
    if own is not None and bucket_id == own.id:
        return Scope.PERSONAL.value
    return Scope.GLOBAL.value if bucket_id == GLOBAL_BUCKET_ID else Scope.TEAM.value
