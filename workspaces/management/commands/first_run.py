"""`manage.py first_run`: what the first start needs, made once."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import Error as DatabaseError

from workspaces.services.first_run import FILE_NAME, FirstRun, set_up


class Command(BaseCommand):
    """Makes a workspace, an agent, an administrator and a token, and tells them once."""

    help = (
        "Makes the workspace 'demo', an agent, the administrator 'admin' and a token, and prints them once."
        " Does nothing where that was done."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Idempotent."""
        path = settings.DATA_DIR / FILE_NAME
        try:
            made = set_up(settings.DATA_DIR, url=_url(settings.ENV.host, settings.ENV.port))
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}. Nothing was set up.") from error
        except DatabaseError as error:
            raise CommandError(f"The database cannot be set up: {str(error).strip()}") from error
        if made is None:
            kept = f" The first log-in is in {path}." if path.exists() else ""
            self.stdout.write(f"Set up already; nothing was changed.{kept}")
            return
        self.stdout.write(_told(made, kept_in=str(path)))


def _url(host: str, port: int) -> str:
    """Under which address a browser on this machine reaches a server that listens on `host`."""
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound
    return f"http://[{reachable}]:{port}" if ":" in reachable else f"http://{reachable}:{port}"


def _told(made: FirstRun, *, kept_in: str) -> str:
    rows = (
        ("address", made.url),
        ("operator", f"{made.url}/admin/"),
        ("username", made.username),
        ("password", made.password),
        ("token", made.token),
        ("workspace", made.workspace),
        ("agent", f"Mate (id {made.agent_id})"),
    )
    lines = "\n".join(f"  {name:<10} {value}" for name, value in rows)
    return (
        f"Mate Memory is set up. This is shown once:\n\n{lines}\n\nKept in {kept_in}, readable by you only."
    )
