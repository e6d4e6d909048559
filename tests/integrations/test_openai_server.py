"""The stand-in for a model: it speaks the wire format, and it cannot be used by mistake."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from openai import OpenAI

from tests.stubs.openai_server import Fail, Request, Say, StubServer, Use, answer_by_brain
from tests.stubs.wire import Reply

EXTRACTION = "Answer as JSON: {should_update, reason, daily_entry, memory_update, profile_update}."


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as stub:
        yield stub


def post(server: StubServer, *messages: dict[str, Any], **more: Any) -> httpx2.Response:
    body = {"model": "stub", "messages": list(messages), **more}
    return httpx2.post(f"{server.url}/chat/completions", json=body, trust_env=False)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def test_an_unscripted_call_fails_there_and_at_the_end(server: StubServer) -> None:
    assert post(server, user("Hi")).status_code == 500
    with pytest.raises(AssertionError, match=r"unscripted call.*Hi"):
        server.assert_done()


def test_a_reply_that_nobody_asked_for_fails_at_the_end(server: StubServer) -> None:
    server.add(Say("a"), Say("b"))
    assert post(server, user("Hi")).json()["choices"][0]["message"]["content"] == "a"
    with pytest.raises(AssertionError, match="1 replies"):
        server.assert_done()


def test_a_script_may_be_a_function_that_leaves_a_call_unanswered() -> None:
    def script(request: Request) -> Reply | None:
        return Say("known") if request.text("user") == "known" else None

    with StubServer(script) as server:
        assert post(server, user("known")).status_code == 200
        server.assert_done()
        assert post(server, user("unknown")).status_code == 500
        with pytest.raises(AssertionError, match="unscripted"):
            server.assert_done()


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "seen"}


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([], "required"),
        ([user("Hi"), RESULT], "without the call"),
        ([{"role": "assistant", "tool_calls": [CALL]}, user("Well?")], "without results"),
        ([user("Hi"), {"role": "assistant", "tool_calls": [CALL]}], "without results"),
    ],
)
def test_what_the_real_service_would_refuse_is_refused(
    server: StubServer, messages: list[dict[str, Any]], words: str
) -> None:
    response = post(server, *messages)
    assert response.status_code == 400
    assert words in response.json()["error"]["message"]
    with pytest.raises(AssertionError, match=words):
        server.assert_done()


def test_an_error_has_openais_form_and_says_when_to_come_back(server: StubServer) -> None:
    server.add(Fail(429, "rate_limit_exceeded", "Slow down.", retry_after_s=7))
    response = post(server, user("Hi"))
    assert (response.status_code, response.headers["retry-after"]) == (429, "7")
    error = response.json()["error"]
    assert (error["code"], error["message"]) == ("rate_limit_exceeded", "Slow down.")


def test_a_stream_is_server_sent_events_that_end_with_done(server: StubServer) -> None:
    server.add(Say("Hello there"))
    response = post(server, user("Hi"), stream=True)
    assert response.headers["content-type"].startswith("text/event-stream")
    *chunks, done, rest = response.text.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    choices = [json.loads(chunk.removeprefix("data: "))["choices"][0] for chunk in chunks]
    assert [choice["delta"] for choice in choices] == [
        {"role": "assistant", "content": ""},
        {"content": "Hello th"},
        {"content": "ere"},
        {},
    ]
    assert [choice["finish_reason"] for choice in choices] == [None, None, None, "stop"]


def test_the_usage_of_a_stream_is_sent_only_when_asked_for(server: StubServer) -> None:
    server.add(Say("Hi", prompt_tokens=3, completion_tokens=2), Say("Hi"))
    told = post(server, user("Hi"), stream=True, stream_options={"include_usage": True}).text
    assert '"usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}' in told
    assert '"usage"' not in post(server, user("Hi"), stream=True).text


def test_openais_own_client_puts_streamed_tool_calls_together(server: StubServer) -> None:
    server.add(Say(tools=(Use("look", {"where": "under the table"}), Use("smell", {}))))
    client = OpenAI(base_url=server.url, api_key="none")
    with client.chat.completions.stream(model="stub", messages=[{"role": "user", "content": "Hi"}]) as stream:
        message = stream.get_final_completion().choices[0].message
    client.close()
    assert message.tool_calls is not None
    calls = [(call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls]
    assert calls == [("look", {"where": "under the table"}), ("smell", {})]


# The brain


@pytest.fixture
def brain() -> Iterator[StubServer]:
    with StubServer(answer_by_brain) as stub:
        yield stub
        stub.assert_done()


def said(response: httpx2.Response) -> str:
    return str(response.json()["choices"][0]["message"]["content"])


@pytest.mark.parametrize(
    "block",
    [
        "<recalled-memory>\n- Alice likes green tea.\n- Bob rides a bike.\n</recalled-memory>",
        '<memory source="files">\n* Alice likes green tea.\n* Bob rides a bike.\n</memory>',
        "[Recalled memory]\n- Alice likes green tea.\n- Bob rides a bike.\n[End of recalled memory]",
        "```recalled\nAlice likes green tea.\nBob rides a bike.\n```",
    ],
)
def test_the_brain_answers_from_the_recalled_block(brain: StubServer, block: str) -> None:
    answer = said(post(brain, user(f"{block}\n\nWhich tea does Alice like?")))
    assert answer.startswith("From what I remember: Alice likes green tea.")


def test_the_brain_finds_chinese_too(brain: StubServer) -> None:
    block = "<recalled>\n- 小王骑自行车。\n- 小李喜欢绿茶。\n</recalled>"
    assert said(post(brain, user(f"{block}\n小李喜欢喝什么?"))).startswith(
        "From what I remember: 小李喜欢绿茶。"
    )


def test_the_brain_knows_nothing_that_it_was_not_told(brain: StubServer) -> None:
    assert said(post(brain, user("Which tea does Alice like?"))).startswith("I know nothing about that yet.")


def test_the_brain_extracts_what_people_say_about_themselves(brain: StubServer) -> None:
    transcript = (
        "[2024-05-01 10:00] Alice: I prefer green tea in the morning.\n"
        "[2024-05-01 10:01] assistant: I will keep that in mind.\n"
        "Bob (2024-05-01): What do I like?\n"
        "小李：我喜欢爬山。"
    )
    answer = json.loads(said(post(brain, {"role": "system", "content": EXTRACTION}, user(transcript))))
    assert answer["should_update"] is True
    assert answer["daily_entry"] == "- Alice: I prefer green tea in the morning.\n- 小李: 我喜欢爬山。"
    assert set(answer) == {"should_update", "reason", "daily_entry", "memory_update", "profile_update"}


def test_the_brain_extracts_nothing_from_nothing(brain: StubServer) -> None:
    answer = json.loads(
        said(post(brain, {"role": "system", "content": EXTRACTION}, user("Bob: Hello there.")))
    )
    assert (answer["should_update"], answer["daily_entry"]) == (False, "")


def test_the_brain_calls_one_tool_when_asked_to_and_then_answers(brain: StubServer) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    tools = [{"type": "function", "function": {"name": "read_file", "parameters": schema}}]
    asked = user('Use tool read_file with {"name": "a.md"}')
    message = post(brain, asked, tools=tools).json()["choices"][0]["message"]
    (call,) = message["tool_calls"]
    assert json.loads(call["function"]["arguments"]) == {"name": "a.md"}
    result = {"role": "tool", "tool_call_id": call["id"], "content": "hello"}
    assert said(post(brain, asked, message, result, tools=tools)) == "The tool answered: hello"


def test_it_runs_by_itself() -> None:
    command = [sys.executable, "-m", "tests.stubs.openai_server", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0].removeprefix("OPENAI_BASE_URL=")
        listing = httpx2.get(f"{url}/models", trust_env=False).json()
        process.terminate()
    assert [model["id"] for model in listing["data"]] == ["stub"]
