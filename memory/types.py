"""Values of the memory app that cross its modules."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Incoming:
    """A message as a caller sends it. `at` None means now; `speaker` None is the owner, for a user's message."""

    role: str
    content: str
    speaker: str | None = None
    at: datetime | None = None
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class RecallItem:
    """One thing put before the agent, with where it came from. `score` has no unit: higher is better."""

    id: str
    kind: str
    text: str
    score: float
    scope: str
    at: str | None = None
    speaker: str | None = None
    source: dict[str, Any] = field(default_factory=dict)
    why: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What became of one provider in a turn. `status` is answered, skipped, failed or late; `ms` its time."""

    name: str
    status: str
    ms: int
    items: tuple[RecallItem, ...] = ()
    cut: int = 0
    reason: str = ""
