"""POST /chat and the window: by rules, and with a model that speaks the real wire format."""

from __future__ import annotations

import json

import pytest
from asgiref.sync import async_to_sync
from django.utils import timezone

from memory.models import Conversation, Message, Turn
from memory.services import context as contexts
from memory.services.context import build_context
from memory.services.turns import record_turns
from memory.types import Incoming
from tests import factories
from tests.factories import World
from tests.stubs.openai_server import Fail, Say, StubServer, Use
from workspaces.access import open_personal, principal_of_token
from workspaces.models import File, ModelUsage, OutboxMessage
from workspaces.services.overrides import Editor, Place, set_override
from workspaces.tenancy import Door, door, tenant

WINDOW = "mate.agent.conversation.window."


@pytest.fixture
def model(settings):
    """A local server that speaks the real wire format; it fails on what is not scripted."""
    with StubServer([]) as stub:
        settings.MATE_MODEL = "openai:stub"
        settings.OPENAI_BASE_URL = stub.url
        yield stub


def ask(world: World, text: str, *, who: str | None = "nora", **more):
    body = {"agentId": world.agent_id, "message": text} | more
    if who:
        body["endUserId"] = who
    return world.bob.client().post("/api/v1/chat", body)


def opened_as(world: World, who="nora"):
    principal = principal_of_token(world.bob.token, address="", now=timezone.now())
    return open_personal(principal, world.agent_id, end_user_id=who, writes=True)


def turns() -> list[Turn]:
    with door(Door.OPERATOR):
        return list(Turn.unscoped.order_by("pk").select_related("answer", "question"))


def override(world: World, key: str, value) -> None:
    with door(Door.OPERATOR):
        set_override(Place(world.workspace.pk), key, value, by=Editor(world.alice.user.pk, "system"))


@pytest.mark.parametrize(
    ("bad", "status", "code"),
    [
        ({"message": ""}, 400, "invalid"),
        ({"message": "   "}, 400, "invalid"),
        ({"message": None}, 400, "invalid"),
        ({"message": 5}, 400, "invalid"),
        ({"message": "x" * 300_000}, 413, "message_too_large"),
        ({"message": "hi", "agentId": 999_999}, 404, "agent_not_found"),
        ({"message": "hi", "agentId": "one"}, 400, "invalid"),
        ({"message": "hi", "agentId": True}, 400, "invalid"),
        ({"message": "hi", "conversationId": "nowhere"}, 404, "conversation_not_found"),
        ({"message": "hi", "endUserId": 7}, 400, "invalid"),
        ({"message": "hi", "temperature": 1}, 400, "invalid"),
    ],
)
@pytest.mark.parametrize("route", ["/api/v1/chat", "/api/v1/chat/stream"])
def test_bad_input_is_refused_before_anything_is_stored(acme, bad, status, code, route):
    answer = acme.bob.client().post(route, {"agentId": acme.agent_id} | bad)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer["Content-Type"] == "application/problem+json"
    assert turns() == []


def test_without_an_agent_the_default_one_answers_and_ids_may_be_strings(acme):
    client = acme.bob.client()
    assert client.post("/api/v1/chat", {"message": "Hello, who are you?"}).status_code == 200
    assert (
        client.post("/api/v1/chat", {"message": "Hello?", "agentId": str(acme.agent_id)}).status_code == 200
    )


def test_a_conversation_goes_on_and_is_its_owners_only(acme):
    first = ask(acme, "Hello, I am new here.").json()
    assert ask(acme, "And again.", conversationId=first["conversationId"]).status_code == 200
    assert ask(acme, "Me too.", who="sven", conversationId=first["conversationId"]).status_code == 404
    assert ask(acme, "Me too.", who=None, conversationId=first["conversationId"]).status_code == 404


def test_the_prompt_has_its_order_and_recalled_text_is_fenced_in_the_users_message(acme, model):
    model.add(Say("Hi Nora."), Say("You eat no peanuts."))
    opened = opened_as(acme)
    from workspaces.services.files import Author, write_file
    from workspaces.types import AuthorKind

    with tenant(opened.reach):
        write_file(
            opened.own, "PROFILE.md", "- Allergic to peanuts\n", author=Author(AuthorKind.PERSON, "user:1")
        )
    first = ask(acme, "Hello there.").json()
    ask(acme, "What must I not eat?", conversationId=first["conversationId"])
    sent = model.requests[-1].body["messages"]
    assert sent[0]["role"] == "system"
    assert sent[0]["content"].index("--- AGENTS.md ---") < sent[0]["content"].index("--- MEMORY.md ---")
    assert "peanuts" not in sent[0]["content"]
    assert [one["role"] for one in sent[1:]] == ["user", "assistant", "user"]
    last = sent[-1]["content"]
    assert last.index("<memory-context") < last.index("peanuts") < last.index("</memory-context>")
    assert last.endswith("What must I not eat?")
    with door(Door.OPERATOR):
        question = Message.unscoped.filter(role="user").last()
    assert question.content == "What must I not eat?"


