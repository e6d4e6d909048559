"""The model clients against servers that speak the real wire formats."""

import asyncio
import binascii
import json
import os
import struct
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import ModelRetry, Tool
from pydantic_ai.models import Model

from integrations.clients.errors import ProviderError
from integrations.clients.models.answers import (
    ChatMessage,
    Delta,
    Finished,
    StreamEvent,
    ToolEnded,
    ToolStarted,
    Usage,
)
from integrations.clients.models.ask import ask_text_sync, ask_typed_sync
from integrations.clients.models.build import make_model
from integrations.clients.models.chat import chat_stream, chat_sync
from integrations.clients.models.loop import before_call
from integrations.clients.models.names import check_model_name
from integrations.clients.models.prices import cost_usd
from tests.stubs.openai_server import Fail, Raw, Request, Say, StubServer, Use

PATIENCE_S = 10.0  # only spent when something is broken
NEVER = threading.Event()
HALF_A_STREAM = (
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"role":"assistant","content":"Half"},"finish_reason":null}]}\n\n'
)


def stub_model(server: StubServer, name: str = "openai:stub") -> Model:
    return make_model(name, openai_base_url=server.url, timeout_s=PATIENCE_S)


def ask(server: StubServer, user: str = "Hi", *, timeout_s: float = PATIENCE_S) -> str:
    model = stub_model(server)
    return ask_text_sync(model, system="Be brief.", user=user, max_tokens=50, timeout_s=timeout_s).text


def user(text: str) -> ChatMessage:
    return ChatMessage("user", text)


def chat(server: StubServer, *messages: ChatMessage, tools: Any = (), limit: int = 8) -> Any:
    return chat_sync(
        stub_model(server),
        system="Be brief.",
        messages=messages,
        tools=tools,
        max_tokens=50,
        timeout_s=PATIENCE_S,
        request_limit=limit,
    )


def stream(
    server: StubServer, *, tools: Any = (), timeout_s: float = PATIENCE_S
) -> AsyncGenerator[StreamEvent, None]:
    return chat_stream(
        stub_model(server),
        system="Be brief.",
        messages=[user("Hi")],
        tools=tools,
        max_tokens=50,
        timeout_s=timeout_s,
    )


async def everything(events: AsyncGenerator[StreamEvent, None]) -> list[StreamEvent]:
    return [event async for event in events]


def read_file(name: str) -> str:
    """Read a file."""
    return f"content of {name}"


# Names and building


@pytest.mark.parametrize(
    "name", ["openai:gpt-4o-mini", "anthropic:claude-x", "bedrock:a.b-v1:0", "openai:a/b"]
)
def test_a_good_name_is_taken(name: str) -> None:
    parts = check_model_name(name)
    assert f"{parts.kind}:{parts.model}" == name


@pytest.mark.parametrize(
    "name", ["", "gpt-4o", "openai:", ":x", "cohere:x", "openai: x", "OpenAI:x", "test:x"]
)
def test_a_bad_name_is_refused_with_the_value_and_what_would_be_right(name: str) -> None:
    with pytest.raises(ValueError, match="openai:<model>, anthropic:<model>, bedrock:<model>") as caught:
        check_model_name(name)
    assert repr(name) in str(caught.value)
    with pytest.raises(ValueError, match="is not the name of a model"):
        make_model(name, timeout_s=1)


def test_the_test_model_is_there_only_for_those_who_allow_it() -> None:
    model = make_model("test:any", timeout_s=1, allow_test=True)
    assert (
        ask_text_sync(model, system="", user="Hi", max_tokens=5, timeout_s=PATIENCE_S).model_name
        == "test:any"
    )


@pytest.mark.parametrize(
    ("name", "kind"),
    [("openai:gpt-4o", "auth"), ("anthropic:claude-x", "auth"), ("bedrock:a.b", "bad_request")],
)
def test_a_missing_key_or_region_is_told_when_the_model_is_made(name: str, kind: str) -> None:
    with pytest.raises(ProviderError) as caught:
        make_model(name, timeout_s=1)
    assert (caught.value.kind, caught.value.retryable) == (kind, False)


