"""Errors of the domain. They know nothing of HTTP; `config.api` gives each its status."""

from __future__ import annotations


class DomainError(Exception):
    """Something the caller can act on.

    `code` is stable, for programs; the message says what was wrong, with which value, and what would be right;
    `fields` are facts a program may use.
    """

    def __init__(self, code: str, message: str, **fields: object) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.fields = fields


class BadInput(DomainError):  # noqa: N818 - reads as what it says
    """What was sent cannot be understood (400)."""


class Unauthenticated(DomainError):  # noqa: N818
    """Nobody known is calling (401)."""


class Forbidden(DomainError):  # noqa: N818
    """The caller is known and may not (403)."""


class NotFound(DomainError):  # noqa: N818
    """There is no such thing for this caller (404)."""


class Conflict(DomainError):  # noqa: N818
    """It changed meanwhile, or is there already (409)."""


class Disabled(Forbidden):
    """The feature is switched off (403)."""


class TooLarge(DomainError):  # noqa: N818
    """More than is allowed was sent (413)."""


class Unprocessable(DomainError):  # noqa: N818
    """Understood, and impossible (422)."""


class TooMany(DomainError):  # noqa: N818
    """Too often; `retry_after` in the fields is in seconds (429)."""


class Unavailable(DomainError):  # noqa: N818
    """Something it needs is away; trying again later helps (503)."""
