"""What every memory tool has: the run that it is bound to, how it reads a model's arguments, and how it fails.

A tool never raises for what the model got wrong: it answers `{"error": true, "message": …}`, which the model
can act on. Each call opens its own transaction and gives its thread's database connection back, since the
runtime calls tools in threads of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Protocol

from pydantic import (
    AfterValidator,
    AliasGenerator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)
from pydantic.alias_generators import to_camel
from pydantic_ai import Tool

from memory.types import RecallItem
from recall.types import RecordKind
from workspaces.access import Opened
from workspaces.errors import DomainError
from workspaces.logic.texts import storable
from workspaces.services.files import Author
from workspaces.settings import Effective
from workspaces.tenancy import release_connection
from workspaces.types import AuthorKind, BucketRef, Scope

MAX_HITS: Final = 30
MAX_TOLD_CHARS: Final = 2000
"""Characters of an error: it may hold names that a model made up."""

Result = dict[str, Any]


class Search(Protocol):
    """Recall, as `memory.services.recall.search_memory` does it."""

    def __call__(
        self,
        opened: Opened,
        *,
        query: str,
        limit: int,
        kinds: Sequence[RecordKind],
        since: datetime | None,
        until: datetime | None,
    ) -> tuple[list[RecallItem], str]: ...


@dataclass(frozen=True, slots=True)
class ToolRun:
    """Whose memory the tools of one run touch. `actor` is how traces name the agent.

    `seen` holds, for each file read in this run, the revision that a later write replaces.
    """

    opened: Opened
    settings: Effective
    actor: str
    search: Search
    seen: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, opened: Opened, *, settings: Effective, search: Search) -> ToolRun:
        """A run of the opened agent; `search` is how it recalls."""
        return cls(opened, settings, f"agent:{opened.agent.id}", search)

    @property
    def agent_id(self) -> int:
        """The only agent whose files the tools touch."""
        return self.opened.agent.id

    def author(self) -> Author:
        """Who the revisions name: a machine, so that nothing it wrote is taken for evidence."""
        return Author(AuthorKind.MACHINE, self.actor, reason="Written by the agent during a turn.")


def _plain(text: str) -> str:
    if storable(text) != text:
        raise ValueError("it holds a NUL character or half a surrogate pair; send plain text")
    return text


Text = Annotated[str, AfterValidator(_plain)]
"""A string that Postgres and JSON can hold."""


def _written(value: Any) -> Any:
    if not isinstance(value, str | datetime | None):
        raise ValueError(  # noqa: TRY004 - pydantic tells it to the model
            "write the moment as text, such as 2026-01-31T09:00:00Z"
        )
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written)]
"""A moment with its zone; a bare number is no moment."""


class Arguments(BaseModel):
    """What every tool takes. The agent is known from the run; a model that names another is told so."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(alias=to_camel), extra="forbid"
    )
    agent_id: int | str | None = Field(None, description="Your own agent id; may be left out.")


def whose(bucket: BucketRef) -> Result:
    return {"scope": bucket.scope.value, "ownerKey": bucket.owner_key}


def place_of(scope: Scope) -> str:
    if scope is Scope.PERSONAL:
        return "this person's own memory"
    return "the shared memory" if scope is Scope.TEAM else "the memory of the whole installation"


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A tool before it is bound to a run. One that writes never runs beside another."""

    name: str
    description: str
    arguments: type[Arguments]
    work: Callable[[ToolRun, Any], Result]
    writes: bool = False

    def bound(self, run: ToolRun) -> Tool[Any]:
        def call(**arguments: Any) -> Result:
            return _called(self, run, arguments)

        schema = self.arguments.model_json_schema()
        return Tool.from_schema(call, self.name, self.description, schema, sequential=self.writes)


def _called(tool: AgentTool, run: ToolRun, arguments: Mapping[str, Any]) -> Result:
    """One call of a tool, from what a model sent to what it is told. Outside any transaction."""
    try:
        given = tool.arguments.model_validate(arguments)
        if not _is_own(run, given.agent_id):
            return error_told(f"You are agent {run.agent_id}; the files of other agents are not yours.")
        return tool.work(run, given)
    except ValidationError as bad:
        told = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in bad.errors(include_url=False))
        return error_told("; ".join(told))
    except DomainError as refused:
        return error_told(refused.message)
    finally:
        release_connection()


def _is_own(run: ToolRun, agent_id: int | str | None) -> bool:
    if isinstance(agent_id, str):
        return agent_id.strip() == str(run.agent_id)
    return agent_id in {None, run.agent_id}


def error_told(message: str) -> Result:
    return {"error": True, "message": storable(message[:MAX_TOLD_CHARS])}
