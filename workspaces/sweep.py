"""The sweep: a thread of the worker process that looks for due work every second, whatever the broker does.

Nudges make work begin at once; the sweep makes sure that it begins. It also says that the worker lives, and ends
the leases of processes of this machine that died.
"""

from __future__ import annotations

import os
import socket
import threading
from typing import Final

import structlog
from django.db import DatabaseError, connection
from django.utils import timezone

from workspaces import outbox
from workspaces.models import Heartbeat
from workspaces.services.maintenance import FORGET_HEARTBEATS

log = structlog.get_logger(__name__)

EVERY_S: Final = 1.0
BEAT_EVERY: Final = 5
"""Looks between two heartbeats."""


class Sweep:
    """The thread. `start` once, `stop` at the end; it survives a database that is away."""

    def __init__(self, *, every: float = EVERY_S, kind: str = "worker") -> None:
        self._every = every
        self._kind = kind
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="outbox-sweep", daemon=True)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self) -> None:
        """Ends after the message that is being worked."""
        self._stopped.set()

    def _run(self) -> None:
        looks = 0
        while not self._stopped.wait(self._every):
            try:
                if looks % BEAT_EVERY == 0:
                    beat(self._kind)
                looks += 1
                outbox.free_dead_leases()
                # One at a time, so that a stop and the heartbeat are not kept waiting by a long backlog.
                while not self._stopped.is_set() and outbox.work_one(overdue_by=self._every):
                    beat(self._kind)
            except DatabaseError as error:
                log.warning("sweep.database_away", reason=str(error))
            finally:
                connection.close()


def beat(kind: str) -> None:
    """Says that this process lives."""
    name = f"{kind}@{socket.gethostname()}:{os.getpid()}"
    now = timezone.now()
    Heartbeat.objects.update_or_create(process=name, defaults={"kind": kind, "at": now})
    Heartbeat.objects.filter(at__lt=now - FORGET_HEARTBEATS).delete()
