"""The agent's memory tools for one run, bound to the run's agent and owner.

A tool never raises for what the model got wrong: it answers `{"error": true, "message": …}`, which the model
can act on. Each call opens its own transaction and gives its thread's database connection back, since the
runtime calls tools in threads of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any, ClassVar, Final, Literal, Protocol

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

from memory.models import Conversation, Message
from memory.queries import conversations_of
from memory.types import OutsideTool, RecallItem
from recall.types import RecordKind
from workspaces.access import Opened
from workspaces.errors import DomainError, NotFound
from workspaces.file_queries import (
    base_of,
    cap_of,
    listed_files,
    matching_lines,
    search_candidates,
    shown_file,
)
from workspaces.logic.keyword import MAX_QUERY_CHARS
from workspaces.logic.names import AGENTS, MAX_NAME_CHARS, MEMORY, PROFILE, SOUL, check_content, clean_name
from workspaces.logic.texts import storable
from workspaces.services.files import Author, Written, edit_file, rewrite_file, write_file
from workspaces.settings import Effective
from workspaces.tenancy import release_connection, tenant
from workspaces.types import AuthorKind, BucketRef, Reach, Scope

MAX_LISTED: Final = 200
"""Files that one list shows."""
MAX_READ_CHARS: Final = 100_000
"""Characters of a file that one read shows: about a fifth of a usual context window."""
MAX_HITS: Final = 30
MAX_MESSAGE_CHARS: Final = 2000
"""Characters of a message that is found: as many as extraction reads of it."""
MAX_TOLD_CHARS: Final = 2000
"""Characters of an error: it may hold names that a model made up."""
_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "all": (),
    "memory": (MEMORY, "memory/", "archive/"),
    "profile": (PROFILE,),
    "persona": (AGENTS, SOUL),
}

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


# --- what a model sends -----------------------------------------------------------------------------------


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


class _Arguments(BaseModel):
    """What every tool takes. The agent is known from the run; a model that names another is told so."""

    model_config: ClassVar[ConfigDict] = ConfigDict(
        alias_generator=AliasGenerator(alias=to_camel), extra="forbid"
    )
    agent_id: int | str | None = Field(None, description="Your own agent id; may be left out.")


class ListArguments(_Arguments):
    filename_prefix: Annotated[Text, Field(max_length=MAX_NAME_CHARS)] | None = Field(
        None, description="Only files whose names begin so, e.g. `memory/`."
    )


class ReadArguments(_Arguments):
    filename: Text = Field(description="Such as `MEMORY.md` or `memory/2026-01-31.md`.")


class WriteArguments(ReadArguments):
    content: Text = Field(description="The whole new content, in markdown.")


class EditArguments(ReadArguments):
    old_text: Text = Field(description="The text to replace, exactly as it stands in the file.")
    new_text: Text = Field(description="What to put in its place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence, not only a single one.")


class SessionArguments(_Arguments):
    mode: Literal["recent", "search"] = Field(
        "search", description="`recent` lists the latest; it takes no query."
    )
    query: Text | None = Field(
        None, description="What was said; its meaning counts.", max_length=MAX_QUERY_CHARS
    )
    limit: int = Field(10, description=f"Results, at most {MAX_HITS}.")
    since: Moment | None = Field(None, description="Only what was said at this moment or later.")
    until: Moment | None = Field(None, description="Only what was said before this moment.")


class SearchArguments(_Arguments):
    query: Text = Field(description="Keywords; any of them may match.", max_length=MAX_QUERY_CHARS)
    scope: Literal["all", "memory", "profile", "persona"] = "all"
    limit: int = Field(10, description=f"Hits, at most {MAX_HITS}.")


# --- what the tools do ------------------------------------------------------------------------------------


def _list_files(run: ToolRun, given: ListArguments) -> Result:
    with tenant(run.opened.reach):
        rows = listed_files(run.opened, prefix=given.filename_prefix or "")
        count = rows.count()
        files = [
            {
                "filename": file.name,
                "enabled": file.enabled,
                "fileSize": file.size,
                "updateTime": file.updated_at.isoformat(),
                "scope": file.bucket.scope,
            }
            for file in rows[:MAX_LISTED]
        ]
    answer: Result = {"agentId": run.agent_id, "count": count, "files": files}
    if count > len(files):
        answer["hint"] = f"Only the first {len(files)} are shown; narrow it with filenamePrefix."
    return answer


def _read_file(run: ToolRun, given: ReadArguments) -> Result:
    with tenant(run.opened.reach):
        file = shown_file(run.opened, given.filename)
        base = base_of(run.opened, file)
    content = file.content[:MAX_READ_CHARS]
    answer: Result = {
        "agentId": run.agent_id,
        "filename": file.name,
        "enabled": file.enabled,
        "fileSize": file.size,
        "content": content,
        "updateTime": file.updated_at.isoformat(),
        "scope": file.bucket.scope,
    }
    if len(content) < len(file.content):
        answer["hint"] = f"Only the first {MAX_READ_CHARS} characters are shown; search for the rest."
    else:
        run.seen[file.name] = base
    return answer


def _write_file(run: ToolRun, given: WriteArguments) -> Result:
    name, bucket, content = clean_name(given.filename), run.opened.writable(), check_content(given.content)
    author, cap = run.author(), cap_of(name, run.settings)
    read = run.seen.get(name)
    with tenant(run.opened.reach):
        if read is None:
            written = write_file(bucket, name, content, author=author, cap=cap)
        else:
            written = rewrite_file(bucket, name, content, read_revision=read, author=author, cap=cap)
        is_enabled = shown_file(run.opened, name).enabled
    run.seen[name] = written.revision
    return {
        "agentId": run.agent_id,
        "filename": name,
        "created": written.is_new,
        "overwritten": not written.is_new and written.is_changed,
        "enabled": is_enabled,
        "bytesWritten": len(written.content.encode()),
        **_whose(bucket),
        "message": _message(written, bucket),
    }


def _edit_file(run: ToolRun, given: EditArguments) -> Result:
    name, bucket = clean_name(given.filename), run.opened.writable()
    with tenant(run.opened.reach):
        try:
            written, places = edit_file(
                bucket,
                name,
                given.old_text,
                given.new_text,
                author=run.author(),
                replace_all=given.replace_all,
                cap=cap_of(name, run.settings),
            )
        except NotFound as missing:
            shown = shown_file(run.opened, name)
            raise NotFound(
                missing.code,
                f"{name} is not in the memory that you write, but in {_place_of(Scope(shown.bucket.scope))}, "
                f"which stays as it is. Write a new {name} with what holds for this person.",
            ) from missing
    if not written.is_changed:
        return _error(" ".join(("Nothing was changed.", *written.notes)))
    if run.seen.get(name) == written.revision - 1:
        run.seen[name] = written.revision
    return {
        "agentId": run.agent_id,
        "filename": name,
        "replacements": places,
        "replaceAll": given.replace_all,
        "fileSizeAfter": len(written.content.encode()),
        **_whose(bucket),
        "message": _message(written, bucket),
    }


def _search(run: ToolRun, given: SearchArguments) -> Result:
    with tenant(run.opened.reach):
        candidates = search_candidates(run.opened, given.query, prefixes=_PREFIXES[given.scope])
    release_connection()
    lines = matching_lines(candidates, given.query, limit=min(max(given.limit, 1), MAX_HITS))
    answer: Result = {
        "agentId": run.agent_id,
        "query": given.query,
        "scope": given.scope,
        "totalHits": len(lines),
        "hits": [
            {
                "filename": one.name,
                "scope": one.scope.value,
                "lineNumber": one.line,
                "snippet": one.snippet,
                "score": one.score,
            }
            for one in lines
        ],
    }
    if not lines:
        answer["hint"] = "Nothing matches. Try other words, fewer of them, or the other language."
    return answer


def _search_sessions(run: ToolRun, given: SessionArguments) -> Result:
    """Only what this person and the agent said: the person's own bucket, no shared one."""
    own = run.opened.personal()
    limit = min(max(given.limit, 1), MAX_HITS)
    mine = replace(run.opened, reach=Reach(own.workspace_id, (own.id,)))
    if given.mode == "recent":
        with tenant(mine.reach):
            sessions = [_session(row) for row in conversations_of(own)[:limit]]
        return {"mode": "recent", "count": len(sessions), "sessions": sessions}
    if not (given.query or "").strip():
        return _error("Say what to search for in `query`, or ask for the mode `recent`.")
    found, reason = run.search(
        mine,
        query=str(given.query),
        limit=limit,
        kinds=[RecordKind.MESSAGE],
        since=given.since,
        until=given.until,
    )
    with tenant(mine.reach):
        rows = {
            row.pk: row
            for row in Message.objects.of(own)
            .filter(pk__in=[item.record_source for item in found])
            .select_related("conversation")
        }
    matches = [_match(rows[pk], item) for item in found if (pk := item.record_source) in rows]
    told = {"mode": "search", "query": given.query, "count": len(matches), "matches": matches}
    return told | ({"note": reason} if reason else {})


