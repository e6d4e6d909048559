"""Values of the memory app that cross its modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    """One thing put before the agent, with where it came from.

    `score` lies between 0 and 1 and compares within one answer; higher is better. `record_source` and
    `content_hash` name the record in the index; a plugin's item has neither. `trust` is what a fact or an entry is
    trusted at this moment, None where nothing is known. `source` tells where it comes from: for what was learned also
    the `evidence` and `learnedBy`, the prompt and model.
    """

    id: str
    kind: str
    text: str
    score: float
    scope: str
    at: str | None = None
    speaker: str | None = None
    source: dict[str, Any] = field(default_factory=dict)
    why: dict[str, float] = field(default_factory=dict)
    record_source: int | None = None
    content_hash: str = ""
    trust: float | None = None


@dataclass(frozen=True, slots=True)
class ProviderAnswer:
    """What became of one provider in a turn. `status` is answered, skipped, failed or late; `ms` its time."""

    name: str
    status: str
    ms: int
    items: tuple[RecallItem, ...] = ()
    cut: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class SaidTurn:
    """What was said, as it was stored: for those who keep it elsewhere.

    `key` is the same when it is told again after a failure, so that nothing need be kept twice.
    """

    key: str
    conversation: str
    messages: tuple[SaidMessage, ...]


@dataclass(frozen=True, slots=True)
class SaidMessage:
    """One message of it; secrets and recalled text are taken out. `speaker` "" is the owner, for a user's message."""

    id: int
    role: str
    content: str
    speaker: str
    at: datetime


@dataclass(frozen=True, slots=True)
class OutsideTool:
    """A tool of a plugin for one turn: the name that the agent reads, and what carries out a call of it.

    `parameters` is a JSON schema of an object. `call` raises nothing: what failed is an answer too.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[[Mapping[str, Any]], Any]
