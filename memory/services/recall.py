"""What is recalled for a turn: one search, the providers' answers, and the block made of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.utils import timezone

from memory.logic import echo
from memory.logic.blocks import block_of, where_of
from memory.logic.echo import ECHO_OVERLAP, overlap
from memory.models import Conversation
from memory.providers.base import Asked
from memory.providers.builtin import file_items, message_items
from memory.providers.chain import Asking, InForce
from memory.providers.facts import entry_items, fact_items, half_life_of
from memory.services.embedding import embed_question
from memory.types import OutsideTool, ProviderAnswer, RecallItem
from recall.services.search import Wanted, search
from recall.types import Found, RecordKind
from workspaces.access import Opened
from workspaces.settings import Effective
from workspaces.tenancy import tenant

MOST_FOUND: Final = 24
"""Records that a turn's search puts before the providers."""


@dataclass(frozen=True, slots=True)
class Recalled:
    """The fenced block (empty when nothing was found), its items, and what became of each provider.

    `system_blocks` is what plugins say in the system prompt, `tools` what they give the agent. `ms` is the time of
    the search, the question's vector included.
    """

    block: str
    items: tuple[RecallItem, ...]
    providers: tuple[ProviderAnswer, ...]
    system_blocks: tuple[str, ...] = ()
    tools: tuple[OutsideTool, ...] = ()
    ms: int = 0


def recall_for_turn(
    opened: Opened,
    *,
    query: str,
    settings: Effective,
    conversation: Conversation | None = None,
    max_tokens: int | None = None,
    plugins: Sequence[InForce] = (),
) -> Recalled:
    """Asks every provider and fences what they know as background, not instruction."""
    asked = Asked(
        own=opened.own,
        reach=opened.reach,
        query=query,
        settings=settings,
        conversation=conversation.pk if conversation else None,
    )
    most = settings.count("mate.memory.provider-block-max-chars")
    asking = Asking(asked, plugins)
    began = time.monotonic()
    found, reason = find(opened, query=query, limit=MOST_FOUND)
    ms = round((time.monotonic() - began) * 1000)
    gathered = asking.gather(tuple(found))
    answers = _told_once(gathered.answers)
    blocks: list[str] = []
    told: list[ProviderAnswer] = []
    items: list[RecallItem] = []
    for answer in answers:
        pairs = ((where_of(item), item.text) for item in answer.items)
        text, held = block_of(pairs, max_chars=most, max_tokens=max_tokens)
        kept = tuple(answer.items[index] for index in held)
        cut = len(answer.items) - len(kept)
        said = (
            answer.reason
            or (f"{cut} items cut" if cut else "")
            or (reason if answer.status == "answered" else "")
        )
        told.append(replace(answer, items=kept, cut=cut, reason=said))
        items.extend(kept)
        if text:
            blocks.append(text)
    block = echo.fence("\n\n".join(blocks)) if blocks else ""
    return Recalled(block, tuple(items), tuple(told), gathered.blocks, gathered.tools, ms)


def find(opened: Opened, *, query: str, limit: int) -> tuple[list[Found], str]:
    """The best records within reach, and why there were no vectors, if so. One embedding, two statements."""
    embedded, reason = embed_question(query, buckets=opened.reach.buckets)
    return search(opened.reach.buckets, _wanted(opened, query, limit), embedded=embedded), reason


def search_memory(
    opened: Opened,
    *,
    query: str,
    limit: int,
    kinds: Sequence[RecordKind] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    threshold: float | None = None,
) -> tuple[list[RecallItem], str]:
    """The best of everything within reach, with its text; what one source says twice is shown once."""
    embedded, reason = embed_question(
        query, buckets=opened.reach.buckets, kinds=[kind.value for kind in kinds]
    )
    wanted = replace(_wanted(opened, query, 2 * limit + 10), kinds=tuple(kinds), since=since, until=until)
    found = search(opened.reach.buckets, wanted, embedded=embedded)
    messages = [one for one in found if one.kind is RecordKind.MESSAGE]
    # Others may repeat a message that is not among the first; where there are none, the first are enough.
    first = limit if len(messages) == len(found) else len(messages)
    items = message_items(opened.reach, messages[:first])
    if len(items) < limit:
        items += message_items(opened.reach, messages[first:])
    files = [one for one in found if one.kind is RecordKind.FILE]
    if files:
        with tenant(opened.reach):
            items += file_items(opened.reach, files, own=opened.own)
    items += entry_items(opened.reach, [one for one in found if one.kind is RecordKind.ENTRY], own=opened.own)
    items += fact_items(
        opened.reach,
        [one for one in found if one.kind is RecordKind.FACT],
        own=opened.own,
        half_life_days=half_life_of(opened.settings),
    )
    items.sort(key=lambda item: -item.score)
    good = [item for item in items if threshold is None or item.score >= threshold]
    return _without_copies(good)[:limit], reason


def _wanted(opened: Opened, query: str, limit: int) -> Wanted:
    return Wanted(
        query=query,
        asked_at=timezone.now(),
        limit=limit,
        asker=opened.called or None,
        agent=opened.agent.name,
        trust_half_life_days=half_life_of(opened.settings),
    )


def _told_once(answers: Sequence[ProviderAnswer]) -> list[ProviderAnswer]:
    """The providers' answers, without lines of files that only repeat a message that was found too."""
    kept = {item.id for item in _without_copies([item for answer in answers for item in answer.items])}
    return [
        replace(answer, items=tuple(item for item in answer.items if item.id in kept)) for answer in answers
    ]


def _without_copies(items: Sequence[RecallItem]) -> list[RecallItem]:
    """A note that repeats a message says nothing more than the message, which is the source."""
    said = [item.text for item in items if item.kind == "message"]
    return [
        item
        for item in items
        if item.kind != "file"
        or item.source.get("file") in {"PROFILE.md", "MEMORY.md"}
        or not any(overlap(item.text.partition(": ")[2] or item.text, text) >= ECHO_OVERLAP for text in said)
    ]
