"""What a provider of memory is: a source that is asked during a turn.

A provider has a name and the hooks that it needs, each a protocol of its own below; it leaves out the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from memory.types import RecallItem, SaidTurn
from recall.types import Found
from workspaces.settings import Effective
from workspaces.types import BucketRef, Reach


@dataclass(frozen=True, slots=True)
class Asked:
    """What a provider is asked: whose turn it is, what may be read, the message, and the settings in force.

    `found` is what the one search of the turn has found, best first, for the product's own providers, which are
    legs of it; plugins are asked while the search still runs. `own` is None where nothing is known of the person.
    `conversation` is the id of the one that is going on; what was said there stands in the prompt already.
    """

    own: BucketRef | None
    reach: Reach
    query: str
    settings: Effective
    found: tuple[Found, ...] = field(default=())
    conversation: int | None = None


@dataclass(frozen=True, slots=True)
class ProviderTool:
    """A tool that a provider gives the agent; the agent reads its name with the provider's before it.

    `parameters` is a JSON schema of an object, `call` gets what the model sent and answers what JSON holds.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    call: Callable[[Asked, Mapping[str, Any]], Any]


class Provider(Protocol):
    """A source of memory. All hooks may be called from several threads at once, and none inside a transaction."""

    name: str


@runtime_checkable
class Prefetches(Protocol):
    """Is asked for memory at each turn. A `timeout_ms` of the provider's own shortens the deadline."""

    def prefetch(self, asked: Asked) -> Iterable[RecallItem]:
        """What may help with this message, best first."""


@runtime_checkable
class TellsSystem(Protocol):
    """Says something in the system prompt of every turn."""

    def system_prompt_block(self) -> str:
        """What the agent should know of this source: the same text until the configuration changes.

        It is asked once for a configuration; nothing of a person or a message can stand in it.
        """


@runtime_checkable
class SyncsTurns(Protocol):
    """Is told what was said, after the turn, in the order of the person's turns."""

    def sync_turn(self, own: BucketRef, turn: SaidTurn) -> None:
        """Keeps the turn; raises when it could not, and is told again later, with the same key."""


@runtime_checkable
class GivesTools(Protocol):
    """Gives the agent tools."""

    def tools(self) -> Sequence[ProviderTool]:
        """The tools; asked once for a configuration."""
