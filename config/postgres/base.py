"""The backend: one check when a connection is taken, and a pool that is emptied when it fails.

The pool's own check tries its dead connections one by one and waits longer before each: measured, a quiet restart
cost the next request 10 s and an error.
"""

from __future__ import annotations

from typing import Any

import psycopg
from django.db.backends.postgresql import base
from psycopg_pool import ConnectionPool


class DatabaseWrapper(base.DatabaseWrapper):
    """As Django's, for pools that outlive a restart of the server."""

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        connection = super().get_new_connection(conn_params)
        if not self.pool:
            return connection
        try:
            ConnectionPool.check_connection(connection)
        except psycopg.OperationalError:
            self.pool.putconn(connection)
            self.pool.drain()
            return super().get_new_connection(conn_params)
        return connection
