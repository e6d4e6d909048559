"""One question, one answer: as text, or as a typed value."""

import time
from typing import Any, TypeVar

from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResult, PromptedOutput, ToolOutput
from pydantic_ai.models import Model
from pydantic_ai.settings import ModelSettings

from integrations.clients.errors import ProviderError
from integrations.clients.models.answers import Answer, TypedAnswer, Usage
from integrations.clients.models.errors import provider_errors
from integrations.clients.models.loop import run, run_before_call

T = TypeVar("T", bound=BaseModel)


def ask_text_sync(model: Model, *, system: str, user: str, max_tokens: int, timeout_s: float) -> Answer:
    """The model's answer as it wrote it. One request. Blocks at most `timeout_s`; raises ProviderError."""
    run_before_call()
    result = run(_ask(model, system, user, max_tokens=max_tokens), timeout_s=timeout_s)
    return Answer(result.output, usage_of(result), name_of(model), was_cut=was_cut(result))


def ask_typed_sync(
    model: Model,
    *,
    system: str,
    user: str,
    output_type: type[T],
    max_tokens: int,
    timeout_s: float,
    retries: int,
) -> TypedAnswer[T]:
    """The answer as `output_type`, checked.

    A broken answer is shown to the model with what was wrong, up to `retries` times. A server that refuses
    or fumbles the output tool is asked once more with the schema in the prompt. Blocks at most `timeout_s`
    in all; raises ProviderError.
    """
    run_before_call()
    deadline = time.monotonic() + timeout_s
    try:
        work = _ask(
            model, system, user, max_tokens=max_tokens, output=ToolOutput(output_type), retries=retries
        )
        result = run(work, timeout_s=timeout_s)
    except ProviderError as error:
        left = deadline - time.monotonic()
        may_help = error.kind == "bad_request" or (error.kind == "bad_answer" and error.retryable)
        if not may_help or left <= 0:
            raise
        output = PromptedOutput(output_type)
        work = _ask(model, system, user, max_tokens=max_tokens, output=output, retries=retries)
        result = run(work, timeout_s=left)
    return TypedAnswer(result.output, usage_of(result), name_of(model))


async def _ask(
    model: Model, system: str, user: str, *, max_tokens: int, output: Any = str, retries: int = 0
) -> AgentRunResult[Any]:
    agent = Agent(model, instructions=system or None, output_type=output, retries=retries)
    with provider_errors():
        return await agent.run(user, model_settings=ModelSettings(max_tokens=max_tokens))


def usage_of(result: AgentRunResult[Any]) -> Usage:
    used = result.usage
    return Usage(
        input_tokens=used.input_tokens,
        output_tokens=used.output_tokens,
        cache_read_tokens=used.cache_read_tokens,
        cache_write_tokens=used.cache_write_tokens,
        cost_usd=used.cost,
    )


def name_of(model: Model) -> str:
    """`kind:model`, as asked for: a name for metering, which `cost_usd` knows.

    A compatible server's kind is its own.
    """
    return f"{model.system}:{model.model_name}"


def was_cut(result: AgentRunResult[Any]) -> bool:
    return result.response.finish_reason == "length"
