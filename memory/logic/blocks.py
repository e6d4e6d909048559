"""The block of recalled lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from workspaces.logic.tokens import estimate


def block_of(
    texts: Iterable[tuple[str, str]], *, max_chars: int, max_tokens: int | None = None
) -> tuple[str, tuple[int, ...]]:
    """`(where, text)` pairs as one block of lines, and which of them it holds; never cut inside a line."""
    lines: list[str] = []
    kept: list[int] = []
    chars = tokens = 0
    for index, (where, text) in enumerate(texts):
        line = f"- [{where}] {text.removeprefix('- ').strip()}"
        cost = estimate(line) if max_tokens is not None else 0
        if chars + len(line) + 1 > max_chars or (max_tokens is not None and tokens + cost > max_tokens):
            continue
        lines.append(line)
        kept.append(index)
        chars += len(line) + 1
        tokens += cost
    return "\n".join(lines), tuple(kept)