# What is sent


def test_a_question_goes_out_as_instructions_and_a_user_message(server: StubServer) -> None:
    server.add(Say("Hello.", prompt_tokens=12, completion_tokens=3))
    answer = ask_text_sync(
        stub_model(server), system="Be brief.", user="Hi", max_tokens=50, timeout_s=PATIENCE_S
    )
    assert (answer.text, answer.model_name, answer.was_cut) == ("Hello.", "openai-compatible:stub", False)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (12, 3)
    (request,) = server.requests
    assert [(m["role"], m["content"]) for m in request.messages] == [("system", "Be brief."), ("user", "Hi")]
    assert not request.is_stream
    assert request.tool_names == []


@pytest.mark.parametrize(
    ("model", "field"),
    [
        ("stub", "max_tokens"),
        ("gpt-4o", "max_tokens"),
        ("gpt-5-mini", "max_completion_tokens"),
        ("openai/o3", "max_completion_tokens"),
    ],
)
def test_the_answers_length_is_limited_by_the_field_the_model_knows(
    server: StubServer, model: str, field: str
) -> None:
    server.add(Say("Hello."))
    ask_text_sync(
        stub_model(server, f"openai:{model}"), system="", user="Hi", max_tokens=77, timeout_s=PATIENCE_S
    )
    assert {key: value for key, value in server.requests[0].body.items() if key.startswith("max_")} == {
        field: 77
    }


