"""The transaction that tells Postgres whose rows may be seen.

`with tenant(…):` is where tenant data is read and written; `with door(…):` crosses tenants, and is for the few
named in `Door`. Row-level security (see `workspaces.logic.policies`) shows nothing outside them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from django.db import connection, transaction

from workspaces.types import BucketRef, Reach


class Door(StrEnum):
    """The ways across tenants. Each opens only the tables that its work needs (see the migrations)."""

    AUTHENTICATE = "authenticate"
    """Finding a token or a user's memberships before the workspace is known."""
    OUTBOX = "outbox"
    """Claiming lanes and loading what a message is about."""
    METRICS = "metrics"
    """Counting for health and `/metrics`."""
    MAINTENANCE = "maintenance"
    """Retention and closing what a dead process left open."""
    OPERATOR = "operator"
    """The Django admin and management commands."""
    ERASURE = "erasure"
    """Removing a person or a workspace everywhere."""


OWN_DOORS: Final = "opens_its_own_doors"
"""An attribute of an admin view that waits for something outside between its transactions, and opens each itself."""


@dataclass(frozen=True, slots=True)
class _Sight:
    workspace: str = ""
    reach: str = ""
    writes: str = ""
    door: str = ""


_BLIND: Final = _Sight()
_ATTRIBUTE: Final = "_mate_sight"


@contextmanager
def tenant(whose: BucketRef | Reach) -> Iterator[None]:
    """A transaction that sees the buckets of `whose` and its workspace, and writes those it may write.

    One round trip more than a bare transaction. Nested, it is a savepoint, and the outer sight returns with it.
    """
    if isinstance(whose, BucketRef):
        whose = Reach(whose.workspace_id, (whose.id,), (whose.id,))
    with _seeing(
        _Sight(
            workspace=str(whose.workspace_id),
            reach=_array(whose.buckets),
            writes=_array(whose.writes),
        )
    ):
        yield


@contextmanager
def workspace(workspace_id: int) -> Iterator[None]:
    """A transaction that sees the workspace's own tables, and no bucket's rows."""
    with _seeing(_Sight(workspace=str(workspace_id))):
        yield


@contextmanager
def door(name: Door) -> Iterator[None]:
    """A transaction that crosses tenants, for the tables which that door opens."""
    with _seeing(_Sight(door=name.value)):
        yield


@contextmanager
def _seeing(sight: _Sight) -> Iterator[None]:
    outer: _Sight = getattr(connection, _ATTRIBUTE, _BLIND) if connection.in_atomic_block else _BLIND
    is_nested = connection.in_atomic_block
    try:
        with transaction.atomic():
            _set(sight)
            setattr(connection, _ATTRIBUTE, sight)
            yield
            if is_nested:
                # A released savepoint keeps what it set; a rolled back one restores by itself.
                _set(outer)
    finally:
        setattr(connection, _ATTRIBUTE, outer)


def _set(sight: _Sight) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SET, [sight.workspace, sight.reach, sight.writes, sight.door])


_SET: Final = (
    "SELECT set_config('mate.workspace', %s, true), set_config('mate.reach', %s, true),"
    " set_config('mate.writes', %s, true), set_config('mate.door', %s, true)"
)


# --- one statement, one round trip ------------------------------------------------------------------------
# What every request reads: a transaction around a single statement cost four round trips, three for nothing.


def read_as_tenant(reach: Reach, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of one plain statement that sees what `tenant(reach)` sees."""
    return _read(_Sight(workspace=str(reach.workspace_id), reach=_array(reach.buckets)), sql, params)


def read_as_workspace(workspace_id: int, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of one plain statement that sees what `workspace(…)` sees."""
    return _read(_Sight(workspace=str(workspace_id)), sql, params)


def read_through(name: Door, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The rows of one plain statement that sees what `door(name)` sees."""
    return _read(_Sight(door=name.value), sql, params)


def _read(sight: _Sight, sql: str, params: Sequence[Any]) -> list[tuple[Any, ...]]:
    if connection.in_atomic_block:
        with _seeing(sight), connection.cursor() as cursor:
            cursor.execute(sql, params)
            return list(cursor.fetchall())
    with connection.cursor() as cursor:
        # Statements that are sent together are one transaction, at whose end the sight is gone, also on an error.
        told = [sight.workspace, sight.reach, sight.writes, sight.door]
        cursor.execute(f"{_SET}; {sql}", [*told, *params])
        cursor.nextset()
        return list(cursor.fetchall())


def _array(ids: tuple[int, ...]) -> str:
    return "{" + ",".join(str(number) for number in ids) + "}"


WATER_MARK = 0
"""How deep in transactions the process is when it is in none of its own: 0, save in tests that run inside one."""


def transaction_depth() -> int:
    """How many transactions and savepoints are open on this thread's connection."""
    return int(connection.in_atomic_block) + len(connection.savepoint_ids)


def release_connection() -> None:
    """Gives the database connection back before a wait for a model, a tool's HTTP call or a client.

    Raises `RuntimeError` inside a transaction: nothing may wait there. Costs nothing when none is held, and does
    nothing where an event loop runs: no thread of a loop holds a connection.
    """
    if _is_inside_a_loop():
        return
    depth = transaction_depth()
    if depth > WATER_MARK:
        raise RuntimeError("A wait for the outside inside a database transaction: load, think, then apply.")
    if not depth:
        connection.close()


def _is_inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