def test_the_system_prompt_is_the_same_bytes_every_turn_until_a_file_changes(acme, model):
    model.add(Say("a"), Say("b"), Say("c"))
    ask(acme, "Hello one.")
    ask(acme, "Hello two.", who="sven")
    path = f"/api/v1/agents/{acme.agent_id}/workspace/files/MEMORY.md"
    acme.alice.client().put(path, {"content": "# New\n", "bucket": "shared"})
    ask(acme, "Hello three.")
    systems = [one.body["messages"][0]["content"] for one in model.requests]
    assert systems[0] == systems[1] != systems[2]
    assert "# New" in systems[2]


def test_usage_and_cost_are_metered_under_the_tenant(acme, model):
    model.add(Say("Hi.", prompt_tokens=11, completion_tokens=3))
    answer = ask(acme, "Hello there.").json()
    assert answer["usage"] == {"inputTokens": 11, "outputTokens": 3}
    assert answer["model"] == "openai:stub"
    with door(Door.OPERATOR):
        [usage] = ModelUsage.unscoped.all()
    assert (usage.workspace_id, usage.purpose, usage.input_tokens) == (acme.workspace.pk, "chat", 11)


def test_the_agents_tools_write_for_this_person_only(committed, model):
    acme = factories.acme()
    arguments = {"agentId": acme.agent_id, "filename": "MEMORY.md", "content": "# Hers\n"}
    model.add(Say(tools=(Use("write_workspace_memory_file", arguments),)), Say("Written."))
    answer = ask(acme, "Write it down, please.").json()
    assert answer["reply"] == "Written."
    with door(Door.OPERATOR):
        [file] = File.unscoped.filter(content="# Hers\n").select_related("bucket__owner")
    assert file.bucket.owner.key == "api:nora"
    assert turns()[0].tools[0]["name"] == "write_workspace_memory_file"


def test_a_tool_call_for_another_agent_is_an_error_not_an_order(committed, model):
    acme, umbra = factories.acme(), factories.umbra()
    arguments = {"agentId": umbra.agent_id, "filename": "MEMORY.md"}
    model.add(Say(tools=(Use("read_workspace_memory_file", arguments),)), Say("I cannot."))
    assert ask(acme, "Read the other one's memory.").status_code == 200
    result = json.loads(model.requests[-1].body["messages"][-1]["content"])
    assert result["error"] is True


def test_a_model_that_fails_closes_the_turn_and_keeps_the_question(acme, model):
    model.add(Fail(500, message="kaput"))
    answer = ask(acme, "Hello there, model.")
    assert answer.status_code == 503
    assert answer.json()["code"] == "model_unavailable"
    [turn] = turns()
    assert (turn.status, turn.answer, turn.question.content) == ("failed", None, "Hello there, model.")
    with door(Door.OPERATOR):
        assert ModelUsage.unscoped.get().error == "unavailable"
        assert OutboxMessage.unscoped.filter(topic="memory.extract").exists()


def test_a_prompt_that_the_provider_finds_too_long_is_sent_once_more_with_the_last_turns(acme, model):
    opened = opened_as(acme)
    record_turns(
        opened,
        conversation_id="c1",
        source="api",
        messages=[
            Incoming(role="user" if n % 2 == 0 else "assistant", content=f"line {n}") for n in range(20)
        ],
    )
    model.add(Fail(400, code="context_length_exceeded", message="maximum context length"), Say("Short."))
    answer = ask(acme, "And now?", conversationId="c1").json()
    assert answer["reply"] == "Short."
    assert answer["window"]["dropped"] == 16
    sent = [one["content"] for one in model.requests[-1].body["messages"][1:]]
    assert sent[0] == "line 16"
    assert len(model.requests) == 2


