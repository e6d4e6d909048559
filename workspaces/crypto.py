"""Encryption at rest with the installation's key."""

from __future__ import annotations

import json
from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings

from workspaces.errors import Unavailable


def seal(value: Any) -> str:
    """A JSON value as text that only this installation can read."""
    return _fernet().encrypt(json.dumps(value).encode()).decode()


def unseal(text: str) -> Any:
    """The value of a sealed text; raises `Unavailable` when the key is another one."""
    try:
        return json.loads(_fernet().decrypt(text.encode()))
    except InvalidToken as other:
        raise Unavailable(
            "encryption_key_changed", "This was stored under another MATE_ENCRYPTION_KEY and cannot be read."
        ) from other


def _fernet() -> Fernet:
    return Fernet(settings.ENCRYPTION_KEY)
