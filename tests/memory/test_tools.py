"""The agent's file tools: bound to one agent and one owner, and never a crash."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from memory.services.recall import search_memory
from memory.tools import AGENT_TOOLS, MAX_READ_CHARS, ToolRun, agent_tools
from tests import factories
from tests.factories import World
from tests.memory.test_extract import open_as, tell
from workspaces.access import open_personal, principal_of_user
from workspaces.models import File, Revision, SettingOverride
from workspaces.services.files import Author, write_file
from workspaces.settings import effective
from workspaces.tenancy import tenant, workspace
from workspaces.types import AuthorKind, BucketRef

Call = Callable[..., dict[str, Any]]
BORN = Path(__file__).resolve().parents[2] / "workspaces" / "born"
PERSON = Author(AuthorKind.PERSON, "user:1")
PROGRAM = Author(AuthorKind.PROGRAM, "token:1")


@pytest.fixture
def world(committed: None) -> World:
    """Tools commit, since they run in threads of their own."""
    return factories.acme()


def run_of(world: World, person: str = "vera") -> ToolRun:
    """The run of that person's turn with the agent."""
    principal = principal_of_user(world.people[person].user, workspace_id=world.workspace.pk, address="")
    opened = open_personal(principal, world.agent_id, end_user_id=None, writes=True, works=True)
    with tenant(opened.reach):
        return ToolRun.of(
            opened, settings=effective(world.workspace.pk, world.agent_id), search=search_memory
        )


def of_end_user(world: World, who: str) -> ToolRun:
    """The run of an end user's turn."""
    opened = open_as(world, who)
    with tenant(opened.reach):
        return ToolRun.of(
            opened, settings=effective(world.workspace.pk, world.agent_id), search=search_memory
        )


def tools_of(run: ToolRun) -> dict[str, Call]:
    return {tool.name.removesuffix("_workspace_memory_file"): tool.function for tool in agent_tools(run)}


def stored(bucket: BucketRef, name: str, content: str, author: Author = PERSON) -> None:
    with tenant(bucket):
        write_file(bucket, name, content, author=author)


def content_of(bucket: BucketRef, name: str) -> str:
    with tenant(bucket):
        return str(File.objects.of(bucket).get(name=name).content)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_born_rules_name_every_tool(language: str):
    rules = (BORN / language / "AGENTS.md").read_text("utf-8")
    assert [tool.name for tool in AGENT_TOOLS if f"`{tool.name}`" not in rules] == []


def test_the_schemas_show_a_model_the_names_it_must_send(world: World):
    shown = {tool.name: tool.tool_def.parameters_json_schema for tool in agent_tools(run_of(world))}
    assert {name: (list(one["properties"]), one.get("required", [])) for name, one in shown.items()} == {
        "list_workspace_memory_files": (["agentId", "filenamePrefix"], []),
        "read_workspace_memory_file": (["agentId", "filename"], ["filename"]),
        "write_workspace_memory_file": (["agentId", "filename", "content"], ["filename", "content"]),
        "edit_workspace_memory_file": (
            ["agentId", "filename", "oldText", "newText", "replaceAll"],
            ["filename", "oldText", "newText"],
        ),
        "search_workspace_memory": (["agentId", "query", "scope", "limit"], ["query"]),
        "session_search": (["agentId", "mode", "query", "limit", "since", "until"], []),
        "remember": (["agentId", "content", "source"], ["content"]),
        "remember_structured": (["agentId", "type", "key", "content"], ["type", "key", "content"]),
        "recall_structured": (["agentId", "type", "keyword"], []),
        "forget_structured": (["agentId", "type", "key"], ["type", "key"]),
        "fact_query": (["agentId", "query", "category", "asOf", "includeHistory", "limit"], []),
    }


