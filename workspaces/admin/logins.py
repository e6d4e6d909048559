"""Log-ins, also failed ones, are audited in the reserved workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.contrib.auth.models import User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.dispatch import receiver
from django.http import HttpRequest

from workspaces.admin.base import address_of
from workspaces.models import GLOBAL_WORKSPACE_ID
from workspaces.services.audit import record_audit
from workspaces.tenancy import Door, door

_MAX_NAME: Final = 150
"""Characters of a name that somebody tried; as long as a username can be."""


@receiver(user_logged_in)
def audit_login(request: HttpRequest | None = None, user: User | None = None, **_kwargs: Any) -> None:
    """A log-in."""
    if user is not None:
        _record(request, action="login.succeeded", actor=f"user:{user.pk}", username=user.get_username())


@receiver(user_logged_out)
def audit_logout(request: HttpRequest | None = None, user: User | None = None, **_kwargs: Any) -> None:
    """A log-out."""
    if user is not None:
        _record(request, action="login.ended", actor=f"user:{user.pk}", username=user.get_username())


@receiver(user_login_failed)
def audit_failed_login(
    credentials: Mapping[str, Any] | None = None, request: HttpRequest | None = None, **_kwargs: Any
) -> None:
    """A log-in that failed, with the name that was tried; never what was tried as the password."""
    tried = str((credentials or {}).get("username", ""))
    name = "".join(letter for letter in tried if letter.isprintable())[:_MAX_NAME]
    _record(request, action="login.failed", actor="anonymous", username=name)


def _record(request: HttpRequest | None, *, action: str, actor: str, username: str) -> None:
    with door(Door.AUTHENTICATE):
        record_audit(
            GLOBAL_WORKSPACE_ID,
            actor=actor,
            action=action,
            target=f"username:{username}",
            address=address_of(request) if request is not None else "",
        )
