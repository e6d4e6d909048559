"""The block of recalled lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from memory.types import RecallItem
from workspaces.logic.tokens import estimate


def where_of(item: RecallItem) -> str:
    """Where an item comes from, as the agent reads it: the day and who said it, else the file and heading."""
    if item.at:
        return f"{item.at[:10]}, {item.speaker}" if item.speaker else item.at[:10]
    name = str(item.source.get("file", item.kind))
    heading = item.source.get("heading")
    return f"{name}, {heading}" if heading else name


def line_of(where: str, text: str) -> str:
    """An item's line of the block."""
    return f"- [{where}] {text.removeprefix('- ').strip()}"


def block_of(
    texts: Iterable[tuple[str, str]], *, max_chars: int, max_tokens: int | None = None
) -> tuple[str, tuple[int, ...]]:
    """`(where, text)` pairs as one block of lines, and which of them it holds; never cut inside a line."""
    lines: list[str] = []
    kept: list[int] = []
    chars = tokens = 0
    for index, (where, text) in enumerate(texts):
        line = line_of(where, text)
        cost = estimate(line) if max_tokens is not None else 0
        if chars + len(line) + 1 > max_chars or (max_tokens is not None and tokens + cost > max_tokens):
            continue
        lines.append(line)
        kept.append(index)
        chars += len(line) + 1
        tokens += cost
    return "\n".join(lines), tuple(kept)
