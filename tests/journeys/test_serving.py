"""The product under way: many slow turns at once, clients that go away, a database that restarts, bad models."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from django.conf import settings

from config import embedded
from tests.factories import World
from tests.journeys.product import Product, files_of, record, until
from tests.stubs.openai_server import StubServer, answer_by_brain
from tests.stubs.wire import Fail, Raw, Reply, Request, Say, Use
from workspaces import llm

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("serving")]

CROWD = 3 * settings.POOL_SIZE


@dataclass
class Brain:
    """Answers a message that holds a word of `on` as that says, and everything else by the stub's own rules."""

    on: dict[str, Callable[[Request], Reply]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> Reply:
        for word, answer in self.on.items():
            if word in request.text("user") and "daily_entry" not in request.text("system"):
                self.asked.append(word)
                return answer(request)
        return answer_by_brain(request)

    def count(self, word: str) -> int:
        return self.asked.count(word)


@dataclass
class Served:
    """The product, its model, and a client."""

    product: Product
    stub: StubServer
    brain: Brain
    client: httpx.Client

    def chat(self, who: str, message: str) -> httpx.Response:
        return self.client.post("chat", json={"message": message, "endUserId": who})

    def stream(self, who: str, message: str) -> list[tuple[str, Any]]:
        """All events of a streamed answer."""
        with self.client.stream("POST", "chat/stream", json={"message": message, "endUserId": who}) as answer:
            assert answer.status_code == 200
            return list(events_of(answer.iter_lines()))

    def said(self, who: str, conversation: str) -> list[dict[str, Any]]:
        """The messages of a conversation."""
        path = f"memory/{self.product.agent_id}/conversations/{conversation}"
        answer = self.client.get(path, params={"endUserId": who})
        assert answer.status_code == 200, answer.text
        return list(answer.json()["results"])

    def only_conversation(self, who: str) -> list[dict[str, Any]]:
        """The messages of the one conversation that the person has."""
        answer = self.client.get(f"memory/{self.product.agent_id}/conversations", params={"endUserId": who})
        (row,) = answer.json()["results"]
        return self.said(who, row["conversationId"])


def events_of(lines: Iterator[str]) -> Iterator[tuple[str, Any]]:
    """The events of a stream: name and data."""
    name = ""
    for line in lines:
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    brain = Brain()
    with (
        StubServer(brain) as stub,
        Product(
            {
                "MATE_MODEL": "openai:stub",
                "OPENAI_BASE_URL": stub.url,
                "MATE_MEMORY_COOLDOWN_MINUTES": "0",
                "MATE_MEMORY_MIN_MESSAGES_FOR_SUMMARIZE": "1",
            }
        ) as product,
        product.client() as client,
    ):
        yield Served(product, stub, brain, client)


# --- many at once -----------------------------------------------------------------------------------------


async def _crowd(served: Served, release: threading.Event) -> tuple[list[int], list[str], list[str]]:
    """The plain requests' statuses while all is open, then what the chats and the streams answered."""
    agent = served.product.agent_id
    async with httpx.AsyncClient(
        base_url=f"{served.product.url}/api/v1/",
        headers=served.product.headers(),
        timeout=120,
        trust_env=False,
        limits=httpx.Limits(max_connections=None),
    ) as client:

        async def chat(number: int) -> str:
            answer = await client.post(
                "chat", json={"message": "Slow-chat, please.", "endUserId": f"crowd-{number}"}
            )
            assert answer.status_code == 200, answer.text
            return str(answer.json()["reply"])

        async def stream(number: int) -> str:
            # Other people than those who chat: what one person says in one conversation is recalled in their next,
            # and would be counted there again.
            body = {"message": "Slow-stream, please.", "endUserId": f"stream-{number}"}
            async with client.stream("POST", "chat/stream", json=body) as answer:
                assert answer.status_code == 200
                lines = [line async for line in answer.aiter_lines()]
            return str(dict(events_of(iter(lines)))["done"]["reply"])

        chats = [asyncio.create_task(chat(number)) for number in range(CROWD)]
        streams = [asyncio.create_task(stream(number)) for number in range(CROWD)]
        try:
            await asyncio.to_thread(
                until,
                lambda: (
                    (served.brain.count("Slow-chat"), served.brain.count("Slow-stream")) == (CROWD, CROWD)
                ),
                what=f"{CROWD} chats and {CROWD} streams at the model",
            )
            plain = [
                await client.get(f"agents/{agent}/workspace/files"),
                await client.get(f"memory/{agent}/conversations", params={"endUserId": "crowd-1"}),
                await client.post(f"memory/{agent}/context", json={"query": "tea", "endUserId": "crowd-1"}),
                await client.post(
                    f"memory/{agent}/turns",
                    json={
                        "conversationId": "plain",
                        "endUserId": "crowd-1",
                        "messages": [{"role": "user", "content": "I am still served."}],
                    },
                ),
            ]
            assert not any(task.done() for task in [*chats, *streams])
        finally:
            release.set()
        return (
            [one.status_code for one in plain],
            await asyncio.gather(*chats),
            await asyncio.gather(*streams),
        )


def test_three_times_the_pools_size_of_slow_turns_leave_room_for_a_plain_request(served: Served) -> None:
    release = threading.Event()
    served.brain.on["Slow-chat"] = lambda _: Say("A slow answer.", wait=release)
    served.brain.on["Slow-stream"] = lambda _: Say("A slowly streamed answer.", wait=release, pause_after=1)
    plain, chats, streams = asyncio.run(_crowd(served, release))
    assert plain == [200, 200, 200, 201]
    assert chats == ["A slow answer."] * CROWD
    assert streams == ["A slowly streamed answer."] * CROWD


def test_a_client_that_goes_away_stops_the_model_and_the_turn_keeps_what_was_said(served: Served) -> None:
    never = threading.Event()
    text = "This answer is never read to its end."
    served.brain.on["Leave-early"] = lambda _: Say(text, wait=never, pause_after=2)
    served.stub.disconnected.clear()
    body = {"message": "Leave-early, please.", "endUserId": "leaver"}
    with served.client.stream("POST", "chat/stream", json=body) as answer:
        heard = ""
        for name, data in events_of(answer.iter_lines()):
            heard += data["text"] if name == "delta" else ""
            if len(heard) >= 16:
                break
    assert served.stub.disconnected.wait(60), "the model's connection stayed open"
    question, said = until(
        lambda: rows if len(rows := served.only_conversation("leaver")) == 2 else None,
        what="the turn's end",
    )
    assert question["content"] == "Leave-early, please."
    assert not question["failed"]
    assert said["failed"]
    assert said["content"]
    assert text.startswith(said["content"])
    assert len(said["content"]) >= len(heard)


# --- a database that restarts -----------------------------------------------------------------------------


def _is_clear(answer: httpx.Response) -> bool:
    """Whether a request was answered, or refused as the contract has it."""
    if answer.status_code in {200, 201}:
        return True
    return (
        answer.status_code == 503
        and answer.headers["Content-Type"] == "application/problem+json"
        and answer.json()["code"] == "database_unavailable"
    )


def test_a_database_that_restarts_costs_clear_refusals_and_no_process(served: Served) -> None:
    agent, before = served.product.agent_id, served.product.pids()
    paths = (f"agents/{agent}/workspace/files", f"memory/{agent}/conversations?endUserId=restart")
    back = threading.Event()
    seen: list[httpx.Response] = []

    def ask(path: str) -> None:
        with served.product.client() as client:
            while not back.is_set():
                seen.append(client.get(path))

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask, path) for path in paths * 2]
        try:
            until(lambda: len(seen) > 20, what="requests before the restart")
            embedded.stop(served.product.data_dir)
            until(lambda: any(one.status_code == 503 for one in list(seen)), what="a refusal meanwhile")
        finally:
            embedded.ensure_running(served.product.data_dir)
            back.set()
        for one in asking:
            one.result()
    unclear = [(one.status_code, one.text[:300]) for one in seen if not _is_clear(one)]
    assert not unclear, f"{len(unclear)} of {len(seen)}: {unclear[:3]}"
    until(lambda: served.client.get(paths[0]).status_code == 200, what="an answer after the restart")
    assert {served.client.get(path).status_code for path in paths * 20} == {200}
    record(served.client, agent, "restart", "talk", ["I prefer trains to planes since last year."])
    until(
        lambda: any("trains" in text for text in files_of(served.client, agent, "restart").values()),
        what="extraction after the restart",
    )
    assert served.product.pids() == before