def test_the_key_of_the_environment_is_used_and_none_is_needed(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add(Say("a"), Say("b"))
    ask(server)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    ask(server)
    first, second = (request.headers["authorization"] for request in server.requests)
    assert first != second == "Bearer sk-mine"


def test_openai_itself_is_told_to_store_nothing(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-mine")
    monkeypatch.setattr("integrations.clients.models.build._OPENAI_URL", server.url)
    server.add(Say("Hello."))
    model = make_model("openai:gpt-4o-mini", timeout_s=PATIENCE_S)
    answer = ask_text_sync(model, system="", user="Hi", max_tokens=5, timeout_s=PATIENCE_S)
    assert answer.model_name == "openai:gpt-4o-mini"
    assert answer.usage.cost_usd == cost_usd(answer.model_name, answer.usage) is not None
    assert server.requests[0].body["store"] is False
    assert server.requests[0].body["max_completion_tokens"] == 5


def test_earlier_messages_keep_their_roles_and_order(server: StubServer) -> None:
    server.add(Say("Blue."))
    chat(
        server,
        user("Summary: she likes colours."),
        user("Hello"),
        ChatMessage("assistant", "Hi!"),
        user("Which one?"),
    )
    (request,) = server.requests
    said = [(m["role"], m["content"]) for m in request.messages]
    assert said == [
        ("system", "Be brief."),
        ("user", "Summary: she likes colours."),
        ("user", "Hello"),
        ("assistant", "Hi!"),
        ("user", "Which one?"),
    ]


def test_a_history_cut_in_the_middle_still_begins_with_the_user(server: StubServer) -> None:
    server.add(Say("Blue."))
    chat(server, ChatMessage("assistant", "Hi!"), user("Which one?"))
    assert server.requests[0].roles == ["system", "user", "assistant", "user"]


def test_a_chat_must_end_with_the_user() -> None:
    model = make_model("test:any", timeout_s=1, allow_test=True)
    for messages in ([], [ChatMessage("assistant", "Hi!")]):
        with pytest.raises(ValueError, match="must end with a message of the user"):
            chat_sync(model, system="", messages=messages, max_tokens=5, timeout_s=1)


def test_an_answer_cut_at_its_limit_says_so(server: StubServer) -> None:
    server.add(Say("Once upon a", finish_reason="length"), Say("Once upon a", finish_reason="length"))
    model = stub_model(server)
    assert ask_text_sync(model, system="", user="Tell", max_tokens=3, timeout_s=PATIENCE_S).was_cut
    assert chat(server, user("Tell")).was_cut


# Tools


def test_tools_are_run_until_the_model_answers(server: StubServer) -> None:
    server.add(
        Say("Let me look.", tools=(Use("read_file", {"name": "a"}), Use("read_file", {"name": "b"}))),
        Say("Both are there."),
    )
    answer = chat(server, user("Are they there?"), tools=[Tool(read_file)])
    assert answer.text == "Both are there."
    assert sorted((call.name, call.args_json, call.result_text) for call in answer.tool_calls) == [
        ("read_file", '{"name":"a"}', "content of a"),
        ("read_file", '{"name":"b"}', "content of b"),
    ]
    assert all(call.ms >= 0 for call in answer.tool_calls)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (200, 20)
    first, second = server.requests
    assert first.tool_names == ["read_file"]
    assert second.roles == ["system", "user", "assistant", "tool", "tool"]


def test_a_tool_sees_the_context_of_the_caller_in_another_thread(server: StubServer) -> None:
    owner: ContextVar[str] = ContextVar("owner", default="nobody")
    owner.set("alice")
    seen: list[tuple[str, int]] = []

    def whose() -> str:
        seen.append((owner.get(), threading.get_ident()))
        return "ok"

    server.add(Say(tools=(Use("whose", {}),)), Say("Done."))
    chat(server, user("Whose?"), tools=[Tool(whose)])
    ((name, thread),) = seen
    assert name == "alice"
    assert thread != threading.get_ident()


def test_a_tool_that_asks_for_another_try_gets_one(server: StubServer) -> None:
    def strict(number: int) -> int:
        if number < 0:
            raise ModelRetry("The number must not be negative.")
        return number

    server.add(
        Say(tools=(Use("strict", {"number": "many"}),)),
        Say(tools=(Use("strict", {"number": -1}),)),
        Say(tools=(Use("strict", {"number": 1}),)),
        Say("Done."),
    )
    answer = chat(server, user("Count"), tools=[Tool(strict)])
    assert [call.result_text for call in answer.tool_calls] == ["The number must not be negative.", "1"]
    assert "must not be negative" in server.requests[2].text("tool")


def test_what_a_tool_raises_comes_out_as_it_is(server: StubServer) -> None:
    class BrokenError(Exception):
        pass

    def broken() -> str:
        raise BrokenError

    server.add(Say(tools=(Use("broken", {}),)))
    with pytest.raises(BrokenError):
        chat(server, user("Go"), tools=[Tool(broken)])


def test_the_last_allowed_request_offers_no_tool(server: StubServer) -> None:
    again = Say(tools=(Use("read_file", {"name": "a"}),))
    server.add(again, again, Say("Enough."))
    answer = chat(server, user("Go"), tools=[Tool(read_file)], limit=3)
    assert answer.text == "Enough."
    assert [request.body.get("tool_choice") for request in server.requests] == ["auto", "auto", "none"]


def test_a_model_that_never_stops_calling_tools_is_stopped(server: StubServer) -> None:
    again = Say(tools=(Use("read_file", {"name": "a"}),))
    server.add(again, again)
    with pytest.raises(ProviderError) as caught:
        chat(server, user("Go"), tools=[Tool(read_file)], limit=2)
    assert (caught.value.kind, caught.value.retryable) == ("bad_answer", False)


# Typed answers


class Weather(BaseModel):
    city: str
    degrees: int


def typed(server: StubServer, *, retries: int = 1) -> Weather:
    return ask_typed_sync(
        stub_model(server),
        system="",
        user="Weather in Paris?",
        output_type=Weather,
        max_tokens=50,
        timeout_s=PATIENCE_S,
        retries=retries,
    ).value


def test_a_typed_answer_comes_through_the_output_tool(server: StubServer) -> None:
    server.add(Say(tools=(Use("final_result", {"city": "Paris", "degrees": 21}),)))
    assert typed(server) == Weather(city="Paris", degrees=21)
    assert server.requests[0].tool_names == ["final_result"]


def test_a_broken_typed_answer_is_shown_to_the_model_and_repaired(server: StubServer) -> None:
    server.add(
        Say(tools=(Use("final_result", {"city": "Paris", "degrees": "warm"}),)),
        Say(tools=(Use("final_result", {"city": "Paris", "degrees": 21}),)),
    )
    assert typed(server).degrees == 21
    assert "valid integer" in server.requests[1].text("tool")


def test_a_server_without_tools_is_asked_with_the_schema_in_the_prompt(server: StubServer) -> None:
    server.add(
        Fail(400, message="tools are not supported"), Say('```json\n{"city": "Paris", "degrees": 21}\n```')
    )
    assert typed(server) == Weather(city="Paris", degrees=21)
    assert server.requests[1].tool_names == []
    assert "degrees" in json.dumps(server.requests[1].messages)


def test_a_typed_answer_that_stays_broken_is_a_bad_answer(server: StubServer) -> None:
    server.add(*[Say("It is warm.")] * 4)
    with pytest.raises(ProviderError) as caught:
        typed(server, retries=1)
    assert caught.value.kind == "bad_answer"


# What goes wrong

TOO_LONG_OPENAI = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."
)


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (Fail(400, "context_length_exceeded"), "context_too_large", False),
        (Fail(400, None, TOO_LONG_OPENAI), "context_too_large", False),
        (
            Fail(400, None, "request (9001 tokens) exceeds the available context size"),
            "context_too_large",
            False,
        ),
        (Fail(413, None, "Too big"), "context_too_large", False),
        (Fail(500, None, "the prompt is too long for this model"), "context_too_large", False),
        (Fail(400, "invalid_request_error", "No such field"), "bad_request", False),
        (Fail(404, "model_not_found"), "bad_request", False),
        (Fail(401, "invalid_api_key"), "auth", False),
        (Fail(403), "auth", False),
        (Fail(429, "rate_limit_exceeded", retry_after_s=7), "rate_limited", True),
        (Fail(429, "insufficient_quota"), "rate_limited", False),
        (Fail(408), "timeout", True),
        (Fail(409), "unavailable", True),
        (Fail(500), "unavailable", True),
        (Fail(503), "unavailable", True),
        (Raw(b"<html>gateway</html>", content_type="text/html"), "bad_answer", True),
        (Raw(b'{"choices": '), "bad_answer", True),
        (Raw(b'{"object": "something else"}'), "bad_answer", True),
        (Raw(b""), "bad_answer", True),
        (Raw(b"\xff\xfe\x00"), "bad_answer", True),
        (Say("Half an ans", drop_after=0), "unavailable", True),
        (Say("", finish_reason="content_filter"), "refused", False),
    ],
)
def test_every_failure_has_its_kind_and_is_asked_once(
    server: StubServer, reply: Fail | Raw | Say, kind: str, retryable: bool
) -> None:
    server.add(reply)
    with pytest.raises(ProviderError) as caught:
        ask(server)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert caught.value.retry_after_s == (reply.retry_after_s if isinstance(reply, Fail) else None)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (Fail(429, "rate_limit_exceeded"), "rate_limited"),
        (Fail(400, "context_length_exceeded"), "context_too_large"),
        (Say("A long answer that is cut", drop_after=2), "unavailable"),
        (Say("A long answer", drop_after=0), "unavailable"),
        (Raw(HALF_A_STREAM, content_type="text/event-stream"), "bad_answer"),
        (Raw(HALF_A_STREAM + b"data: {rubbish\n\n", content_type="text/event-stream"), "bad_answer"),
        (Raw(b"rubbish", content_type="text/event-stream"), "bad_answer"),
    ],
)
def test_a_stream_that_breaks_is_an_error_and_never_an_answer(
    server: StubServer, reply: Fail | Raw | Say, kind: str
) -> None:
    server.add(reply)
    seen: list[StreamEvent] = []

    async def listen() -> None:
        async for event in stream(server):
            seen.append(event)  # noqa: PERF401 - what came before the error is kept

    with pytest.raises(ProviderError) as caught:
        asyncio.run(listen())
    assert caught.value.kind == kind
    assert all(isinstance(event, Delta) for event in seen)