def long_talk(world: World, count=40, size=400):
    opened = opened_as(world)
    record_turns(
        opened,
        conversation_id="c1",
        source="api",
        messages=[
            Incoming(
                role="user" if n % 2 == 0 else "assistant", content=f"I saw bird number {n}. " + "x " * size
            )
            for n in range(count)
        ],
    )
    override(world, WINDOW + "default-max-input-tokens", 4000)
    with tenant(opened.reach):
        return opened, Conversation.objects.of(opened.own).get(external_id="c1")


def test_a_long_conversation_is_summarised_into_a_users_message_and_says_so(acme):
    opened, conversation = long_talk(acme)
    window = build_context(opened, query="What did I see?", conversation=conversation)
    assert window.tokens <= window.budget
    assert window.summarised > 0
    assert window.history[0].role == "user"
    assert window.history[0].text.startswith("[Summary of the earlier conversation]")
    assert "bird number" in window.history[0].text
    assert "bird number 39" in window.history[-1].text
    assert window.summarised + window.dropped + len(window.history) - 1 == 40


def test_a_summary_is_kept_for_the_next_turn(acme, monkeypatch):
    opened, conversation = long_talk(acme)
    made = []
    real = contexts.summarise_earlier

    def counted(*args, **options):
        made.append(1)
        return real(*args, **options)

    monkeypatch.setattr(contexts, "summarise_earlier", counted)
    first = build_context(opened, query="What did I see?", conversation=conversation)
    second = build_context(opened, query="What did I see?", conversation=conversation)
    assert len(made) == 1
    assert second.history[0] == first.history[0]


def test_a_summary_that_fails_is_no_failure_of_the_turn(acme, model):
    opened, conversation = long_talk(acme)
    model.add(Fail(500))
    window = build_context(opened, query="What did I see?", conversation=conversation)
    assert window.summarised == 0
    assert window.dropped > 0
    assert window.tokens <= window.budget


def test_context_gives_the_blocks_and_stores_nothing(acme):
    client = acme.bob.client()
    url = f"/api/v1/memory/{acme.agent_id}/context"
    answer = client.post(url, {"query": "What do you know?", "endUserId": "nobody-yet"}).json()
    assert answer["items"] == []
    assert answer["recalled"] == ""
    assert "--- AGENTS.md ---" in answer["system"]
    assert set(answer) == {"system", "alwaysOn", "recalled", "items", "tokens", "providers"}
    owners = acme.alice.client().get("/api/v1/owners").json()["results"]
    assert "api:nobody-yet" not in {one["key"] for one in owners}


def test_a_stream_ends_with_the_body_of_chat(acme, model):
    model.add(Say("Hello, Nora."))
    answer = acme.bob.client().post(
        "/api/v1/chat/stream", {"agentId": acme.agent_id, "message": "Hello there.", "endUserId": "nora"}
    )
    events = read_events(answer)
    names = [name for name, _ in events]
    assert names[:2] == ["session", "recall"]
    assert names[-3:] == ["usage", "memory", "done"]
    assert "".join(data["text"] for name, data in events if name == "delta") == "Hello, Nora."
    assert events[-1][1]["reply"] == "Hello, Nora."
    assert turns()[0].status == "answered"


def test_a_stream_that_breaks_off_says_so_and_keeps_what_was_said(acme, model):
    model.add(Say("This will never be finished", drop_after=2))
    answer = acme.bob.client().post(
        "/api/v1/chat/stream", {"agentId": acme.agent_id, "message": "Hello there.", "endUserId": "nora"}
    )
    events = read_events(answer)
    assert events[-1][0] == "error"
    [turn] = turns()
    assert turn.status == "failed"
    assert turn.answer.failed
    assert turn.answer.content.startswith("This")


def test_a_repeated_stream_with_a_key_answers_with_the_first_body(acme):
    client = acme.bob.client()
    body = {"agentId": acme.agent_id, "message": "Hello there.", "endUserId": "nora"}
    first = read_events(client.post("/api/v1/chat/stream", body, HTTP_IDEMPOTENCY_KEY="k"))
    again = client.post("/api/v1/chat/stream", body, HTTP_IDEMPOTENCY_KEY="k")
    assert again.json() == first[-1][1]
    assert len(turns()) == 1


def read_events(answer) -> list[tuple[str, dict]]:
    """The events of a streamed answer, read to its end as the server would send them."""

    async def read() -> bytes:
        return b"".join([part async for part in answer.streaming_content])

    raw = async_to_sync(read)().decode()
    parts = [part for part in raw.split("\n\n") if part.startswith("event: ")]
    return [
        (part.split("\n")[0].removeprefix("event: "), json.loads(part.split("\ndata: ")[1])) for part in parts
    ]