def _session(row: Conversation) -> Result:
    return {
        "conversationId": row.external_id,
        "title": row.title,
        "messageCount": row.length,
        "lastActiveTime": row.last_at.isoformat(),
        "createTime": row.created_at.isoformat(),
    }


def _match(row: Message, item: RecallItem) -> Result:
    return {
        "conversationId": row.conversation.external_id,
        "title": row.conversation.title,
        "role": row.role,
        "speaker": item.speaker,
        "snippet": row.content[:MAX_MESSAGE_CHARS],
        "time": row.at.isoformat(),
    }


def _whose(bucket: BucketRef) -> Result:
    return {"scope": bucket.scope.value, "ownerKey": bucket.owner_key}


def _place_of(scope: Scope) -> str:
    if scope is Scope.PERSONAL:
        return "this person's own memory"
    return "the shared memory" if scope is Scope.TEAM else "the memory of the whole installation"


def _message(written: Written, bucket: BucketRef) -> str:
    done = "Saved to" if written.is_changed else "Nothing new for"
    return " ".join((f"{done} {_place_of(bucket.scope)}.", *written.notes, *written.warnings))


# --- as the runtime calls them ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _AgentTool:
    """A tool before it is bound to a run. One that writes never runs beside another."""

    name: str
    description: str
    arguments: type[_Arguments]
    work: Callable[[ToolRun, Any], Result]
    writes: bool = False

    def bound(self, run: ToolRun) -> Tool[Any]:
        def call(**arguments: Any) -> Result:
            return _called(self, run, arguments)

        schema = self.arguments.model_json_schema()
        return Tool.from_schema(call, self.name, self.description, schema, sequential=self.writes)