def test_nobody_listening_is_unavailable() -> None:
    with StubServer() as gone:
        pass
    with pytest.raises(ProviderError) as caught:
        ask(gone)
    assert (caught.value.kind, caught.value.retryable) == ("unavailable", True)


def test_a_slow_answer_ends_at_the_deadline_and_the_connection_is_closed(server: StubServer) -> None:
    server.add(Say("Too late", wait=NEVER))
    with pytest.raises(ProviderError) as caught:
        ask(server, timeout_s=0.1)
    assert (caught.value.kind, caught.value.retryable) == ("timeout", True)
    assert server.disconnected.wait(PATIENCE_S)


def test_the_deadline_covers_a_hanging_tool(server: StubServer) -> None:
    release = threading.Event()

    def hang() -> str:
        release.wait(PATIENCE_S)
        return "late"

    server.add(Say(tools=(Use("hang", {}),)))
    try:
        with pytest.raises(ProviderError) as caught:
            chat_sync(
                stub_model(server),
                system="",
                messages=[user("Go")],
                tools=[Tool(hang)],
                max_tokens=5,
                timeout_s=0.3,
            )
    finally:
        release.set()
    assert caught.value.kind == "timeout"


# Streams


def test_a_stream_tells_text_and_tools_as_they_come_and_the_answer_last(server: StubServer) -> None:
    server.add(
        Say("Let me look.", tools=(Use("read_file", {"name": "diary.md"}),)), Say("It is 晴天 in the diary.")
    )
    events = asyncio.run(everything(stream(server, tools=[Tool(read_file)])))
    kinds = [type(event) for event in events]
    assert kinds == [Delta] * 2 + [ToolStarted, ToolEnded] + [Delta] * 3 + [Finished]
    assert "".join(e.text for e in events if isinstance(e, Delta)) == "Let me look.It is 晴天 in the diary."
    assert events[2] == ToolStarted("read_file", '{"name":"diary.md"}')
    (last,) = [event.answer for event in events if isinstance(event, Finished)]
    assert last.text == "It is 晴天 in the diary."
    assert [call.result_text for call in last.tool_calls] == ["content of diary.md"]
    assert (last.usage.input_tokens, last.usage.output_tokens) == (200, 20)
    assert [request.body["stream_options"] for request in server.requests] == [{"include_usage": True}] * 2


