"""The first start: a workspace, an agent, an administrator and a token, made once."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from django.contrib.auth.models import User
from django.db import connection
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from workspaces.models import GLOBAL_WORKSPACE_ID, Workspace
from workspaces.services.agents import create_agent
from workspaces.services.audit import record_audit
from workspaces.services.schedules import make_missing_schedules
from workspaces.services.tenants import add_member, create_workspace
from workspaces.services.tokens import issue_token
from workspaces.tenancy import Door, door
from workspaces.types import Grant, Role

FILE_NAME: Final = "first-run.json"
_LOCK: Final = 0x6D617465_31737431
"""The key of the advisory lock under which a first run is made: arbitrary, and nobody else's."""
_CLOCK: Final = (
    ("workspaces: maintain", "workspaces.maintain", IntervalSchedule.HOURS),
    ("workspaces: tick", "workspaces.tick", IntervalSchedule.MINUTES),
)
"""System entries of the clock: name, task, and of which period they run each one."""


@dataclass(frozen=True, slots=True)
class FirstRun:
    """What a newcomer needs to log in and to call the API."""

    url: str
    username: str
    password: str = field(repr=False)
    token: str = field(repr=False)
    workspace: str
    agent_id: int

    def as_json(self) -> dict[str, str | int]:
        """As it is kept in the data folder."""
        return {
            "url": self.url,
            "username": self.username,
            "password": self.password,
            "token": self.token,
            "workspace": self.workspace,
            "agentId": self.agent_id,
        }


def set_up(data_dir: Path, *, url: str) -> FirstRun | None:
    """Makes what the first start needs and keeps it in `<data>/first-run.json` (0600); None if that was done.

    Safe when many start at once: one of them does it, under an advisory lock. All or nothing: raises
    `OSError` when the file cannot be written, and then nothing was made. The clock's system entries are made
    where they are missing, also later, and never changed.
    """
    with door(Door.OPERATOR):
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        _register_clock_entries()
        make_missing_schedules()
        if _is_set_up():
            return None
        with _kept(data_dir / FILE_NAME) as keep:
            made = _make(url)
            keep(made)
            return made


def _is_set_up() -> bool:
    workspaces = Workspace.unscoped.exclude(pk=GLOBAL_WORKSPACE_ID)
    return workspaces.exists() or User.objects.exists()


def _make(url: str) -> FirstRun:
    password = secrets.token_urlsafe(12)
    home = create_workspace(name="Demo", slug="demo")
    user = User.objects.create_superuser("admin", password=password)
    record_audit(GLOBAL_WORKSPACE_ID, actor="system", action="user.created", target=f"user:{user.pk}")
    add_member(home.pk, user=user, role=Role.OWNER, actor="system")
    agent, _ = create_agent(home.pk, name="Mate", is_default=True, user_id=user.pk, actor="system")
    _, token = issue_token(
        home.pk, user_id=user.pk, name="first run", grants=[grant.value for grant in Grant], actor="system"
    )
    return FirstRun(
        url=url,
        username=user.get_username(),
        password=password,
        token=token,
        workspace=home.slug,
        agent_id=agent.pk,
    )


@contextlib.contextmanager
def _kept(path: Path) -> Iterator[_Keeper]:
    """Inside, the file can be written; when what is inside fails, it is gone again."""
    try:
        yield _Keeper(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


@dataclass(frozen=True, slots=True)
class _Keeper:
    path: Path

    def __call__(self, made: FirstRun) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)  # a leftover of a database that is no more, perhaps open to others
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 - a descriptor, no path
            file.write(json.dumps(made.as_json(), indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())


def _register_clock_entries() -> None:
    for name, task, period in _CLOCK:
        if PeriodicTask.objects.filter(name=name).exists():
            continue
        interval, _ = IntervalSchedule.objects.get_or_create(every=1, period=period)
        PeriodicTask.objects.create(
            name=name, task=task, interval=interval, description="A system entry; made again if deleted."
        )