AGENT_TOOLS: Final = (
    _AgentTool(
        "list_workspace_memory_files",
        "Lists your memory files: this person's own (PERSONAL), shared (TEAM) and common to all (GLOBAL).",
        ListArguments,
        _list_files,
    ),
    _AgentTool(
        "read_workspace_memory_file",
        "Reads one whole memory file; this person's own before the shared one of the same name.",
        ReadArguments,
        _read_file,
    ),
    _AgentTool(
        "write_workspace_memory_file",
        "Writes a whole memory file of this person, replacing what it held. Read it first.",
        WriteArguments,
        _write_file,
        writes=True,
    ),
    _AgentTool(
        "edit_workspace_memory_file",
        "Replaces one passage of a memory file of this person. Prefer it to writing the whole file.",
        EditArguments,
        _edit_file,
        writes=True,
    ),
    _AgentTool(
        "search_workspace_memory",
        "Finds lines of your memory files by keyword, best first, with file name and line number.",
        SearchArguments,
        _search,
    ),
    _AgentTool(
        "session_search",
        "Finds what this person and you said in earlier conversations, best first, with day and speaker.",
        SessionArguments,
        _search_sessions,
    ),
)


def agent_tools(run: ToolRun) -> list[Tool[Any]]:
    """The tools for that run."""
    return [tool.bound(run) for tool in AGENT_TOOLS]


def outside_tools(given: Sequence[OutsideTool], *, taken: Collection[str]) -> list[Tool[Any]]:
    """The tools that plugins give for a turn; one whose name is taken is left out, ours come first."""
    tools: dict[str, Tool[Any]] = {}
    for one in given:
        if one.name not in taken and one.name not in tools:
            tools[one.name] = _outside(one)
    return list(tools.values())


def _outside(given: OutsideTool) -> Tool[Any]:
    def call(**arguments: Any) -> Any:
        return given.call(arguments)

    return Tool.from_schema(call, given.name, given.description, dict(given.parameters))


def _called(tool: _AgentTool, run: ToolRun, arguments: Mapping[str, Any]) -> Result:
    """One call of a tool, from what a model sent to what it is told. Outside any transaction."""
    try:
        given = tool.arguments.model_validate(arguments)
        if not _is_own(run, given.agent_id):
            return _error(f"You are agent {run.agent_id}; the files of other agents are not yours.")
        return tool.work(run, given)
    except ValidationError as bad:
        told = (f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in bad.errors(include_url=False))
        return _error("; ".join(told))
    except DomainError as refused:
        return _error(refused.message)
    finally:
        release_connection()


def _is_own(run: ToolRun, agent_id: int | str | None) -> bool:
    if isinstance(agent_id, str):
        return agent_id.strip() == str(run.agent_id)
    return agent_id in {None, run.agent_id}


def _error(message: str) -> Result:
    return {"error": True, "message": storable(message[:MAX_TOLD_CHARS])}