def test_text_arrives_before_the_answer_is_whole(server: StubServer) -> None:
    release = threading.Event()
    server.add(Say("First half, second half.", wait=release, pause_after=1))

    async def listen() -> list[StreamEvent]:
        events = stream(server)
        first = await anext(events)
        assert not release.is_set()
        release.set()
        return [first, *[event async for event in events]]

    first, *rest = asyncio.run(listen())
    assert first == Delta("First ha")
    assert isinstance(rest[-1], Finished)


def test_closing_a_stream_closes_the_connection_to_the_provider(server: StubServer) -> None:
    server.add(Say("A long answer", wait=NEVER, pause_after=1))

    async def leave_early() -> None:
        async with aclosing(stream(server)) as events:
            assert await anext(events) == Delta("A long a")

    asyncio.run(leave_early())
    assert server.disconnected.wait(PATIENCE_S)


def test_cancelling_the_task_that_listens_closes_the_connection_too(server: StubServer) -> None:
    server.add(Say("Too late", wait=NEVER))

    async def be_cancelled() -> None:
        task = asyncio.create_task(everything(stream(server)))
        await asyncio.to_thread(_until_asked, server)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(be_cancelled())
    assert server.disconnected.wait(PATIENCE_S)


def _until_asked(server: StubServer) -> None:
    assert server.asked.wait(PATIENCE_S)


