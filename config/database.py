"""Which database role does what."""

from __future__ import annotations

from typing import Any


class OwnerMigrates:
    """Migrations run as the owner of the tables only; the application's role may not make any."""

    def allow_migrate(self, db: str, app_label: str, **_hints: Any) -> bool | None:  # noqa: ARG002 - Django's signature
        return db == "owner"
