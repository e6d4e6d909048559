"""The web process's handler: plain requests in threads, streams in the loop."""

from __future__ import annotations

import asyncio
import contextvars
import json
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from django.db import connection, connections
from django.http import HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from config.serving import Handler

left = contextvars.ContextVar("left", default="nothing")
pytestmark = pytest.mark.usefixtures("routes")


class Seen:
    """What the views below met."""

    ended = threading.Event()
    is_closed: Callable[[], bool] | None = None
    worked = 0


def plain(request: HttpRequest) -> HttpResponse:
    found, thread = left.get(), threading.current_thread().name
    left.set("something")
    Seen.worked += 1
    return JsonResponse({"said": request.body.decode(), "found": found, "thread": thread})


def fails(request: HttpRequest) -> HttpResponse:
    raise RuntimeError("a fault of ours")


def holding(request: HttpRequest) -> HttpResponse:
    connection.ensure_connection()
    held = connection.connection
    assert held is not None
    Seen.is_closed = lambda: held.closed
    return HttpResponse("held")


def streamed(request: HttpRequest) -> StreamingHttpResponse:
    async def parts() -> AsyncGenerator[bytes, None]:
        try:
            yield b"one "
            yield b"two"
            if request.GET.get("endless"):
                await asyncio.Event().wait()
        finally:
            Seen.ended.set()

    return StreamingHttpResponse(parts(), content_type="text/plain")


urlpatterns = [path(view.__name__, csrf_exempt(view)) for view in (plain, fails, holding, streamed)]
handler500 = "config.api.server_error"


@pytest.fixture
def routes(settings: Any) -> None:
    settings.ROOT_URLCONF = __name__
    settings.ALLOWED_HOSTS = ["localhost"]
    Seen.ended, Seen.is_closed, Seen.worked = threading.Event(), None, 0


class Client:
    """One request as the server hands it on. It leaves when `leaves` says so of what was sent."""

    def __init__(
        self,
        where: str,
        body: bytes = b"",
        *,
        leaves: Callable[[bytes], bool] | None = None,
        leaves_after: int = 2,
    ) -> None:
        self.path, _, self.query = where.partition("?")
        self.parts = [body[:3], body[3:]][:leaves_after]
        self.leaves = leaves
        self.read = 0
        self.status = 0
        self.heard = b""
        self.is_whole = False

    async def ask(self, handler: Handler) -> None:
        self.gone = asyncio.Event()
        scope = {
            "type": "http", "method": "POST", "path": self.path, "query_string": self.query.encode(),
            "headers": [(b"host", b"localhost")], "server": ("localhost", 80), "client": ("127.0.0.1", 1),
        }  # fmt: skip
        await handler(scope, self.receive, self.send)

    async def receive(self) -> dict[str, Any]:
        if self.parts:
            self.read += 1
            return {"type": "http.request", "body": self.parts.pop(0), "more_body": self.read < 2}
        if self.read == 2:
            await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        self.status = message.get("status", self.status)
        self.heard += message.get("body", b"")
        self.is_whole = message["type"] == "http.response.body" and not message.get("more_body")
        if self.leaves is not None and self.leaves(self.heard):
            self.gone.set()


def ask(where: str, body: bytes = b"", **options: Any) -> Client:
    client = Client(where, body, **options)
    asyncio.run(asyncio.wait_for(client.ask(Handler()), 60))
    return client


def test_a_plain_request_is_answered_by_a_thread() -> None:
    answer = ask("/plain", b"a body in two parts")
    told = json.loads(answer.heard)
    assert (answer.status, answer.is_whole, told["said"]) == (200, True, "a body in two parts")
    assert told["thread"].startswith("request")


def test_what_one_request_leaves_in_its_context_the_next_does_not_find() -> None:
    async def twice() -> list[Client]:
        handler, clients = Handler(), [Client("/plain"), Client("/plain")]
        for client in clients:
            await client.ask(handler)
        return clients

    told = [json.loads(client.heard) for client in asyncio.run(twice())]
    assert told[0]["thread"] == told[1]["thread"]
    assert told[1]["found"] == "nothing"


def test_a_fault_of_ours_is_an_answer() -> None:
    answer = ask("/fails")
    assert answer.status == 500
    assert json.loads(answer.heard)["code"] == "internal_error"


@pytest.mark.django_db(transaction=True)
def test_the_connection_is_given_back_before_the_answer_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", 0)

    def look(_: bytes) -> bool:
        assert Seen.is_closed is not None
        seen.append(Seen.is_closed())
        return False

    answer = ask("/holding", leaves=look)
    assert answer.heard == b"held"
    assert seen[0] is True


def test_a_stream_is_sent_to_its_end() -> None:
    answer = ask("/streamed")
    assert (answer.status, answer.heard, answer.is_whole) == (200, b"one two", True)
    assert Seen.ended.is_set()


def test_a_stream_ends_when_its_reader_leaves() -> None:
    answer = ask("/streamed?endless=1", leaves=lambda heard: heard.endswith(b"two"))
    assert not answer.is_whole
    assert Seen.ended.is_set()


def test_a_plain_request_is_worked_on_to_its_end_though_its_client_has_left() -> None:
    ask("/plain", leaves=lambda heard: True)
    assert Seen.worked == 1


def test_a_client_that_leaves_before_its_body_is_whole_is_not_answered() -> None:
    client = Client("/plain", b"never whole", leaves_after=1)
    asyncio.run(client.ask(Handler()))
    assert (client.status, Seen.worked) == (0, 0)
