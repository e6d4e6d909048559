"""Tools that read and write memory files and search what was said."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Final, Literal

from pydantic import Field

from memory.models import Conversation, Message
from memory.queries import conversations_of
from memory.tools.base import (
    MAX_HITS,
    AgentTool,
    Arguments,
    Moment,
    Result,
    Text,
    ToolRun,
    error_told,
    place_of,
    whose,
)
from memory.types import RecallItem
from recall.types import RecordKind
from workspaces.errors import NotFound
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
from workspaces.services.files import Written, edit_file, rewrite_file, write_file
from workspaces.tenancy import release_connection, tenant
from workspaces.types import BucketRef, Reach, Scope

MAX_LISTED: Final = 200
"""Files that one list shows."""
MAX_READ_CHARS: Final = 100_000
"""Characters of a file that one read shows: about a fifth of a usual context window."""
MAX_MESSAGE_CHARS: Final = 2000
"""Characters of a message that is found: as many as extraction reads of it."""
_PREFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    "all": (),
    "memory": (MEMORY, "memory/", "archive/", "structured/"),
    "profile": (PROFILE,),
    "persona": (AGENTS, SOUL),
}

# --- what a model sends -----------------------------------------------------------------------------------


class ListArguments(Arguments):
    filename_prefix: Annotated[Text, Field(max_length=MAX_NAME_CHARS)] | None = Field(
        None, description="Only files whose names begin so, e.g. `memory/`."
    )


class ReadArguments(Arguments):
    filename: Text = Field(description="Such as `MEMORY.md` or `memory/2026-01-31.md`.")


class WriteArguments(ReadArguments):
    content: Text = Field(description="The whole new content, in markdown.")


class EditArguments(ReadArguments):
    old_text: Text = Field(description="The text to replace, exactly as it stands in the file.")
    new_text: Text = Field(description="What to put in its place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence, not only a single one.")


class SessionArguments(Arguments):
    mode: Literal["recent", "search"] = Field(
        "search", description="`recent` lists the latest; it takes no query."
    )
    query: Text | None = Field(
        None, description="What was said; its meaning counts.", max_length=MAX_QUERY_CHARS
    )
    limit: int = Field(10, description=f"Results, at most {MAX_HITS}.")
    since: Moment | None = Field(None, description="Only what was said at this moment or later.")
    until: Moment | None = Field(None, description="Only what was said before this moment.")


class SearchArguments(Arguments):
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
        **whose(bucket),
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
                f"{name} is not in the memory that you write, but in {place_of(Scope(shown.bucket.scope))}, "
                f"which stays as it is. Write a new {name} with what holds for this person.",
            ) from missing
    if not written.is_changed:
        return error_told(" ".join(("Nothing was changed.", *written.notes)))
    if run.seen.get(name) == written.revision - 1:
        run.seen[name] = written.revision
    return {
        "agentId": run.agent_id,
        "filename": name,
        "replacements": places,
        "replaceAll": given.replace_all,
        "fileSizeAfter": len(written.content.encode()),
        **whose(bucket),
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
        return error_told("Say what to search for in `query`, or ask for the mode `recent`.")
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


def _message(written: Written, bucket: BucketRef) -> str:
    done = "Saved to" if written.is_changed else "Nothing new for"
    return " ".join((f"{done} {place_of(bucket.scope)}.", *written.notes, *written.warnings))


FILE_TOOLS: Final = (
    AgentTool(
        "list_workspace_memory_files",
        "Lists your memory files: this person's own (PERSONAL), shared (TEAM) and common to all (GLOBAL).",
        ListArguments,
        _list_files,
    ),
    AgentTool(
        "read_workspace_memory_file",
        "Reads one whole memory file; this person's own before the shared one of the same name.",
        ReadArguments,
        _read_file,
    ),
    AgentTool(
        "write_workspace_memory_file",
        "Writes a whole memory file of this person, replacing what it held. Read it first.",
        WriteArguments,
        _write_file,
        writes=True,
    ),
    AgentTool(
        "edit_workspace_memory_file",
        "Replaces one passage of a memory file of this person. Prefer it to writing the whole file.",
        EditArguments,
        _edit_file,
        writes=True,
    ),
    AgentTool(
        "search_workspace_memory",
        "Finds lines of your memory files by keyword, best first, with file name and line number.",
        SearchArguments,
        _search,
    ),
    AgentTool(
        "session_search",
        "Finds what this person and you said in earlier conversations, best first, with day and speaker.",
        SessionArguments,
        _search_sessions,
    ),
)
