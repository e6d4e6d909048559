"""Values of the facts app that cross apps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class SourceKind(StrEnum):
    """What kind of thing a fact was learned from."""

    MESSAGE = "message"
    FILE = "file"
    ENTRY = "entry"
    IMPORT = "import"
    PIPELINE = "pipeline"
    API = "api"
    PERSON = "person"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a statement was found. `root` is what it goes back to: two with one root are one piece of evidence.

    `at` is when it was said or written; `prompt`, `prompt_version` and `model` tell by what it was read, if asked.
    """

    kind: SourceKind
    root: str
    at: datetime
    quote: str = ""
    message_id: int | None = None
    file_id: int | None = None
    heading: str = ""
    entry_id: int | None = None
    speaker: str = ""
    prompt: str = ""
    prompt_version: int | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """One statement that may become a fact, or add to one, with where it was found.

    `run_id` makes it SHORT; `verbatim` stores it as given, never merged by likeness; `derived_from` names the entry
    that it follows (`entry:<id>`).
    """

    statement: str
    sources: tuple[Source, ...]
    confidence: float = 0.5
    subject: str = ""
    predicate: str = ""
    object: str = ""
    category: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    expires_at: datetime | None = None
    run_id: str = ""
    verbatim: bool = False
    derived_from: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)


class Outcome(StrEnum):
    """What became of a claim."""

    ADDED = "added"
    UPDATED = "updated"
    """It changed or closed a fact: `fact_id` is the one that holds now."""
    CONFIRMED = "confirmed"
    """It was known: its evidence was added."""
    RETIRED = "retired"
    """It said that a fact holds no more, and nothing in its place."""
    REFUSED = "forgotten"
    """A tombstone keeps it out."""


@dataclass(frozen=True, slots=True)
class Learned:
    """A claim's outcome; `fact_id` is None for one that was refused."""

    statement: str
    outcome: Outcome
    fact_id: int | None
