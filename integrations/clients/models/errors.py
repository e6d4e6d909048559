"""Every failure of a model call as a `ProviderError`, whichever library it came from."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
from botocore.exceptions import (
    BotoCoreError,
    NoCredentialsError,
    NoRegionError,
    PartialCredentialsError,
    TokenRetrievalError,
)
from pydantic_ai import exceptions as ai

from integrations.clients.errors import ProviderError, ProviderErrorKind

# How providers word an input that does not fit, where they send no code for it: OpenAI and the servers
# that speak its wire (vLLM, llama.cpp, LM Studio, TGI, OpenRouter), Anthropic, Bedrock.
_TOO_LARGE = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum context length|context (window|length|size)"
    r"|reduce the length of the (messages|prompt|input)|prompt is too long|input is too long"
    r"|input tokens exceeded|too many (input )?tokens|exceed(s|ed)? (the )?context limit"
    r"|exceeds the (model's )?maximum (input|number of tokens)|inputs? tokens \+ .?max_new_tokens",
    re.IGNORECASE,
)

# Order matters: the first class that fits decides, so a subclass stands above its base.
_KINDS: tuple[tuple[type[BaseException], ProviderErrorKind, bool], ...] = (
    (ai.RunTimedOut, "timeout", True),
    (ai.ModelRequestTimeout, "timeout", True),
    (ai.ModelTimeoutError, "timeout", True),
    (ai.ModelContextWindowExceededError, "context_too_large", False),
    (ai.ContentFilterError, "refused", False),
    # Spent credit reads as a rate limit, but waiting does not bring it back.
    (ai.ModelQuotaExceededError, "rate_limited", False),
    (ai.ModelRateLimitError, "rate_limited", True),
    (ai.ModelAuthenticationError, "auth", False),
    (ai.ModelRequestRejectedError, "bad_request", False),
    (ai.ModelUnavailableError, "unavailable", True),
    (ai.ModelServerError, "unavailable", True),
    (ai.ModelConnectionError, "unavailable", True),
    (ai.UsageLimitExceeded, "bad_answer", False),
    (ai.OutputTokenLimitExceeded, "bad_answer", False),
    (ai.UnexpectedModelBehavior, "bad_answer", True),
    (ai.UserError, "bad_request", False),
    (NoCredentialsError, "auth", False),
    (PartialCredentialsError, "auth", False),
    (TokenRetrievalError, "auth", False),
    (NoRegionError, "bad_request", False),
    (BotoCoreError, "unavailable", True),
    (httpx2.TimeoutException, "timeout", True),
    (httpx2.HTTPError, "unavailable", True),
)

_STATUS_KINDS: dict[int, tuple[ProviderErrorKind, bool]] = {
    408: ("timeout", True),
    409: ("unavailable", True),
    413: ("context_too_large", False),
    424: ("unavailable", True),
}


def as_provider_error(error: BaseException) -> ProviderError | None:
    """The `ProviderError` that says what `error` means, or None when it is not a failure of the provider.

    What is left (a bug, or an error raised by a tool) is for the caller to see as it is.
    """
    if isinstance(error, ProviderError):
        return error
    verdict = _verdict(error)
    if verdict is None:
        return None
    kind, retryable = verdict
    retry_after = error.retry_after if isinstance(error, ai.ModelAPIError) else None
    return ProviderError(_message(error), retryable=retryable, kind=kind, retry_after_s=retry_after)


@contextmanager
def provider_errors() -> Iterator[None]:
    """Within this block, a failure of the provider is raised as `ProviderError`; anything else as it is."""
    try:
        yield
    except (RuntimeError, OSError, httpx2.HTTPError, BotoCoreError) as error:
        meant = as_provider_error(error)
        if meant is None:
            raise
        raise meant from error


def _verdict(error: BaseException) -> tuple[ProviderErrorKind, bool] | None:
    if isinstance(error, ai.ModelAPIError) and _says_too_large(error):
        return "context_too_large", False
    for cls, kind, retryable in _KINDS:
        if isinstance(error, cls):
            return kind, retryable
    if isinstance(error, ai.ModelHTTPError):
        return _STATUS_KINDS.get(error.status_code, ("bad_request", False))
    if isinstance(error, ai.AgentRunError):
        # What is left of a `ModelAPIError` without a status is a body that could not be read.
        return "bad_answer", True
    return None


def _says_too_large(error: ai.ModelAPIError) -> bool:
    rejected = isinstance(error, ai.ModelRequestRejectedError) and not isinstance(
        error, (ai.ModelAuthenticationError, ai.ModelNotFoundError)
    )
    # Some local servers answer 500 for a prompt that does not fit.
    return (rejected or isinstance(error, ai.ModelServerError)) and bool(_TOO_LARGE.search(error.message))


def _message(error: BaseException) -> str:
    text = str(error).strip() or type(error).__name__
    return text if len(text) <= 500 else f"{text[:500]}…"
