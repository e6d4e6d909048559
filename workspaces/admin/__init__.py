"""The operator's view: the Django admin, one module a concern. Only active superusers come in."""

from workspaces.admin import (
    agents,
    clock,
    files,
    logins,
    plugins,
    settings,
    tenants,
    tokens,
    trail,
    users,
    work,
)

__all__ = [
    "agents",
    "clock",
    "files",
    "logins",
    "plugins",
    "settings",
    "tenants",
    "tokens",
    "trail",
    "users",
    "work",
]
