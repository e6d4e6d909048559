"""Answering a turn: at once, or as it is written.

The question is stored and the turn opened before the model is asked, and no database connection is held while it
answers. Whatever happens then, the turn is closed with what was said and why it ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from asgiref.sync import sync_to_async
from pydantic_ai import Tool

from integrations.clients.errors import ProviderError
from integrations.clients.models.answers import (
    ChatAnswer,
    Delta,
    Finished,
    StreamEvent,
    ToolEnded,
    ToolStarted,
)
from integrations.clients.models.prices import cost_usd
from memory.models import Message, Turn
from memory.prompts.reply import Reply as ReplyPrompt
from memory.prompts.reply import ReplyGiven, Said
from memory.services.context import ContextWindow, build_context, emergency
from memory.services.recall import search_memory
from memory.services.turns import Begun, Outcome, begin_turn, finish_turn
from memory.tools import ToolRun, agent_tools, outside_tools
from workspaces import llm
from workspaces.access import Opened
from workspaces.queries import owner_name
from workspaces.tenancy import tenant

log = structlog.get_logger(__name__)

_RULES_CHUNK: Final = 24
"""Characters of one delta of an answer by rules, so that a stream looks like one."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A finished turn, with all that an answer tells."""

    begun: Begun
    message: Message | None
    text: str
    context: ContextWindow
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream; `data` is JSON."""

    name: str
    data: dict[str, Any] = field(default_factory=dict)


def answer_turn(opened: Opened, *, text: str, conversation_id: str | None, source: str) -> Reply:
    """The agent's answer. Raises `ProviderError` after the turn is closed as failed."""
    begun = begin_turn(opened, conversation_id=conversation_id, text=text, source=source)
    context: ContextWindow | None = None
    try:
        context = _context(begun, begun.question.content)
        answer, context = _ask(begun, context)
        outcome = _outcome(begun, context, answer)
        message = finish_turn(begun, outcome)
    except BaseException as error:
        _close_broken(begun, context, error, said="")
        raise
    return Reply(begun, message, answer.text, context, outcome)


def _ask(begun: Begun, context: ContextWindow) -> tuple[ChatAnswer, ContextWindow]:
    model = _model(begun)
    if model == llm.RULES:
        return _by_rules(begun, context), context
    tools = tools_of(begun, context)
    try:
        return _call(begun, context, model, tools), context
    except ProviderError as error:
        if error.kind != "context_too_large":
            raise
    # Stage 2: the provider's own limit is smaller than ours. No further model call but the one retry.
    smaller = emergency(context)
    return _call(begun, smaller, model, tools), smaller


def _call(begun: Begun, context: ContextWindow, model: str, tools: Sequence[Tool[Any]]) -> ChatAnswer:
    return llm.chat(
        begun.own, model=model, system=context.system_prompt, messages=context.messages, tools=tools
    )


# --- streaming --------------------------------------------------------------------------------------------


async def stream_turn(begun: Begun) -> AsyncGenerator[Event, None]:
    """The events of a turn that has begun: session, recall, delta, tool, usage, memory, done or error.

    When the reader goes away the model's call is stopped and the turn closed as cancelled, with what was said.
    """
    said: list[str] = []
    context: ContextWindow | None = None
    is_closed = False
    try:
        yield Event("session", {"conversationId": begun.conversation.external_id, "turnId": begun.turn_id})
        context = await sync_to_async(_context)(begun, begun.question.content)
        yield Event("recall", _recall_event(context))
        answer: ChatAnswer | None = None
        async with aclosing(_events(begun, context)) as events:
            async for event in events:
                if isinstance(event, Finished):
                    answer = event.answer
                elif isinstance(event, Delta):
                    said.append(event.text)
                    yield Event("delta", {"text": event.text})
                else:
                    yield _tool_event(event)
        if answer is None:
            raise ProviderError("The model's answer ended early.", retryable=True, kind="bad_answer")
        outcome = _outcome(begun, context, answer)
        message = await sync_to_async(finish_turn)(begun, outcome)
        is_closed = True
        yield Event("usage", usage_of(outcome))
        yield Event("memory", {"queued": True, "written": _written(answer)})
        yield Event("done", {"reply": Reply(begun, message, answer.text, context, outcome)})
    except ProviderError as error:
        await sync_to_async(_close_broken)(begun, context, error, said="".join(said))
        is_closed = True
        yield Event(
            "error", {"code": f"model_{error.kind}", "detail": str(error), "retryable": error.retryable}
        )
    except Exception as error:
        log.exception("stream.broken", turn=begun.turn_id)
        await sync_to_async(_close_broken)(begun, context, error, said="".join(said))
        is_closed = True
        yield Event(
            "error", {"code": "internal_error", "detail": "Something broke on our side; it has been logged."}
        )
    except (asyncio.CancelledError, GeneratorExit) as gone:
        if not is_closed:
            # Shielded: the task is being cancelled, and the turn must be closed all the same.
            await asyncio.shield(sync_to_async(_close_broken)(begun, context, gone, said="".join(said)))
        raise


