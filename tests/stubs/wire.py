"""OpenAI's Chat Completions wire format from the server's side: replies, and the bodies made of them."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

PIECE = 8  # characters in one streamed delta


@dataclass(frozen=True)
class Use:
    """A call of a tool that the model asks for. `arguments` may be broken JSON on purpose, as a string."""

    name: str
    arguments: dict[str, Any] | str

    @property
    def json(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)


@dataclass(frozen=True)
class Say:
    """An answer, streamed when the request asks for it.

    `wait`: nothing is sent before the event is set. `pause_after`: that many deltas are sent, then the
    event of `wait` is awaited. `drop_after`: the connection is cut after that many deltas (0: before the
    first byte of the answer).
    """

    text: str = ""
    tools: tuple[Use, ...] = ()
    finish_reason: str | None = None
    prompt_tokens: int = 100
    completion_tokens: int = 10
    wait: threading.Event | None = None
    pause_after: int | None = None
    drop_after: int | None = None


@dataclass(frozen=True)
class Fail:
    """An error in OpenAI's form."""

    status: int
    code: str | None = None
    message: str = "The stub was told to fail."
    retry_after_s: int | None = None


@dataclass(frozen=True)
class Raw:
    """Any body at all: rubbish, or another maker's wire format."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"
    wait: threading.Event | None = None


Reply = Say | Fail | Raw


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.body.get("messages", []))

    @property
    def roles(self) -> list[str]:
        return [message["role"] for message in self.messages]

    @property
    def is_stream(self) -> bool:
        return bool(self.body.get("stream"))

    @property
    def tool_names(self) -> list[str]:
        return [tool["function"]["name"] for tool in self.body.get("tools", [])]

    def text(self, role: str) -> str:
        """The text of the last message of `role`, or ""."""
        texts = [text_of(message) for message in self.messages if message["role"] == role]
        return texts[-1] if texts else ""


@dataclass
class _Ids:
    """Numbers for what the wire wants an id for; counted, so that a run repeats."""

    count: int = field(default=0)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self, prefix: str) -> str:
        with self.lock:
            self.count += 1
            return f"{prefix}{self.count:08d}"


_IDS = _Ids()


def completion(request: Request, reply: Say) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.tools:
        message["tool_calls"] = [_tool_call(use) for use in reply.tools]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    return {**_envelope(request, "chat.completion"), "choices": [choice], "usage": _usage(reply)}


def chunks(request: Request, reply: Say) -> Iterator[dict[str, Any]]:
    """The role, the text in deltas, each tool call as a head and fragments of its arguments, the end, the
    usage.
    """
    base = _envelope(request, "chat.completion.chunk")
    wants_usage = bool((request.body.get("stream_options") or {}).get("include_usage"))
    if wants_usage:
        base["usage"] = None

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield chunk({"content": piece})
    for index, use in enumerate(reply.tools):
        call = _tool_call(use)
        head = {**call, "index": index, "function": {"name": use.name, "arguments": ""}}
        yield chunk({"tool_calls": [head]})
        for piece in _pieces(call["function"]["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish_reason(reply))
    if wants_usage:
        yield {**base, "choices": [], "usage": _usage(reply)}


def _envelope(request: Request, kind: str) -> dict[str, Any]:
    return {"id": _IDS.next("chatcmpl-"), "object": kind, "created": 1, "model": request.body["model"]}


def _tool_call(use: Use) -> dict[str, Any]:
    return {
        "id": _IDS.next("call_"),
        "type": "function",
        "function": {"name": use.name, "arguments": use.json},
    }


def _usage(reply: Say) -> dict[str, int]:
    return {
        "prompt_tokens": reply.prompt_tokens,
        "completion_tokens": reply.completion_tokens,
        "total_tokens": reply.prompt_tokens + reply.completion_tokens,
    }


def _finish_reason(reply: Say) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tools else "stop")


def _pieces(text: str) -> list[str]:
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def text_of(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def complaint(request: Request) -> str | None:
    """What the real service would refuse in this request, or None. Another maker's path is not judged."""
    if not request.path.endswith("/chat/completions"):
        return None
    if not request.body.get("model") or not request.messages:
        return "model and messages are required"
    asked: set[str] = set()
    for message in request.messages:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in asked:
                return "a tool result without the call it answers"
            asked.discard(message["tool_call_id"])
        elif asked:
            return f"tool calls without results: {sorted(asked)}"
        else:
            asked = {call["id"] for call in message.get("tool_calls") or []}
    return f"tool calls without results: {sorted(asked)}" if asked else None
