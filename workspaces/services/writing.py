"""What every write of a file says of itself: who wrote, and what it did."""

from __future__ import annotations

from dataclasses import dataclass, field

from workspaces.types import AuthorKind


@dataclass(frozen=True, slots=True)
class Author:
    """Who writes, and why. `actor` as in the audit trail: `user:3`, `token:5`, `agent:7`, `job:extract`."""

    kind: AuthorKind
    actor: str
    reason: str = ""
    run_id: int | None = None
    address: str = ""


@dataclass(frozen=True, slots=True)
class Written:
    """What a write did. `cut` is what the ceiling left out, `notes` what the guards did, in words."""

    file_id: int
    name: str
    revision: int
    before: str
    content: str
    is_new: bool
    is_changed: bool
    warnings: tuple[str, ...] = ()
    cut: str = ""
    notes: tuple[str, ...] = field(default=())
    base: int = 0
