"""What a provider of memory is: a source that is asked during a turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from memory.types import RecallItem
from recall.types import Found
from workspaces.settings import Effective
from workspaces.types import BucketRef, Reach


@dataclass(frozen=True, slots=True)
class Asked:
    """What a provider is asked: whose turn it is, what may be read, the message, and the settings in force.

    `found` is what the one search of the turn has found, best first: the product's own providers are legs of it.
    `conversation` is the id of the one that is going on; what was said there stands in the prompt already.
    """

    own: BucketRef | None
    reach: Reach
    query: str
    settings: Effective
    found: tuple[Found, ...] = field(default=())
    conversation: int | None = None


class Provider(Protocol):
    """A source of memory. Hooks that a provider does not need it leaves out."""

    name: str

    def prefetch(self, asked: Asked) -> list[RecallItem]:
        """What may help with this message, best first. Opens its own `tenant(…)`."""
