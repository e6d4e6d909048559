"""What is recalled for a turn: the providers' answers, and the one block made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from memory.logic import echo
from memory.logic.passages import block_of
from memory.providers.base import Asked
from memory.providers.chain import ask_providers
from memory.types import ProviderAnswer, RecallItem
from workspaces.access import Opened
from workspaces.settings import Effective


@dataclass(frozen=True, slots=True)
class Recalled:
    """The fenced block (empty when nothing was found), its items, and what became of each provider."""

    block: str
    items: tuple[RecallItem, ...]
    providers: tuple[ProviderAnswer, ...]


def recall_for_turn(
    opened: Opened, *, query: str, settings: Effective, max_tokens: int | None = None
) -> Recalled:
    """Asks every provider and fences what they know as background, not instruction."""
    answers = ask_providers(Asked(own=opened.own, reach=opened.reach, query=query, settings=settings))
    most = settings.count("mate.memory.provider-block-max-chars")
    blocks: list[str] = []
    told: list[ProviderAnswer] = []
    items: list[RecallItem] = []
    for answer in answers:
        pairs = ((_where(item), item.text) for item in answer.items)
        text, held = block_of(pairs, max_chars=most, max_tokens=max_tokens)
        kept = tuple(answer.items[index] for index in held)
        cut = len(answer.items) - len(kept)
        reason = answer.reason or (f"{cut} items cut" if cut else "")
        told.append(replace(answer, items=kept, cut=cut, reason=reason))
        items.extend(kept)
        if text:
            blocks.append(text)
    block = echo.fence("\n\n".join(blocks)) if blocks else ""
    return Recalled(block, tuple(items), tuple(told))


def _where(item: RecallItem) -> str:
    """Where an item comes from, as the agent reads it: the day it was said, else the file and heading."""
    if item.at:
        return item.at
    name = str(item.source.get("file", item.kind))
    heading = item.source.get("heading")
    return f"{name}, {heading}" if heading else name
