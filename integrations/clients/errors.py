"""The one error that a client of an outside service raises."""

from typing import Literal

ProviderErrorKind = Literal[
    "timeout",
    "rate_limited",
    "context_too_large",
    "refused",
    "bad_answer",
    "unavailable",
    "auth",
    "bad_request",
]


class ProviderError(Exception):
    """An outside service did not do what was asked.

    `retryable`: whether the same request, sent again later, may succeed.
    `retry_after_s`: seconds that the service asked us to wait, where it said so.
    """

    def __init__(
        self, message: str, *, retryable: bool, kind: ProviderErrorKind, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.kind: ProviderErrorKind = kind
        self.retry_after_s = retry_after_s
