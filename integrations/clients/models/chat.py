"""A conversation with tools: the whole answer at once, or as it is written."""

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import (
    Agent,
    AgentStreamEvent,
    FunctionToolset,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelRetry,
    PartDeltaEvent,
    PartStartEvent,
    RunContext,
    TextPart,
    TextPartDelta,
    Tool,
    ToolsetTool,
    UsageLimits,
    UserPromptPart,
    WrapperToolset,
)
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings
from pydantic_core import to_json

from integrations.clients.errors import ProviderError
from integrations.clients.models.answers import (
    ChatAnswer,
    ChatMessage,
    Delta,
    Finished,
    StreamEvent,
    ToolCall,
    ToolEnded,
    ToolStarted,
)
from integrations.clients.models.ask import name_of, usage_of, was_cut
from integrations.clients.models.errors import provider_errors
from integrations.clients.models.loop import run, run_before_call, start

Emit = Callable[[StreamEvent], None]

# A model that twice fumbles a tool's arguments often gets them right the third time.
_TOOL_RETRIES = 3


def chat_sync(
    model: Model,
    *,
    system: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool[Any]] = (),
    max_tokens: int,
    timeout_s: float,
    request_limit: int = 8,
) -> ChatAnswer:
    """The answer to the last of `messages`, which must be the user's, with as many tool calls as it takes.

    At most `request_limit` requests; in the last one the model may call no tool, so that it answers.
    `timeout_s` bounds the whole. Plain tools run in worker threads, with the caller's context variables;
    what a tool raises (save `ModelRetry`) ends the call and comes out as it is. A plain tool cannot be
    interrupted: past the deadline it runs to its end, unheard. Raises ProviderError.
    """
    run_before_call()
    work = _chat(_ChatCall(model, system, messages, tools, max_tokens, request_limit), emit=None)
    return run(work, timeout_s=timeout_s)


def chat_stream(
    model: Model,
    *,
    system: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool[Any]] = (),
    max_tokens: int,
    timeout_s: float,
    request_limit: int = 8,
) -> AsyncGenerator[StreamEvent, None]:
    """`chat_sync` as it happens: text as it is written, tools as they start and end, `Finished` last.

    What the model says before a tool call is streamed too, but `Finished.answer.text` is its last word
    only. `before_call` runs now, the request is sent at the first step. Closing the generator (`aclose`, or
    cancelling the task that waits on it) closes the connection to the provider at once. Raises
    ProviderError, also half way.
    """
    run_before_call()
    call = _ChatCall(model, system, messages, tools, max_tokens, request_limit)
    return _stream(call, timeout_s=timeout_s)


@dataclass(frozen=True)
class _ChatCall:
    model: Model
    system: str
    messages: Sequence[ChatMessage]
    tools: Sequence[Tool[Any]]
    max_tokens: int
    request_limit: int

    def __post_init__(self) -> None:
        if not self.messages or self.messages[-1].role != "user":
            raise ValueError("A chat must end with a message of the user.")


async def _stream(call: _ChatCall, *, timeout_s: float) -> AsyncGenerator[StreamEvent, None]:
    """Events made on the models' loop, handed over to the loop of the caller."""
    home = asyncio.get_running_loop()
    deadline = home.time() + timeout_s
    events: asyncio.Queue[StreamEvent | None] = asyncio.Queue()

    def hand_over(event: StreamEvent | None) -> None:
        with contextlib.suppress(RuntimeError):  # the caller's loop is closed: nobody listens
            home.call_soon_threadsafe(events.put_nowait, event)

    def hand_over_the_end(_: "Future[ChatAnswer]") -> None:
        hand_over(None)

    future = start(_chat(call, emit=hand_over))
    future.add_done_callback(hand_over_the_end)
    try:
        while (event := await _next_event(events, deadline=deadline, timeout_s=timeout_s)) is not None:
            yield event
        yield Finished(future.result())
    finally:
        future.cancel()


async def _next_event(
    events: "asyncio.Queue[StreamEvent | None]", *, deadline: float, timeout_s: float
) -> StreamEvent | None:
    try:
        async with asyncio.timeout_at(deadline):
            return await events.get()
    except TimeoutError as error:
        raise ProviderError(
            f"The model did not finish within {timeout_s:g} s.", retryable=True, kind="timeout"
        ) from error


async def _chat(call: _ChatCall, *, emit: Emit | None) -> ChatAnswer:
    """With `emit`, requests are streamed and told as they come."""
    log = _ToolLog(emit)
    toolset = _LoggedTools(FunctionToolset(list(call.tools)), log=log)
    agent = Agent(call.model, instructions=call.system or None, toolsets=[toolset], retries=_TOOL_RETRIES)

    def settings(ctx: RunContext[None]) -> ModelSettings:
        if call.tools and ctx.usage.requests >= call.request_limit - 1:
            return ModelSettings(max_tokens=call.max_tokens, tool_choice="none")
        return ModelSettings(max_tokens=call.max_tokens)

    async def tell(_: RunContext[None], events: AsyncIterable[AgentStreamEvent]) -> None:
        async for event in events:
            if emit is not None and (text := _text_of(event)):
                emit(Delta(text))

    with provider_errors():
        result = await agent.run(
            call.messages[-1].text,
            message_history=_history(call.messages[:-1]),
            model_settings=settings,
            usage_limits=UsageLimits(request_limit=call.request_limit),
            event_stream_handler=tell if emit is not None else None,
        )
    return ChatAnswer(
        text=result.output,
        usage=usage_of(result),
        model_name=name_of(call.model),
        tool_calls=tuple(log.calls),
        was_cut=was_cut(result),
    )


def _history(messages: Sequence[ChatMessage]) -> list[ModelMessage]:
    """Earlier messages as requests and responses.

    Anthropic and Bedrock refuse a conversation that begins with the assistant, as one cut at the front may.
    """
    history: list[ModelMessage] = []
    if messages and messages[0].role == "assistant":
        history.append(ModelRequest(parts=[UserPromptPart("…")]))
    for message in messages:
        if message.role == "user":
            history.append(ModelRequest(parts=[UserPromptPart(message.text)]))
        else:
            history.append(ModelResponse(parts=[TextPart(message.text)]))
    return history


def _text_of(event: AgentStreamEvent) -> str:
    if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
        return event.part.content
    if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
        return event.delta.content_delta
    return ""


@dataclass
class _ToolLog:
    emit: Emit | None
    calls: list[ToolCall] = field(default_factory=list)

    def started(self, name: str, args_json: str) -> float:
        if self.emit is not None:
            self.emit(ToolStarted(name, args_json))
        return time.perf_counter()

    def ended(self, name: str, args_json: str, result_text: str, *, began: float) -> None:
        ms = round((time.perf_counter() - began) * 1000)
        self.calls.append(ToolCall(name, args_json, result_text, ms))
        if self.emit is not None:
            self.emit(ToolEnded(name, result_text, ms))


@dataclass
class _LoggedTools(WrapperToolset[None]):
    """The tools, with each call written down. Arguments that fail their schema never get here."""

    log: _ToolLog

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[None], tool: ToolsetTool[None]
    ) -> Any:
        args_json = _as_text(tool_args)
        began = self.log.started(name, args_json)
        try:
            result: object = await super().call_tool(name, tool_args, ctx, tool)
        except ModelRetry as error:
            self.log.ended(name, args_json, error.message, began=began)
            raise
        self.log.ended(name, args_json, _as_text(result), began=began)
        return result


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else to_json(value, fallback=str).decode()