def test_an_agent_writes_reads_edits_lists_and_finds_its_owner_s_memory(world: World):
    run = run_of(world)
    tools, agent = tools_of(run), world.agent_id
    own = world.personal(world.vera.owner_key)
    written = tools["write"](agentId=agent, filename="memory/2026-01-31.md", content="# Day\n- Likes tea.\n")
    assert written == {
        "agentId": agent,
        "filename": "memory/2026-01-31.md",
        "created": True,
        "overwritten": False,
        "enabled": False,
        "bytesWritten": 19,
        "scope": "PERSONAL",
        "ownerKey": world.vera.owner_key,
        "message": "Saved to this person's own memory.",
    }
    edited = tools["edit"](
        agentId=str(agent), filename="memory/2026-01-31.md", oldText="tea", newText="coffee"
    )
    assert (edited["replacements"], edited["fileSizeAfter"]) == (1, 22)
    read = tools["read"](filename="memory/2026-01-31.md")
    assert (read["content"], read["enabled"], read["fileSize"]) == ("# Day\n- Likes coffee.\n", False, 22)
    listed = tools["list_workspace_memory_files"](agentId=agent, filenamePrefix="memory/")
    assert (listed["count"], listed["files"][0]["filename"], listed["files"][0]["fileSize"]) == (
        1,
        "memory/2026-01-31.md",
        22,
    )
    found = tools["search_workspace_memory"](agentId=agent, query="coffee")
    assert [(hit["filename"], hit["lineNumber"], hit["snippet"]) for hit in found["hits"]] == [
        ("memory/2026-01-31.md", 2, "- Likes [[coffee]].")
    ]
    with tenant(own):
        authors = set(Revision.objects.of(own).values_list("author_kind", "actor"))
    assert authors == {("machine", f"agent:{agent}")}


@pytest.mark.parametrize("tool", [tool.name for tool in AGENT_TOOLS])
def test_another_agent_s_id_is_an_error_and_not_an_order(world: World, tool: str):
    run = run_of(world)
    call: Call = next(one.function for one in agent_tools(run) if one.name == tool)
    sent = {
        "filename": "X.md", "content": "x", "oldText": "a", "newText": "b", "query": "x", "filenamePrefix": "",
        "type": "user", "key": "x", "text": "x"
    }  # fmt: skip
    known = next(one for one in AGENT_TOOLS if one.name == tool).arguments.model_json_schema()["properties"]
    arguments = {name: value for name, value in sent.items() if name in known}
    for other in (world.agent_id + 1, str(world.agent_id + 1), "mate"):
        answer = call(agentId=other, **arguments)
        assert answer["error"] is True
        assert str(world.agent_id) in answer["message"]


def test_one_owner_s_tools_see_nothing_of_another(world: World):
    stored(world.personal(world.bob.owner_key), "SECRET.md", "The zeppelin is his.\n")
    tools = tools_of(run_of(world))
    assert tools["read"](filename="SECRET.md") == {"error": True, "message": "There is no file 'SECRET.md'."}
    assert tools["edit"](filename="SECRET.md", oldText="his", newText="hers")["error"] is True
    assert tools["search_workspace_memory"](query="zeppelin")["hits"] == []
    assert "SECRET.md" not in str(tools["list_workspace_memory_files"]())


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("read", {"filename": "../x.md"}, "'..'"),
        ("read", {"filename": "NONE.md"}, "no file"),
        ("read", {}, "filename"),
        ("read", {"filename": 7}, "string"),
        ("read", {"filename": "X.md", "path": "/"}, "path"),
        ("write", {"filename": "x.MD", "content": "x"}, ".md"),
        ("write", {"filename": "X.md", "content": "x" * (1024 * 1024 + 1)}, "1048576"),
        ("write", {"filename": "X.md", "content": "a\0b"}, "NUL"),
        ("edit", {"filename": "OWN.md", "oldText": "", "newText": "x"}, "empty"),
        ("edit", {"filename": "OWN.md", "oldText": "tea", "newText": "tea"}, "same"),
        ("edit", {"filename": "OWN.md", "oldText": "milk", "newText": "x"}, "does not hold"),
        ("edit", {"filename": "OWN.md", "oldText": "tea", "newText": "x"}, "2 times"),
        ("edit", {"filename": "SOUL.md", "oldText": "x", "newText": "y"}, "the shared memory"),
        ("search_workspace_memory", {"query": " "}, "query"),
        ("search_workspace_memory", {"query": "x", "scope": "others"}, "scope"),
    ],
)
def test_what_a_model_gets_wrong_is_told_and_not_raised(
    world: World, tool: str, arguments: dict[str, Any], told: str
):
    stored(world.personal(world.vera.owner_key), "OWN.md", "tea and tea\n", PROGRAM)
    answer = tools_of(run_of(world))[tool](**arguments)
    assert answer["error"] is True
    assert told in answer["message"]


