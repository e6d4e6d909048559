"""Models by name: `openai:…`, `anthropic:…`, `bedrock:…`, and `test:…` for tests.

A maker's SDK costs up to a second to import and much memory, so only that of the model in use is loaded.
"""

import os
import re

from pydantic_ai.models import Model
from pydantic_ai.models.test import TestModel
from pydantic_ai.settings import ModelSettings

from integrations.clients.errors import ProviderError
from integrations.clients.models.errors import provider_errors
from integrations.clients.models.names import check_model_name

_OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_TIMEOUT_S = 10.0

# OpenAI's reasoning families refuse `max_tokens`; many servers that speak its wire know nothing else.
_NEEDS_MAX_COMPLETION_TOKENS = re.compile(r"(^|/)(gpt-([5-9]|\d\d)|o\d)")


def make_model(
    name: str, *, openai_base_url: str | None = None, timeout_s: float, allow_test: bool = False
) -> Model:
    """A model ready to be called, of any thread; keep it, since it holds the connections.

    `timeout_s` bounds one request. The SDKs' own retries are off: who calls decides what is tried again.
    Keys: `OPENAI_API_KEY`, `ANTHROPIC_API_KEY`; Bedrock takes AWS's own variables, files or instance role.
    A server named by `openai_base_url` may need no key. A model used before a fork is not to be used after
    it: make another. Raises ValueError for a bad name, ProviderError (`auth`, `bad_request`) when a key or
    region is missing.
    """
    parts = check_model_name(name, allow_test=allow_test)
    with provider_errors():
        if parts.kind == "openai":
            return _openai(parts.model, base_url=openai_base_url or None, timeout_s=timeout_s)
        if parts.kind == "anthropic":
            return _anthropic(parts.model, timeout_s=timeout_s)
        if parts.kind == "bedrock":
            return _bedrock(parts.model, timeout_s=timeout_s)
        return TestModel(call_tools=[], model_name=parts.model)


def _key(variable: str) -> str:
    key = os.environ.get(variable)
    if not key:
        raise ProviderError(f"{variable} is not set: this model needs a key.", retryable=False, kind="auth")
    return key


def _openai(model: str, *, base_url: str | None, timeout_s: float) -> Model:
    """Chat Completions for all: the wire that every compatible server speaks."""
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIChatModelSettings  # noqa: PLC0415 - see the module's docstring
    from pydantic_ai.profiles.openai import OpenAIModelProfile  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider  # noqa: PLC0415

    settings = OpenAIChatModelSettings(timeout=timeout_s, max_retries=0)
    provider: OpenAIProvider | OpenAICompatibleProvider
    if base_url is None:
        settings["openai_store"] = False  # OpenAI keeps what is sent, unless told not to
        provider = OpenAIProvider(api_key=_key("OPENAI_API_KEY"), base_url=_OPENAI_URL)
    else:
        key = os.environ.get("OPENAI_API_KEY")
        provider = OpenAICompatibleProvider(
            "openai-compatible", base_url=base_url, api_key=key or "no-key-needed"
        )
    profile = OpenAIModelProfile(
        openai_chat_supports_max_completion_tokens=base_url is None
        or bool(_NEEDS_MAX_COMPLETION_TOKENS.search(model)),
        # A stream that ends without one was cut off: half an answer must not be taken for a whole one.
        openai_chat_streaming_requires_finish_reason=True,
    )
    return OpenAIChatModel(model, provider=provider, profile=profile, settings=settings)


def _anthropic(model: str, *, timeout_s: float) -> Model:
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415 - see the module's docstring
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    provider = AnthropicProvider(api_key=_key("ANTHROPIC_API_KEY"))
    return AnthropicModel(model, provider=provider, settings=ModelSettings(timeout=timeout_s, max_retries=0))


def _bedrock(model: str, *, timeout_s: float) -> Model:
    """Converse. boto3 reads `AWS_DEFAULT_REGION` itself, but not `AWS_REGION`, which containers set."""
    import boto3  # noqa: PLC0415 - see the module's docstring
    from botocore.config import Config  # noqa: PLC0415
    from pydantic_ai.models.bedrock import BedrockConverseModel  # noqa: PLC0415
    from pydantic_ai.providers.bedrock import BedrockProvider  # noqa: PLC0415

    config = Config(
        read_timeout=timeout_s,
        connect_timeout=min(timeout_s, _CONNECT_TIMEOUT_S),
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=64,
    )
    # A session of its own: boto3's shared one keeps the first credentials it saw, and is not safe to share.
    session = boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
    client = session.client("bedrock-runtime", config=config)
    return BedrockConverseModel(model, provider=BedrockProvider(bedrock_client=client))
