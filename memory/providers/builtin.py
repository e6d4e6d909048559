"""The builtin provider: a person's own files, by keyword."""

from __future__ import annotations

from typing import Final

from django.db.models import Case, IntegerField, Value, When

from memory.logic.passages import Passage, Picked, Source, passages_of, pick
from memory.providers.base import Asked
from memory.types import RecallItem
from workspaces.logic.keyword import score_passages
from workspaces.logic.names import MEMORY, PROFILE
from workspaces.models import File
from workspaces.tenancy import tenant
from workspaces.types import BucketRef, Reach, Scope

MOST_FILES: Final = 50
"""Files looked at in a turn (contract §3): profile and memory, then the latest notes."""
MOST_CHARS: Final = 400_000
"""Characters looked at in a turn, so that its cost does not grow with the store."""
MOST_PASSAGES: Final = 16
ALWAYS_CHARS: Final = 1500
"""How much of the profile and the memory goes along whatever is asked."""


class BuiltinProvider:
    """Recalls passages of the owner's PERSONAL files: profile, memory, daily notes, what was cut from them."""

    name = "builtin"

    def prefetch(self, asked: Asked) -> list[RecallItem]:
        """The best passages for the message; one query."""
        if asked.own is None:
            return []
        passages = [passage for source in _sources(asked.own) for passage in passages_of(source)]
        if not passages:
            return []
        scores = score_passages([passage.searched for passage in passages], asked.query)
        return [_item(one) for one in pick(passages, scores, most=MOST_PASSAGES, always_chars=ALWAYS_CHARS)]


def _sources(own: BucketRef) -> list[Source]:
    first = Case(
        When(name__in=[PROFILE, MEMORY], then=Value(0)), default=Value(1), output_field=IntegerField()
    )
    with tenant(Reach(own.workspace_id, (own.id,))):
        rows = (
            File.objects.of(own)
            .filter(deleted_at=None, head__gt=0)
            .order_by(first, "-updated_at")
            .values_list("pk", "name", "content")[:MOST_FILES]
        )
        found = [Source(pk, name, Scope.PERSONAL.value, content) for pk, name, content in rows]
    kept: list[Source] = []
    left = MOST_CHARS
    for source in found:
        left -= len(source.content)
        if left < 0 and kept:
            break
        kept.append(source)
    return kept


def _item(one: Picked) -> RecallItem:
    passage: Passage = one.passage
    source = passage.source
    return RecallItem(
        id=f"file:{source.file_id}:{passage.line}",
        kind="file",
        text=passage.text.removeprefix("- "),
        score=round(one.score, 4),
        scope=source.scope,
        at=passage.day.isoformat() if passage.day else None,
        source={"file": source.name, "heading": passage.heading, "line": passage.line},
        why={"lexical": round(one.score, 4)} if one.score else {"always": 1.0},
    )
