"""What the failures of AWS's SDK mean, for every client of a service of theirs."""

from typing import Final

from botocore.exceptions import (
    BotoCoreError,
    ConnectTimeoutError,
    NoCredentialsError,
    NoRegionError,
    ParamValidationError,
    PartialCredentialsError,
    ProfileNotFound,
    ReadTimeoutError,
    TokenRetrievalError,
)

from integrations.clients.errors import ProviderErrorKind

AUTH_CODES: Final = frozenset(
    {"AccessDeniedException", "UnrecognizedClientException", "ExpiredTokenException", "ExpiredToken"}
    | {"InvalidSignatureException", "InvalidClientTokenId", "MissingAuthenticationTokenException"}
)
"""Codes of answers that mean the credentials, whatever their HTTP status."""
# The first class that fits decides, so a subclass stands above its base.
_KINDS: Final[tuple[tuple[type[BotoCoreError], ProviderErrorKind, bool], ...]] = (
    (NoCredentialsError, "auth", False),
    (PartialCredentialsError, "auth", False),
    (ProfileNotFound, "auth", False),
    (TokenRetrievalError, "auth", False),
    (NoRegionError, "bad_request", False),
    (ParamValidationError, "bad_request", False),
    (ConnectTimeoutError, "timeout", True),
    (ReadTimeoutError, "timeout", True),
    (BotoCoreError, "unavailable", True),
)


def kind_of(error: BotoCoreError) -> tuple[ProviderErrorKind, bool]:
    """What kind of failure it is, and whether the same request may succeed later."""
    return next((kind, again) for cls, kind, again in _KINDS if isinstance(error, cls))
