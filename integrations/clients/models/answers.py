"""What goes into a model call and what comes out of it."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Generic, Literal, TypeVar

from pydantic import BaseModel

T = TypeVar("T", bound=BaseModel)


@dataclass(frozen=True)
class Usage:
    """Tokens of all requests of a call.

    Cached ones are part of `input_tokens`. `cost_usd` is None where unknown.
    """

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: Decimal | None = None


@dataclass(frozen=True)
class Answer:
    """`was_cut`: the model stopped at `max_tokens`, in the middle of what it had to say."""

    text: str
    usage: Usage
    model_name: str
    was_cut: bool = False


@dataclass(frozen=True)
class TypedAnswer(Generic[T]):
    value: T
    usage: Usage
    model_name: str


@dataclass(frozen=True)
class ChatMessage:
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool that was run: arguments as JSON, the result as the model was shown it, and how
    long it took.
    """

    name: str
    args_json: str
    result_text: str
    ms: int


@dataclass(frozen=True)
class ChatAnswer:
    """The model's last word, without what it said before its tool calls."""

    text: str
    usage: Usage
    model_name: str
    tool_calls: tuple[ToolCall, ...] = ()
    was_cut: bool = False


@dataclass(frozen=True)
class Delta:
    text: str


@dataclass(frozen=True)
class ToolStarted:
    name: str
    args_json: str


@dataclass(frozen=True)
class ToolEnded:
    name: str
    result_text: str
    ms: int


@dataclass(frozen=True)
class Finished:
    answer: ChatAnswer


StreamEvent = Delta | ToolStarted | ToolEnded | Finished