MIB = 1024 * 1024
RIGHT = {
    "agentId": None,
    "filenamePrefix": "",
    "filename": "OWN.md",
    "content": "x",
    "oldText": "tea",
    "newText": "coffee",
    "replaceAll": True,
    "query": "tea",
    "scope": "all",
    "limit": 3,
}
HOSTILE = {
    "NUL": "a\0b",
    "half a pair": "a\ud83d",
    "long": "x" * (MIB + 1),
    "bytes": b"\xff",
    "list": ["x"],
    "object": {"a\ud83d": "\0"},
    "fraction": 1.5,
    "not a number": float("nan"),
    "endless": float("inf"),
}


def parameters() -> list[tuple[str, str, str]]:
    return [
        (tool.name, argument, what)
        for tool in AGENT_TOOLS
        for argument in tool.arguments.model_json_schema()["properties"]
        for what in HOSTILE
    ]


def test_no_argument_of_any_tool_makes_it_raise(world: World):
    """Whatever it is, the answer is an error that can be sent to a model."""
    stored(world.personal(world.vera.owner_key), "OWN.md", "tea\n", PROGRAM)
    tools: dict[str, Call] = {tool.name: tool.function for tool in agent_tools(run_of(world))}
    raised, silent = [], []
    for tool, argument, what in parameters():
        known = next(one for one in AGENT_TOOLS if one.name == tool).arguments.model_json_schema()[
            "properties"
        ]
        sent = {name: value for name, value in RIGHT.items() if name in known} | {argument: HOSTILE[what]}
        try:
            answer = tools[tool](**sent)
        except Exception as error:  # noqa: BLE001 - told by the test
            raised.append((tool, argument, what, repr(error)[:200]))
            continue
        told = json.dumps(answer, ensure_ascii=False).encode()
        if not answer.get("error") or len(told) > 10_000:
            silent.append((tool, argument, what, told[:200]))
    assert (raised, silent) == ([], [])
    assert content_of(world.personal(world.vera.owner_key), "OWN.md") == "tea\n"


@pytest.mark.parametrize("name", ["a\0b", "a\ud83d", "x" * MIB, "run", "tool", "self", ""])
def test_an_argument_that_no_tool_has_is_an_error(world: World, name: str):
    calls: list[Call] = [tool.function for tool in agent_tools(run_of(world))]
    for call in calls:
        answer = call(**{name: "x"})
        assert answer["error"] is True
        assert len(json.dumps(answer, ensure_ascii=False).encode()) < 10_000


def test_numbers_beyond_all_measure_are_taken_for_what_they_are(world: World):
    tools = tools_of(run_of(world))
    assert tools["search_workspace_memory"](query="tea", limit=10**5000)["hits"] == []
    assert tools["read"](filename="AGENTS.md", agentId=10**5000)["error"] is True
    assert tools["read"](filename="AGENTS.md", agentId=f" {world.agent_id} ")["filename"] == "AGENTS.md"


def test_a_write_keeps_what_came_after_the_read(world: World):
    own = world.personal(world.vera.owner_key)
    stored(own, "MEMORY.md", "# M\n- one\n- two\n- three\n", PROGRAM)
    tools = tools_of(run_of(world))
    tools["read"](filename="MEMORY.md")
    stored(own, "MEMORY.md", "# M\n- one\n- two\n- three\n\n## New\n- From a colleague.\n", PROGRAM)
    answer = tools["write"](filename="MEMORY.md", content="# M\n- one, better\n- two\n- three\n")
    assert answer["overwritten"] is True
    assert "Merged" in answer["message"]
    kept = content_of(own, "MEMORY.md")
    assert "- one, better" in kept
    assert "- From a colleague." in kept


def test_a_write_of_more_than_a_file_holds_is_refused_also_after_a_read(world: World):
    own = world.personal(world.vera.owner_key)
    stored(own, "MEMORY.md", "# M\n- one\n", PROGRAM)
    tools = tools_of(run_of(world))
    tools["read"](filename="MEMORY.md")
    answer = tools["write"](filename="MEMORY.md", content="x" * (MIB + 1))
    assert answer["error"] is True
    assert "1048576" in answer["message"]
    assert content_of(own, "MEMORY.md") == "# M\n- one\n"


def test_an_edit_of_a_person_s_section_changes_nothing_and_says_so(world: World):
    own = world.personal(world.vera.owner_key)
    stored(own, "MEMORY.md", "# M\n\n## Rules\n- Never before noon.\n")
    answer = tools_of(run_of(world))["edit"](filename="MEMORY.md", oldText="noon", newText="ten")
    assert answer["error"] is True
    assert "Rules" in answer["message"]
    assert content_of(own, "MEMORY.md") == "# M\n\n## Rules\n- Never before noon.\n"