def test_after_a_restart_that_nobody_noticed_the_very_first_requests_are_answered(served: Served) -> None:
    path = f"agents/{served.product.agent_id}/workspace/files"

    def ask(_: int) -> int:
        with served.product.client() as client:
            return client.get(path).status_code

    with ThreadPoolExecutor(2 * settings.POOL_SIZE) as pool:
        list(pool.map(ask, range(8 * settings.POOL_SIZE)))  # all connections of the pool have been used
        embedded.stop(served.product.data_dir)
        embedded.ensure_running(served.product.data_dir)
    # One after the other: each meets what the pool hands out first, with nobody else to clear it away.
    assert [ask(number) for number in range(2 * settings.POOL_SIZE)] == [200] * 2 * settings.POOL_SIZE


# --- bad input --------------------------------------------------------------------------------------------


def _problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["Content-Type"] == "application/problem+json", answer.text[:300]
    return answer.status_code, answer.json()["code"]


def test_a_message_of_two_megabytes_is_too_large_on_every_way_in(served: Served) -> None:
    long = "a" * (2 * 1024 * 1024)
    turns = f"memory/{served.product.agent_id}/turns"
    message = {"role": "user", "content": long}
    body = {"conversationId": "big", "endUserId": "big", "messages": [message]}
    assert _problem(served.client.post(turns, json=body)) == (413, "message_too_large")
    for route in ("chat", "chat/stream"):
        answer = served.client.post(route, json={"message": long, "endUserId": "big"})
        assert _problem(answer) == (413, "message_too_large")
    nine = served.client.post(
        "chat", content=b'{"message": "' + b"a" * (9 * 1024 * 1024) + b'"}', headers=_JSON
    )
    assert _problem(nine) == (413, "body_too_large")


_JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b'{"message": "caf\xe9"}', "bad_encoding"),
        (b'{"message": "\xed\xa0\x80"}', "bad_encoding"),
        (b'{"message": "half', "bad_json"),
        (b'{"message": NaN}', "bad_json"),
    ],
    ids=["Latin-1", "a lone surrogate", "half", "NaN"],
)
def test_a_body_that_is_not_json_in_utf8_is_told(served: Served, content: bytes, code: str) -> None:
    for route in ("chat", "chat/stream"):
        assert _problem(served.client.post(route, content=content, headers=_JSON)) == (400, code)


# --- a model that fails -----------------------------------------------------------------------------------

FAILURES: dict[str, tuple[Reply, int, str]] = {
    "is away": (Fail(503), 503, "model_unavailable"),
    "says it took too long": (Fail(408), 503, "model_timeout"),
    "is busy": (Fail(429), 503, "model_rate_limited"),
    "wants another key": (Fail(401), 502, "model_auth"),
    "answers rubbish": (Raw(b"<html>rubbish</html>", content_type="text/html"), 503, "model_bad_answer"),
    "dies before it answers": (Say("Never heard.", drop_after=0), 503, "model_unavailable"),
}


@pytest.mark.parametrize("how", FAILURES)
def test_a_model_that_fails_is_a_clear_outcome_and_the_question_is_kept(served: Served, how: str) -> None:
    reply, status, code = FAILURES[how]
    word = f"Fails-{code}-{len(how)}"
    served.brain.on[word] = lambda _: reply
    answer = served.chat(f"{word} chat", f"{word}, please.")
    assert _problem(answer) == (status, code)
    assert answer.headers.get("Retry-After") == ("5" if status == 503 else None)
    (question,) = served.only_conversation(f"{word} chat")
    assert question["content"] == f"{word}, please."
    events = served.stream(f"{word} stream", f"{word}, please.")
    assert [name for name, _ in events] == ["session", "recall", "error"]
    assert events[-1][1]["code"] == code
    assert events[-1][1]["retryable"] is (status == 503)
    (question,) = served.only_conversation(f"{word} stream")
    assert question["content"] == f"{word}, please."