def test_a_stream_ends_at_its_deadline(server: StubServer) -> None:
    server.add(Say("A long answer", wait=NEVER, pause_after=1))
    with pytest.raises(ProviderError) as caught:
        asyncio.run(everything(stream(server, timeout_s=0.2)))
    assert caught.value.kind == "timeout"
    assert server.disconnected.wait(PATIENCE_S)


def test_a_stream_never_listened_to_asks_nothing(server: StubServer) -> None:
    async def ignore() -> None:
        await stream(server).aclose()

    asyncio.run(ignore())
    assert server.requests == []


# Threads, loops, processes, hooks


def test_one_model_serves_many_threads_and_streams_at_once() -> None:
    def echo(request: Request) -> Say:
        return Say(f"echo {request.text('user')}")

    with StubServer(echo) as server:
        model = stub_model(server)

        def ask_it(number: int) -> str:
            return ask_text_sync(model, system="", user=str(number), max_tokens=5, timeout_s=PATIENCE_S).text

        def stream_it(number: int) -> str:
            events = chat_stream(
                model, system="", messages=[user(str(number))], max_tokens=5, timeout_s=PATIENCE_S
            )
            *_, last = asyncio.run(everything(events))
            assert isinstance(last, Finished)
            return last.answer.text

        with ThreadPoolExecutor(8) as pool:
            asked = list(pool.map(ask_it, range(12)))
            streamed = list(pool.map(stream_it, range(12)))
        server.assert_done()
    assert asked == streamed == [f"echo {number}" for number in range(12)]


def test_a_blocking_call_inside_a_running_loop_is_refused(server: StubServer) -> None:
    async def wrong() -> None:
        ask(server)

    with pytest.raises(RuntimeError, match="inside a running event loop"):
        asyncio.run(wrong())


def test_a_forked_worker_can_call_after_its_parent_did(server: StubServer) -> None:
    server.add(Say("parent"), Say("child"))
    assert ask(server) == "parent"
    child = os.fork()
    if child == 0:
        os._exit(0 if ask(server) == "child" else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_what_must_happen_before_a_call_happens_in_the_callers_thread_and_may_refuse(
    server: StubServer,
) -> None:
    threads: list[int] = []

    def refuse() -> None:
        threads.append(threading.get_ident())
        raise LookupError("a transaction is open")

    before_call.append(refuse)
    try:
        with pytest.raises(LookupError):
            ask(server)
        with pytest.raises(LookupError):
            typed(server)
        with pytest.raises(LookupError):
            chat(server, user("Hi"))
        with pytest.raises(LookupError):
            stream(server)
    finally:
        before_call.remove(refuse)
    assert threads == [threading.get_ident()] * 4
    assert server.requests == []


# Anthropic


def test_anthropic_is_asked_in_its_own_format(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    reply = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-5",
        "content": [{"type": "text", "text": "Blue."}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1000, "output_tokens": 100},
    }
    server.add(Raw(json.dumps(reply).encode()))
    model = make_model("anthropic:claude-sonnet-5", timeout_s=PATIENCE_S)
    answer = chat_sync(
        model,
        system="Be brief.",
        messages=[user("Summary"), ChatMessage("assistant", "Hi!"), user("Which?")],
        max_tokens=50,
        timeout_s=PATIENCE_S,
    )
    assert (answer.text, answer.model_name) == ("Blue.", "anthropic:claude-sonnet-5")
    assert answer.usage.cost_usd == cost_usd(answer.model_name, Usage(1000, 100)) is not None
    (request,) = server.requests
    assert request.path.startswith("/v1/messages")
    assert request.roles == ["user", "assistant", "user"]
    assert "Be brief." in json.dumps(request.body["system"])
    assert request.body["max_tokens"] == 50


def test_anthropics_words_for_a_prompt_too_long_are_known(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.origin)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    model = make_model("anthropic:claude-sonnet-5", timeout_s=PATIENCE_S)
    for message in (
        "prompt is too long: 210000 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 199000 + 4000 > 200000",
    ):
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        server.add(Raw(json.dumps(error).encode(), status=400))
        with pytest.raises(ProviderError) as caught:
            ask_text_sync(model, system="", user="Hi", max_tokens=5, timeout_s=PATIENCE_S)
        assert caught.value.kind == "context_too_large"


# Bedrock


@pytest.fixture
def bedrock(server: StubServer, monkeypatch: pytest.MonkeyPatch) -> Model:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.origin)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    return make_model("bedrock:amazon.nova-lite-v1:0", timeout_s=PATIENCE_S)


