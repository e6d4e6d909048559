"""What a role may do in a session, as grants. Pure."""

from __future__ import annotations

from typing import Final

from workspaces.types import Grant, Role

_VIEWER: Final = frozenset({Grant.CHAT, Grant.READ, Grant.WRITE})
_MEMBER: Final = _VIEWER | {Grant.JOBS}
_ADMIN: Final = _MEMBER | {Grant.ON_BEHALF, Grant.AGENTS, Grant.ADMIN}

GRANTS_OF_ROLE: Final = {
    Role.VIEWER: _VIEWER,
    Role.MEMBER: _MEMBER,
    Role.ADMIN: _ADMIN,
    Role.OWNER: _ADMIN,
}
"""A session's grants. `write` alone lets a viewer write their own memory only; TEAM needs the role too."""
