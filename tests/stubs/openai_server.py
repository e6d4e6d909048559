"""A local server that speaks OpenAI's Chat Completions wire format, streaming and tool calls included.

In tests, scripted (an unscripted call fails, and `assert_done` says so):

    with StubServer([Say("Hello"), Fail(429, retry_after_s=7)]) as server:
        model = make_model("openai:stub", openai_base_url=server.url, timeout_s=5)

By hand, with a small brain of its own (`brain.py`):

    python -m tests.stubs.openai_server --port 8099
    OPENAI_BASE_URL=http://127.0.0.1:8099/v1 MATE_MODEL=openai:stub …
"""

import argparse
import json
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from tests.stubs.brain import Asked, think
from tests.stubs.wire import Fail, Raw, Reply, Request, Say, Use, chunks, complaint, completion, text_of

__all__ = ["Fail", "Raw", "Request", "Say", "StubServer", "Use", "answer_by_brain"]

OUTPUT_TOOL = "final_result"  # pydantic-ai's name for the tool that carries a typed answer

Script = Sequence[Reply] | Callable[[Request], Reply | None]


class StubServer:
    """Answers by script on `url` until closed.

    `requests` holds what came in, `failures` what went wrong here.
    """

    def __init__(self, script: Script = (), *, port: int = 0) -> None:
        self.requests: list[Request] = []
        self.failures: list[str] = []
        self.asked = threading.Event()  # a request came in
        self.disconnected = threading.Event()  # a client went away before its answer was whole
        self.closing = threading.Event()
        self._answer_of: Callable[[Request], Reply | None] | None = script if callable(script) else None
        self._replies: list[Reply] = [] if callable(script) else list(script)
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", port), _Handler)
        self._http.stub = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def url(self) -> str:
        """What goes into OPENAI_BASE_URL."""
        return f"{self.origin}/v1"

    def add(self, *replies: Reply) -> None:
        with self._lock:
            self._replies.extend(replies)

    def next_reply(self, request: Request) -> Reply:
        with self._lock:
            self.requests.append(request)
            self.asked.set()
            if (wrong := complaint(request)) is not None:
                self.failures.append(wrong)
                return Fail(400, "invalid_request_error", wrong)
            if self._answer_of is not None:
                reply = self._answer_of(request)
            else:
                reply = self._replies.pop(0) if self._replies else None
            if reply is None:
                self.failures.append(f"unscripted call: {request.path} {request.text('user')[:200]!r}")
                return Fail(500, "unscripted", "The stub has no answer for this call.")
            return reply

    def assert_done(self) -> None:
        """Raises AssertionError after an unscripted or malformed call, or while replies are left over."""
        assert not self.failures, f"The stub could not answer: {self.failures}"
        assert not self._replies, f"The stub still has {len(self._replies)} replies that nobody asked for."

    def close(self) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False  # closed only when every answer has ended
    stub: StubServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exc_info()[1]
        if isinstance(error, ConnectionError):
            self.stub.disconnected.set()
        else:
            self.stub.failures.append(f"the stub broke: {error!r}")


class _ClientGoneError(ConnectionError):
    pass


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def do_GET(self) -> None:
        known = urlsplit(self.path).path == "/v1/models"
        listing = {"object": "list", "data": [{"id": "stub", "object": "model", "owned_by": "stub"}]}
        self._send(200 if known else 404, json.dumps(listing if known else {}).encode())

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.path, headers, json.loads(raw))
        reply = self.server.stub.next_reply(request)
        try:
            self._answer(request, reply)
        except (_ClientGoneError, BrokenPipeError, ConnectionResetError):
            self.close_connection = True
            self.server.stub.disconnected.set()

    def _answer(self, request: Request, reply: Reply) -> None:
        if isinstance(reply, Fail):
            error = {"message": reply.message, "type": "stub_error", "param": None, "code": reply.code}
            extra = {} if reply.retry_after_s is None else {"Retry-After": str(reply.retry_after_s)}
            self._send(reply.status, json.dumps({"error": error}).encode(), extra=extra)
        elif isinstance(reply, Raw):
            self._wait(reply.wait)
            self._send(reply.status, reply.body, content_type=reply.content_type)
        elif request.is_stream:
            self._stream(request, reply)
        else:
            self._wait(reply.wait)
            if reply.drop_after is not None:
                self._cut()
                return
            self._send(200, json.dumps(completion(request, reply)).encode())

    def _stream(self, request: Request, reply: Say) -> None:
        if reply.pause_after is None:
            self._wait(reply.wait)
        if reply.drop_after == 0:
            self._cut()
            return
        self._head(200, "text/event-stream; charset=utf-8", {"Transfer-Encoding": "chunked"})
        for count, chunk in enumerate(chunks(request, reply)):
            # the first chunk carries the role only
            if reply.drop_after is not None and count > reply.drop_after:
                self._cut()
                return
            if reply.pause_after is not None and count == reply.pause_after + 1:
                self._wait(reply.wait)
            self._chunk(f"data: {json.dumps(chunk, ensure_ascii=False)}\n\n".encode())
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")

    def _send(
        self,
        status: int,
        body: bytes,
        *,
        content_type: str = "application/json",
        extra: dict[str, str] | None = None,
    ) -> None:
        self._head(status, content_type, {"Content-Length": str(len(body)), **(extra or {})})
        self.wfile.write(body)

    def _head(self, status: int, content_type: str, extra: dict[str, str]) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Connection", "close")
        for name, value in extra.items():
            self.send_header(name, value)
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _cut(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def _wait(self, event: threading.Event | None) -> None:
        """Until `event` is set; a client that goes away meanwhile, or the server's end, ends the answer."""
        if event is None:
            return
        self.connection.settimeout(0)
        try:
            while not event.wait(0.01):
                if self.server.stub.closing.is_set() or self._is_client_gone():
                    raise _ClientGoneError
        finally:
            self.connection.settimeout(None)

    def _is_client_gone(self) -> bool:
        try:
            return not self.connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True


def answer_by_brain(request: Request) -> Reply:
    """What the built-in brain says to `request`.

    A typed answer goes through the tool the client offers for it.
    """
    tools = {
        tool["function"]["name"]: tool["function"]["parameters"] for tool in request.body.get("tools", [])
    }
    last = request.messages[-1]
    thought = think(Asked(request.text("system"), request.text("user"), last["role"], text_of(last), tools))
    if thought.tool_name:
        return Say(tools=(Use(thought.tool_name, thought.tool_arguments),))
    if list(tools) == [OUTPUT_TOOL]:
        return Say(tools=(Use(OUTPUT_TOOL, thought.text),))
    return Say(thought.text)


def main() -> None:
    parser = argparse.ArgumentParser(description="A stand-in for a model, speaking OpenAI's wire format.")
    parser.add_argument("--port", type=int, default=8099)
    server = StubServer(answer_by_brain, port=parser.parse_args().port)
    print(f"OPENAI_BASE_URL={server.url} MATE_MODEL=openai:stub", flush=True)  # noqa: T201
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.close()


if __name__ == "__main__":
    main()
