"""Asking a model on behalf of a bucket: which model, how long, how often, at what cost.

Every question goes through here, so that each is metered under its tenant and purpose. Without a model the
prompt's own rules answer, and say so by the model name `rules`.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, Final, Generic, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.utils import timezone
from pydantic import BaseModel
from pydantic_ai import Tool
from pydantic_ai.models import Model

from integrations.clients.errors import ProviderError
from integrations.clients.models.answers import ChatAnswer, ChatMessage, Finished, StreamEvent, Usage
from integrations.clients.models.ask import ask_text_sync
from integrations.clients.models.build import make_model
from integrations.clients.models.chat import chat_stream, chat_sync
from integrations.clients.models.prices import cost_usd
from workspaces.logic.texts import storable
from workspaces.models import ModelUsage
from workspaces.tenancy import tenant
from workspaces.types import BucketRef, Prompt, UnusableAnswerError

RULES: Final = "rules"
"""The model name of an answer that was made by rules."""

NO_USAGE: Final = Usage(input_tokens=0, output_tokens=0)

BACKGROUND_TIMEOUT_S: Final = 90.0
CHAT_TIMEOUT_S: Final = 120.0
CHAT_MAX_TOKENS: Final = 4096
_TRIES: Final = 2
"""How often a question is asked when the answer cannot be used: once, and once more with what was wrong."""

In = TypeVar("In")
Out = TypeVar("Out", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Answered(Generic[Out]):
    """A typed answer, by which model and prompt version it was made, and what it cost."""

    value: Out
    model: str
    prompt_version: int
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: Decimal | None = None


def model_in_force(agent_model: str) -> str:
    """The model of an agent, else of the installation; `rules` when neither is set."""
    return agent_model or settings.MATE_MODEL or RULES


def ask(
    bucket: BucketRef,
    prompt: Prompt[In, Out],
    given: In,
    *,
    purpose: str,
    model: str,
    max_tokens: int,
    timeout_s: float = BACKGROUND_TIMEOUT_S,
) -> Answered[Out]:
    """The prompt's answer, by the model or by rules. Outside any transaction; holds no connection meanwhile.

    An answer that cannot be used is asked for once more with what was wrong. Raises `ProviderError`.
    """
    if model == RULES:
        return Answered(prompt.rules(given), RULES, prompt.version)
    asked = _Meter(bucket, purpose, model, prompt.version)
    system, user = prompt.system(given), prompt.user(given)
    built = _built(model, timeout_s)
    reason = ""
    for _ in range(_TRIES):
        again = (
            f"\n\nYour last answer could not be used: {reason}. Answer again, only as asked."
            if reason
            else ""
        )
        try:
            with asked.metering() as meter:
                answer = ask_text_sync(
                    built, system=system, user=user + again, max_tokens=max_tokens, timeout_s=timeout_s
                )
                meter.took(answer.usage)
            value = prompt.parse(storable(answer.text))
        except UnusableAnswerError as unusable:
            reason = str(unusable)
            continue
        except ProviderError as error:
            if error.kind != "bad_answer":
                raise
            reason = str(error)
            continue
        return Answered(
            value,
            model,
            prompt.version,
            input_tokens=asked.input_tokens,
            output_tokens=asked.output_tokens,
            cost_usd=asked.cost,
        )
    raise ProviderError(f"The model's answer could not be used: {reason}.", retryable=True, kind="bad_answer")


def chat(
    bucket: BucketRef,
    *,
    model: str,
    system: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool[Any]],
) -> ChatAnswer:
    """A conversation's answer, with tools. Outside any transaction; raises `ProviderError`."""
    built = _built(model, CHAT_TIMEOUT_S)
    with _Meter(bucket, "chat", model, None).metering() as meter:
        answer = chat_sync(
            built,
            system=system,
            messages=messages,
            tools=tools,
            max_tokens=CHAT_MAX_TOKENS,
            timeout_s=CHAT_TIMEOUT_S,
        )
        meter.took(answer.usage)
    return _clean(answer)


async def stream_chat(
    bucket: BucketRef,
    *,
    model: str,
    system: str,
    messages: Sequence[ChatMessage],
    tools: Sequence[Tool[Any]],
) -> AsyncGenerator[StreamEvent, None]:
    """The same as it is written; the last event is `Finished`. Closing the iterator stops the model's call."""
    meter = _Meter(bucket, "chat", model, None)
    began = time.monotonic()
    error = "cancelled"
    # In the request's own thread, since the calls begin by giving its database connection back.
    events = await sync_to_async(chat_stream)(
        _built(model, CHAT_TIMEOUT_S),
        system=system,
        messages=messages,
        tools=tools,
        max_tokens=CHAT_MAX_TOKENS,
        timeout_s=CHAT_TIMEOUT_S,
    )
    try:
        async for event in events:
            if isinstance(event, Finished):
                meter.took(event.answer.usage)
                error = ""
                yield Finished(_clean(event.answer))
            else:
                yield event
    except ProviderError as failed:
        error = failed.kind
        raise
    finally:
        await events.aclose()
        await sync_to_async(meter.record)(ms=round((time.monotonic() - began) * 1000), error=error)


def _clean(answer: ChatAnswer) -> ChatAnswer:
    return replace(answer, text=storable(answer.text))


@functools.lru_cache(maxsize=16)
def _kept(model: str, base_url: str | None, timeout_s: float) -> Model:
    """Kept, since a model holds the connections to its provider; a forked child makes its own."""
    return make_model(model, openai_base_url=base_url, timeout_s=timeout_s)


def _built(model: str, timeout_s: float) -> Model:
    return _kept(model, settings.OPENAI_BASE_URL, timeout_s)


os.register_at_fork(after_in_child=_kept.cache_clear)


class _Meter:
    """Counts what questions cost and writes each down, answered or not."""

    def __init__(self, bucket: BucketRef, purpose: str, model: str, prompt_version: int | None) -> None:
        self.bucket = bucket
        self.purpose = purpose
        self.model = model
        self.prompt_version = prompt_version
        self.input_tokens = 0
        self.output_tokens = 0
        self.cost: Decimal | None = None
        self._last: Usage | None = None

    def metering(self) -> _Metered:
        """Around one question."""
        return _Metered(self)

    def took(self, usage: Usage) -> None:
        """What the answer used."""
        self._last = usage
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        price = cost_usd(self.model, usage)
        if price is not None:
            self.cost = (self.cost or Decimal(0)) + price

    def record(self, *, ms: int, error: str) -> None:
        """Writes one question down, in a transaction of its own."""
        used, self._last = self._last, None
        with tenant(self.bucket):
            ModelUsage.objects.create(
                workspace_id=self.bucket.workspace_id,
                bucket_id=self.bucket.id,
                at=timezone.now(),
                purpose=self.purpose,
                model=self.model[:128],
                prompt_version=self.prompt_version,
                input_tokens=used.input_tokens if used else 0,
                output_tokens=used.output_tokens if used else 0,
                cost_usd=cost_usd(self.model, used) if used else None,
                ms=ms,
                error=error,
            )


class _Metered:
    def __init__(self, meter: _Meter) -> None:
        self._meter = meter
        self._began = 0.0

    def __enter__(self) -> _Meter:
        self._began = time.monotonic()
        return self._meter

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        ms = round((time.monotonic() - self._began) * 1000)
        if error is None or isinstance(error, ProviderError):
            self._meter.record(ms=ms, error=error.kind if error else "")