async def _events(begun: Begun, context: ContextWindow) -> AsyncGenerator[StreamEvent, None]:
    model = _model(begun)
    if model == llm.RULES:
        answer = await sync_to_async(_by_rules)(begun, context)
        for start in range(0, len(answer.text), _RULES_CHUNK):
            yield Delta(answer.text[start : start + _RULES_CHUNK])
        yield Finished(answer)
        return
    tools = tools_of(begun, context)
    has_spoken = False
    try:
        async with aclosing(_stream(begun, context, model, tools)) as events:
            async for event in events:
                has_spoken = True
                yield event
    except ProviderError as error:
        if error.kind != "context_too_large" or has_spoken:
            raise
    else:
        return
    async with aclosing(_stream(begun, emergency(context), model, tools)) as events:
        async for event in events:
            yield event


def _stream(
    begun: Begun, context: ContextWindow, model: str, tools: Sequence[Tool[Any]]
) -> AsyncGenerator[StreamEvent, None]:
    return llm.stream_chat(
        begun.own, model=model, system=context.system_prompt, messages=context.messages, tools=tools
    )


def _tool_event(event: StreamEvent) -> Event:
    if isinstance(event, ToolStarted):
        return Event("tool", {"name": event.name, "status": "started", "arguments": event.args_json[:2000]})
    assert isinstance(event, ToolEnded)  # noqa: S101 - the only kind that is left
    return Event(
        "tool",
        {"name": event.name, "status": "ended", "ms": event.ms, "result": event.result_text[:2000]},
    )


# --- parts ------------------------------------------------------------------------------------------------


def _context(begun: Begun, text: str) -> ContextWindow:
    return build_context(begun.opened, query=text, conversation=begun.conversation, before=begun.question.pk)


def _model(begun: Begun) -> str:
    return llm.model_in_force(begun.opened.agent.model)


def tools_of(begun: Begun, context: ContextWindow) -> list[Tool[Any]]:
    """The agent's tools, bound to this run's agent and owner, and those that plugins give it."""
    own = agent_tools(ToolRun.of(begun.opened, settings=context.settings, search=search_memory))
    return [*own, *outside_tools(context.recalled.tools, taken={tool.name for tool in own})]


def _by_rules(begun: Begun, context: ContextWindow) -> ChatAnswer:
    """The answer without a model: what is known, quoted; never invented."""
    with tenant(begun.opened.reach):
        called = owner_name(begun.own.workspace_id, begun.own.owner_key)
    given = ReplyGiven(
        system=context.system_prompt,
        recalled=tuple(
            f"({item.at[:10]}) {item.text}" if item.at else item.text for item in context.recalled.items
        ),
        history=tuple(Said(one.role, one.text) for one in context.history),
        message=begun.question.content,
        owner=called,
    )
    return ChatAnswer(text=ReplyPrompt().rules(given).text, usage=llm.NO_USAGE, model_name=llm.RULES)


def _outcome(begun: Begun, context: ContextWindow, answer: ChatAnswer) -> Outcome:
    model = _model(begun)
    return Outcome(
        status=Turn.Status.ANSWERED,
        text=answer.text,
        model=model,
        items=context.recalled.items,
        providers=context.recalled.providers,
        window=context.shown(),
        tools=tuple({"name": call.name, "ms": call.ms} for call in answer.tool_calls),
        input_tokens=answer.usage.input_tokens,
        output_tokens=answer.usage.output_tokens,
        cost_usd=None if model == llm.RULES else cost_usd(model, answer.usage),
    )


def _close_broken(begun: Begun, context: ContextWindow | None, error: BaseException, *, said: str) -> None:
    is_cancelled = isinstance(error, (asyncio.CancelledError, GeneratorExit))
    kind = f"model_{error.kind}" if isinstance(error, ProviderError) else type(error).__name__
    outcome = Outcome(
        status=Turn.Status.CANCELLED if is_cancelled else Turn.Status.FAILED,
        text=said,
        model=_model(begun),
        items=context.recalled.items if context else (),
        providers=context.recalled.providers if context else (),
        window=context.shown() if context else {},
        error="the reader went away" if is_cancelled else f"{kind}: {error}",
    )
    try:
        finish_turn(begun, outcome)
    except Exception as second:
        log.warning("turn.not_closed", turn=begun.turn_id, exc_info=second)


def _recall_event(context: ContextWindow) -> dict[str, Any]:
    return {"items": context.recalled.items, "providers": context.recalled.providers}


def usage_of(outcome: Outcome) -> dict[str, Any]:
    """What a turn used, as answers tell it."""
    used: dict[str, Any] = {"inputTokens": outcome.input_tokens, "outputTokens": outcome.output_tokens}
    if outcome.cost_usd is not None:
        used["cost"] = float(outcome.cost_usd)
    return used


def _written(answer: ChatAnswer) -> list[str]:
    return [call.name for call in answer.tool_calls if call.name.startswith(("write_", "edit_"))]
