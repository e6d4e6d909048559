"""Values of the recall app."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


class RecordKind(StrEnum):
    """What a record stands for."""

    MESSAGE = "message"
    FILE = "file"
    ENTRY = "entry"
    FACT = "fact"


@dataclass(frozen=True, slots=True)
class Unit:
    """One recallable unit, as it is put into the index.

    `source_id` and `part` name it within its kind; records of one `thread` with next `position`s are
    neighbours; one without a thread has none.
    Of several with one `root`, recall shows one: the higher ranked. The text itself is not kept, only its lexemes.
    `trust` is what it was at `trusted_at`, and decays from then on; without that moment it stays as it is.
    """

    kind: RecordKind
    source_id: int
    part: int
    text: str
    thread: int | None
    position: int
    speaker: str = ""
    at: datetime | None = None
    trust: float | None = None
    trusted_at: datetime | None = None
    root: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """A record in its place. `why` adds up to `score`, which compares only within one search."""

    record_id: int
    bucket_id: int
    kind: RecordKind
    source_id: int
    part: int
    content_hash: str
    score: float
    why: dict[str, float]
