"""What the failures of HTTP services mean, as a `ProviderError`. Knows no library."""

import re
from collections.abc import Mapping
from typing import Final

from integrations.clients.errors import ProviderError, ProviderErrorKind

# How services word a text that does not fit: OpenAI and the servers that speak its wire (vLLM, TEI,
# llama.cpp, Ollama), Bedrock.
_TOO_LARGE: Final = re.compile(
    r"maximum context length|context (window|length|size)|too many (input )?tokens|too long"
    r"|exceed_context_size|input is too large|must have less than \d+ tokens"
    r"|exceeds the (maximum|limit)|maximum allowed (input|length)|expected maxLength",
    re.IGNORECASE,
)
_STATUS_KINDS: Final[Mapping[int, tuple[ProviderErrorKind, bool]]] = {
    401: ("auth", False),
    403: ("auth", False),
    408: ("timeout", True),
    409: ("unavailable", True),
    413: ("context_too_large", False),
    424: ("unavailable", True),
    425: ("unavailable", True),
    429: ("rate_limited", True),
}


def status_error(
    status: int, message: str, *, code: str = "", retry_after_s: float | None = None
) -> ProviderError:
    """What an answer of `status` with that message, and the service's own error code, means."""
    kind, is_retryable = _verdict(status, message, code)
    return ProviderError(
        shortened(message or f"HTTP {status}"),
        retryable=is_retryable,
        kind=kind,
        retry_after_s=retry_after_s if is_retryable else None,
    )


def _verdict(status: int, message: str, code: str) -> tuple[ProviderErrorKind, bool]:
    # Some local servers answer 500 for a text that does not fit.
    if (status in (400, 413, 422) or status >= 500) and _TOO_LARGE.search(message):
        return "context_too_large", False
    if code == "insufficient_quota":
        return "rate_limited", False  # spent credit: waiting does not bring it back
    if status >= 500:
        return "unavailable", True
    return _STATUS_KINDS.get(status, ("bad_request", False))


def shortened(message: str) -> str:
    return message if len(message) <= 500 else f"{message[:500]}…"