def converse_reply(*blocks: dict[str, Any], stop: str = "end_turn") -> Raw:
    body = {
        "output": {"message": {"role": "assistant", "content": list(blocks)}},
        "stopReason": stop,
        "usage": {"inputTokens": 1000, "outputTokens": 100, "totalTokens": 1100},
        "metrics": {"latencyMs": 1},
    }
    return Raw(json.dumps(body).encode())


def bedrock_error(status: int, code: str, message: str) -> Raw:
    return Raw(json.dumps({"__type": code, "message": message}).encode(), status=status)


def test_bedrock_is_asked_by_converse_with_tools(server: StubServer, bedrock: Model) -> None:
    use = {"toolUse": {"toolUseId": "t1", "name": "read_file", "input": {"name": "a"}}}
    server.add(converse_reply(use, stop="tool_use"), converse_reply({"text": "It is there."}))
    answer = chat_sync(
        bedrock,
        system="Be brief.",
        messages=[user("Summary"), user("Hello"), ChatMessage("assistant", "Hi!"), user("Is it there?")],
        tools=[Tool(read_file)],
        max_tokens=50,
        timeout_s=PATIENCE_S,
    )
    assert (answer.text, answer.model_name) == ("It is there.", "bedrock:amazon.nova-lite-v1:0")
    assert [call.result_text for call in answer.tool_calls] == ["content of a"]
    assert answer.usage.cost_usd == Decimal("0.000168")  # two requests at 0.06 and 0.24 dollars a million
    first, second = server.requests
    assert first.path == "/model/amazon.nova-lite-v1%3A0/converse"
    assert "/eu-central-1/bedrock/aws4_request" in first.headers["authorization"]
    assert first.body["system"] == [{"text": "Be brief."}]
    assert first.body["inferenceConfig"] == {"maxTokens": 50}
    assert first.body["toolConfig"]["tools"][0]["toolSpec"]["name"] == "read_file"
    assert first.roles == ["user", "assistant", "user"]  # Converse wants them in turns
    assert second.messages[-1]["content"][0]["toolResult"]["toolUseId"] == "t1"


@pytest.mark.parametrize(
    ("reply", "kind", "retryable"),
    [
        (
            bedrock_error(400, "ValidationException", "Input is too long for requested model."),
            "context_too_large",
            False,
        ),
        (bedrock_error(400, "ValidationException", "The model ID is wrong."), "bad_request", False),
        (bedrock_error(403, "AccessDeniedException", "No access to the model."), "auth", False),
        (bedrock_error(429, "ThrottlingException", "Too many requests."), "rate_limited", True),
        (bedrock_error(503, "ServiceUnavailableException", "Later."), "unavailable", True),
        (bedrock_error(500, "InternalServerException", "Oops."), "unavailable", True),
    ],
)
def test_bedrocks_errors_have_their_kind_and_are_asked_once(
    server: StubServer, bedrock: Model, reply: Raw, kind: str, retryable: bool
) -> None:
    server.add(reply)
    with pytest.raises(ProviderError) as caught:
        ask_text_sync(bedrock, system="", user="Hi", max_tokens=5, timeout_s=PATIENCE_S)
    assert (caught.value.kind, caught.value.retryable) == (kind, retryable)
    assert len(server.requests) == 1