def test_the_ceilings_hold_for_tools(world: World):
    with workspace(world.workspace.pk):
        SettingOverride.objects.create(
            workspace_id=world.workspace.pk,
            key="mate.memory.profile-max-chars",
            value=200,
            updated_at=world.workspace.created_at,
        )
    run = run_of(world)
    long = "# P\n\n## A\n" + "- a\n" * 20 + "\n## B\n" + "- b\n" * 40
    answer = tools_of(run)["write"](filename="PROFILE.md", content=long)
    own = world.personal(world.vera.owner_key)
    assert len(content_of(own, "PROFILE.md")) <= 200
    assert "archive/PROFILE.md" in answer["message"]
    assert "- b" in content_of(own, "archive/PROFILE.md")


def test_a_very_long_file_is_shown_in_part_and_the_tool_says_so(world: World):
    stored(world.personal(world.vera.owner_key), "BIG.md", "x" * (MAX_READ_CHARS + 1))
    run = run_of(world)
    answer = tools_of(run)["read"](filename="BIG.md")
    assert len(answer["content"]) == MAX_READ_CHARS
    assert "hint" in answer
    assert "BIG.md" not in run.seen


def test_a_search_stays_within_its_scope_and_limit(world: World):
    own = world.personal(world.vera.owner_key)
    stored(own, "PROFILE.md", "喜欢乌龙茶\n")
    stored(own, "memory/2026-01-31.md", "".join(f"喝了乌龙茶 {number}\n" for number in range(9)))
    search = tools_of(run_of(world))["search_workspace_memory"]
    assert {hit["filename"] for hit in search(query="乌龙茶", scope="profile")["hits"]} == {"PROFILE.md"}
    assert {hit["filename"] for hit in search(query="乌龙茶", scope="memory")["hits"]} == {
        "memory/2026-01-31.md"
    }
    assert len(search(query="乌龙茶", limit=2)["hits"]) == 2
    assert len(search(query="乌龙茶", limit=10_000)["hits"]) == 6
    assert "hint" in search(query="咖啡")


def test_a_model_calls_the_tools_through_the_runtime(world: World):
    """In threads of the runtime, and an error comes back as a result that the model reads."""
    tools = agent_tools(run_of(world))
    seen: list[Any] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.extend(part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart))
        if not seen:
            return ModelResponse(
                [
                    ToolCallPart("write_workspace_memory_file", {"filename": "A.md", "content": "tea\n"}),
                    ToolCallPart("read_workspace_memory_file", {"agentId": "0", "filename": "A.md"}),
                    ToolCallPart("search_workspace_memory", {"query": "tea", "limit": "three"}),
                ]
            )
        return ModelResponse([TextPart("Done.")])

    answer = asyncio.run(Agent(FunctionModel(model), tools=tools).run("Remember that I like tea."))
    assert answer.output == "Done."
    assert [one.get("error", False) for one in seen] == [False, True, True]
    assert content_of(world.personal(world.vera.owner_key), "A.md") == "tea\n"


def test_sessions_are_searched_by_their_words_and_listed_by_their_time(world):
    tell(world, ("I keep bees in the garden.", "How nice."), conversation="c1", who="nora")
    tell(world, ("My sister studies law.", "Where?"), conversation="c2", who="nora")
    tell(world, ("I keep bees on the roof.", "Oh."), conversation="c3", who="sven")
    run = of_end_user(world, "nora")
    search = tools_of(run)["session_search"]
    found = search(query="Where are the bees?")
    assert found["matches"][0]["snippet"] == "I keep bees in the garden."
    assert found["matches"][0]["conversationId"] == "c1"
    assert {match["conversationId"] for match in found["matches"]} <= {"c1", "c2"}
    recent = search(mode="recent", limit=5)
    assert [one["conversationId"] for one in recent["sessions"]] == ["c2", "c1"]
    assert recent["sessions"][0]["messageCount"] == 2
    assert search(query="law", until="2001-01-01T00:00:00Z")["count"] == 0
    assert search(query=" ")["error"]
    assert search(mode="old")["error"]
    assert "other agents" in search(query="bees", agentId=999)["message"]
