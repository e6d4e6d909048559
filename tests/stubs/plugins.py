"""A plugin whose every hook a test scripts, and a wiki that speaks HTTP on this machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, Field, SecretStr

from memory.providers.base import Asked, ProviderTool
from memory.types import RecallItem, SaidTurn
from workspaces.services.plugins import join_plugin, leave_plugin
from workspaces.types import BucketRef


class Sample:
    """A plugin that does what its test says; without a word it answers one item."""

    kind: ClassVar[str] = "sample"
    title: ClassVar[str] = "Sample"
    about: ClassVar[str] = "Answers what its test says."

    class Config(BaseModel):
        baseUrl: str = Field("http://127.0.0.1", description="Where it is.", pattern="^https?://")
        apiKey: SecretStr | None = Field(None, description="Its key.")
        maxResults: int = Field(5, ge=1, le=50, description="Items of an answer.")
        timeoutMs: int | None = Field(None, ge=1, description="Its own deadline.")
        exact: bool = Field(False, description="Only what fits exactly.")

    on_prefetch: ClassVar[Callable[[Any, Asked], Any]]
    on_check: ClassVar[Callable[[Any], str]]
    on_sync: ClassVar[Callable[[BucketRef, SaidTurn], None]]
    given_tools: ClassVar[list[ProviderTool]]
    block: ClassVar[str]
    made: ClassVar[list[Any]]

    @classmethod
    def reset(cls) -> None:
        cls.on_prefetch = lambda self, asked: [item(f"Sample knows of {asked.query}")]
        cls.on_check = lambda config: "It answers."
        cls.on_sync = lambda own, turn: None
        cls.given_tools = []
        cls.block = ""
        cls.made = []

    def __init__(self, config: Any) -> None:
        self.name = self.kind
        self.config = config
        self.timeout_ms = config.timeoutMs
        self.made.append(config)

    @classmethod
    def make(cls, config: Any) -> Sample:
        return cls(config)

    @classmethod
    def check(cls, config: Any) -> str:
        return cls.on_check(config)

    def prefetch(self, asked: Asked) -> Any:
        return type(self).on_prefetch(self, asked)

    def system_prompt_block(self) -> str:
        return self.block

    def sync_turn(self, own: BucketRef, turn: SaidTurn) -> None:
        type(self).on_sync(own, turn)

    def tools(self) -> list[ProviderTool]:
        return self.given_tools


Sample.reset()


def item(text: Any = "Tea is at four.", **more: Any) -> RecallItem:
    """An item as a plugin answers it."""
    return RecallItem(**({"id": "1", "kind": "page", "text": text, "score": 0.5, "scope": "TEAM"} | more))


@contextmanager
def joined(*kinds: Any) -> Iterator[None]:
    """These kinds are installed until the end."""
    for kind in kinds:
        join_plugin(kind)
    try:
        yield
    finally:
        for kind in kinds:
            leave_plugin(kind.kind)


class WikiServer:
    """`GET /search?q=&limit=` → `{"pages": [{id, title, text, score}]}`; asks for its key when it has one."""

    def __init__(self, pages: list[dict[str, Any]], *, key: str = "") -> None:
        self.pages = pages
        self.key = key
        self.asked: list[str] = []
        wiki = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
                wiki.asked.append(query["q"][0])
                may = not wiki.key or self.headers.get("Authorization") == f"Bearer {wiki.key}"
                body = json.dumps({"pages": wiki.pages[: int(query["limit"][0])]} if may else {}).encode()
                self.send_response(200 if may else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> WikiServer:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._server.shutdown()
        self._server.server_close()