def test_bedrock_without_credentials_is_an_auth_error(
    server: StubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", server.origin)
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    model = make_model("bedrock:amazon.nova-lite-v1:0", timeout_s=PATIENCE_S)
    with pytest.raises(ProviderError) as caught:
        ask_text_sync(model, system="", user="Hi", max_tokens=5, timeout_s=PATIENCE_S)
    assert (caught.value.kind, caught.value.retryable) == ("auth", False)


def test_bedrock_streams_too(server: StubServer, bedrock: Model) -> None:
    events = (
        ("messageStart", {"role": "assistant"}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "Blue "}}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": "sky."}}),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": "end_turn"}),
        (
            "metadata",
            {"usage": {"inputTokens": 7, "outputTokens": 2, "totalTokens": 9}, "metrics": {"latencyMs": 1}},
        ),
    )
    body = b"".join(event_frame(kind, payload) for kind, payload in events)
    server.add(Raw(body, content_type="application/vnd.amazon.eventstream"))
    told = asyncio.run(
        everything(chat_stream(bedrock, system="", messages=[user("Hi")], max_tokens=5, timeout_s=PATIENCE_S))
    )
    assert [event.text for event in told if isinstance(event, Delta)] == ["Blue ", "sky."]
    last = told[-1]
    assert isinstance(last, Finished)
    assert (last.answer.text, last.answer.usage.input_tokens, last.answer.usage.output_tokens) == (
        "Blue sky.",
        7,
        2,
    )
    assert server.requests[0].path.endswith("/converse-stream")


def test_bedrocks_deadline_holds_though_its_client_blocks_a_thread(
    server: StubServer, bedrock: Model
) -> None:
    release = threading.Event()
    server.add(Raw(b"{}", wait=release))
    try:
        with pytest.raises(ProviderError) as caught:
            ask_text_sync(bedrock, system="", user="Hi", max_tokens=5, timeout_s=0.3)
    finally:
        release.set()
    assert caught.value.kind == "timeout"


def event_frame(kind: str, payload: dict[str, Any]) -> bytes:
    """One message of AWS's event stream encoding (vnd.amazon.eventstream)."""
    headers = b""
    for name, value in (
        (":event-type", kind),
        (":content-type", "application/json"),
        (":message-type", "event"),
    ):
        headers += (
            bytes([len(name)]) + name.encode() + b"\x07" + struct.pack("!H", len(value)) + value.encode()
        )
    data = json.dumps(payload).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(data), len(headers))
    message = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + data
    return message + struct.pack("!I", binascii.crc32(message))


# Prices


@pytest.mark.parametrize(
    ("name", "usage", "cost"),
    [
        ("openai:gpt-4o-mini", Usage(1_000_000, 1_000_000), Decimal("0.75")),
        ("anthropic:claude-haiku-4-5", Usage(1000, 100), Decimal("0.0015")),
        ("bedrock:amazon.nova-lite-v1:0", Usage(1_000_000, 1_000_000), Decimal("0.30")),
        ("openai:gpt-4o-mini", Usage(0, 0), Decimal(0)),
        ("openai:no-such-model", Usage(1000, 100), None),
        ("openai-compatible:gpt-4o-mini", Usage(1000, 100), None),
        ("test:any", Usage(1000, 100), None),
        ("no-such-model", Usage(1000, 100), None),
        ("openai:no-such-model", Usage(1000, 100, cost_usd=Decimal("0.5")), Decimal("0.5")),
        ("openai:gpt-4o-mini", Usage(10, 1, cache_read_tokens=20), None),
    ],
)
def test_a_call_costs_what_the_price_list_says_or_nothing_is_known(
    name: str, usage: Usage, cost: Decimal | None
) -> None:
    assert cost_usd(name, usage) == cost


def test_cached_tokens_cost_less() -> None:
    plain = cost_usd("openai:gpt-4o-mini", Usage(100_000, 0))
    cached = cost_usd("openai:gpt-4o-mini", Usage(100_000, 0, cache_read_tokens=100_000))
    assert plain is not None
    assert cached is not None
    assert 0 < cached < plain
