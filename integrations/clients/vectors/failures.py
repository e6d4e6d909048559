"""What the failures of vector stores mean, as a `ProviderError`. Knows no library."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from integrations.clients.errors import ProviderError, ProviderErrorKind

_STATUS_KINDS: Final[Mapping[int, tuple[ProviderErrorKind, bool]]] = {
    401: ("auth", False),
    402: ("rate_limited", False),  # a quota that is used up: waiting does not bring it back
    403: ("auth", False),
    408: ("timeout", True),
    409: ("unavailable", True),
    425: ("unavailable", True),
    429: ("rate_limited", True),
}


def status_error(status: int, message: str, *, retry_after_s: float | None = None) -> ProviderError:
    """What an answer of `status` with that message means."""
    kind, is_retryable = _STATUS_KINDS.get(
        status, ("unavailable", True) if status >= 500 else ("bad_request", False)
    )
    return ProviderError(
        shortened(message),
        retryable=is_retryable,
        kind=kind,
        retry_after_s=retry_after_s if is_retryable else None,
    )


def refusal(message: str) -> ProviderError:
    """The error of a request that is not sent, or cannot succeed."""
    return ProviderError(message, retryable=False, kind="bad_request")


def bad_answer(message: str) -> ProviderError:
    return ProviderError(shortened(message), retryable=True, kind="bad_answer")


@contextmanager
def reading(service: str) -> Iterator[None]:
    """Within this block an answer of another shape than it should have is a `bad_answer`."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise bad_answer(f"The answer of {service} cannot be read: {error!r}") from error


def stored_number(value: object) -> int:
    """The id or bucket that was stored as `value`. Raises ValueError when it is none of ours."""
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{1,19}", value):
        raise ValueError(f"{value!r} is not a number that was stored")
    return int(value)


def shortened(message: str) -> str:
    return message if len(message) <= 500 else f"{message[:500]}…"
