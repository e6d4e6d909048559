"""The backend: one check when a connection is taken, and a pool that is emptied when it fails.

The pool's own check tries its dead connections one by one and waits longer before each: measured, a quiet restart
cost the next request 10 s and an error.
"""

from __future__ import annotations

import select
import time
from typing import Any, Final

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool

FRESH_S: Final = 1.0
"""One that was taken so lately and has nothing to read is not checked again: a check is a round trip. What a server
that ends says, or the end of its line, can be read at once; only a network that drops in silence cannot."""
_TAKEN: Final = "_mate_taken"


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, for pools that outlive a restart of the server."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        if not self.pool:
            return connection
        now = time.monotonic()
        if now - getattr(connection, _TAKEN, -FRESH_S) < FRESH_S and not _has_something_to_read(connection):
            setattr(connection, _TAKEN, now)
            return connection
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            self.pool.putconn(connection)
            self.pool.drain()
            connection = super().get_new_connection(conn_params)
        setattr(connection, _TAKEN, now)
        return connection


def _has_something_to_read(connection: Any) -> bool:
    line = select.poll()
    line.register(connection.fileno(), select.POLLIN)
    return bool(line.poll(0))
