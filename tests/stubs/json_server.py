"""A local server that answers JSON by a function of its own, and misbehaves when told to."""

import json
import socket
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Answer:
    """`hangs`: nothing is sent before the client has gone. `drops`: the connection is cut instead."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    hangs: bool = False
    drops: bool = False


def answer_of(body: Any, *, status: int = 200, **headers: str) -> Answer:
    extra = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, json.dumps(body).encode(), extra)


class JsonServer:
    """Answers on `url` until closed. `calls` holds what came in, `failures` what went wrong here."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.failures: list[str] = []
        self.closing = threading.Event()
        self._instead: list[Answer | None] = []
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.stub = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def instead(self, *answers: Answer | None) -> None:
        """What is said to the next calls instead of the truth; None: the truth."""
        with self._lock:
            self._instead.extend(answers)

    def answer(self, call: Call) -> Answer:
        """The truth, by the maker's rules."""
        raise NotImplementedError

    def assert_done(self) -> None:
        """Raises AssertionError when the stub broke, or was told to say something that nobody asked for."""
        assert not self.failures, f"The stub could not answer: {self.failures}"
        assert not self._instead, f"The stub still has {len(self._instead)} answers that nobody asked for."

    def next_answer(self, call: Call) -> Answer:
        with self._lock:
            self.calls.append(call)
            told = self._instead.pop(0) if self._instead else None
            return told if told is not None else self.answer(call)

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
    stub: JsonServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        call = Call(self.command, parts.path, dict(parse_qsl(parts.query)), headers, body)
        try:
            answer = self.server.stub.next_answer(call)
        except Exception as error:  # noqa: BLE001 - told by assert_done, in the thread of the test
            self.server.stub.failures.append(f"{call.method} {call.path}: {error!r}")
            answer = Answer(500)
        if answer.hangs:
            self._wait()
        if answer.hangs or answer.drops:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer.body)))
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _handle  # noqa: N815 - the base class's names

    def _wait(self) -> None:
        self.connection.settimeout(0.02)
        while not self.server.stub.closing.is_set():
            try:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    return
            except TimeoutError:
                continue
            except ConnectionError:
                return
