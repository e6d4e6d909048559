"""What a provider of memory is: a source that is asked during a turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memory.types import RecallItem
from workspaces.settings import Effective
from workspaces.types import BucketRef, Reach


@dataclass(frozen=True, slots=True)
class Asked:
    """What a provider is asked: whose turn it is, what may be read, the message, and the settings in force."""

    own: BucketRef | None
    reach: Reach
    query: str
    settings: Effective


class Provider(Protocol):
    """A source of memory. Hooks that a provider does not need it leaves out."""

    name: str

    def prefetch(self, asked: Asked) -> list[RecallItem]:
        """What may help with this message, best first. Opens its own `tenant(…)`."""