def test_a_stream_that_dies_half_way_says_so_and_keeps_the_half(served: Served) -> None:
    text = "Half of this is heard and half is not."
    served.brain.on["Dies-half-way"] = lambda _: Say(text, drop_after=2)
    events = served.stream("half", "Dies-half-way, please.")
    heard = "".join(data["text"] for name, data in events if name == "delta")
    assert heard
    assert text.startswith(heard)
    assert heard != text
    assert events[-1][0] == "error"
    assert events[-1][1]["retryable"] is True
    question, said = served.only_conversation("half")
    assert not question["failed"]
    assert (said["content"], said["failed"]) == (heard, True)
    # The next turn of the conversation does not read the half as an answer.
    served.brain.on["Goes-on"] = lambda request: Say("\n".join(map(str, request.messages)))
    again = served.client.post(
        "chat",
        json={
            "message": "Goes-on, please.",
            "endUserId": "half",
            "conversationId": events[0][1]["conversationId"],
        },
    )
    assert heard not in again.json()["reply"]
    assert "Dies-half-way, please." in again.json()["reply"]


def test_a_model_that_never_answers_is_given_up(acme: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(llm, "CHAT_TIMEOUT_S", 0.3)
    with StubServer([Say("Too late.", wait=threading.Event())]) as stub:
        monkeypatch.setattr(settings, "MATE_MODEL", "openai:stub")
        monkeypatch.setattr(settings, "OPENAI_BASE_URL", stub.url)
        answer = acme.bob.client().post(
            "/api/v1/chat", {"agentId": acme.agent_id, "message": "Hello?", "endUserId": "nora"}
        )
        assert answer.status_code == 503
        assert answer.json()["code"] == "model_timeout"
        assert stub.disconnected.wait(60), "the model's connection stayed open"


# --- tools ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["chat", "stream"])
def test_a_tool_call_over_the_real_wire_writes_this_persons_file_only(served: Served, route: str) -> None:
    word, who, name = f"Writes-by-{route}", f"writer by {route}", "memory/2026-01-31.md"

    def answer(request: Request) -> Reply:
        if request.roles[-1] == "tool":
            return Say("It is written.")
        return Say(
            tools=(Use("write_workspace_memory_file", {"filename": name, "content": f"# By {route}\n"}),)
        )

    served.brain.on[word] = answer
    if route == "chat":
        assert served.chat(who, f"{word}, please.").json()["reply"] == "It is written."
    else:
        events = served.stream(who, f"{word}, please.")
        tools = [(data["name"], data["status"]) for event, data in events if event == "tool"]
        assert tools == [("write_workspace_memory_file", "started"), ("write_workspace_memory_file", "ended")]
        assert events[-1][1]["reply"] == "It is written."
    path = f"agents/{served.product.agent_id}/workspace/files/{name}"
    assert served.client.get(path, params={"endUserId": who}).json()["content"] == f"# By {route}\n"
    assert _problem(served.client.get(path, params={"endUserId": "somebody else"})) == (404, "file_not_found")
    assert _problem(served.client.get(path, params={"bucket": "shared"})) == (404, "file_not_found")
