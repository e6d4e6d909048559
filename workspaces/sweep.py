"""The sweep: threads of the worker process that look for due work every second, whatever the broker does.

Nudges make work begin at once; the sweep makes sure that it begins. It also says that the worker lives, and ends
the leases of processes of this machine that died.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Final

import structlog
from django.db import Error as DatabaseError
from django.db import connection
from django.utils import timezone

from workspaces import outbox
from workspaces.models import Heartbeat
from workspaces.services.maintenance import FORGET_HEARTBEATS

log = structlog.get_logger(__name__)

EVERY_S: Final = 1.0
BEAT_EVERY_S: Final = 5.0
"""Seconds between two heartbeats."""


class Sweep:
    """The threads. `start` once, `stop` at the end; they survive a database that is away."""

    def __init__(
        self, *, every: float = EVERY_S, beat_every: float = BEAT_EVERY_S, kind: str = "worker"
    ) -> None:
        self._every = every
        self._kind = kind
        self._stopped = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(look, seconds), name=name, daemon=True)
            for name, look, seconds in (
                ("outbox-sweep", self._work, every),
                ("heartbeat", self._beat, beat_every),
            )
        ]

    def start(self) -> None:
        """Begins to look, and to say that the process lives: apart, since a message may take minutes."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Ends after the message that is being worked."""
        self._stopped.set()

    def join(self) -> None:
        """Waits for that end."""
        for thread in self._threads:
            thread.join()

    def _run(self, look: Callable[[], None], every: float) -> None:
        while not self._stopped.is_set():
            try:
                look()
            except DatabaseError as error:
                log.warning("sweep.database_away", reason=str(error))
            finally:
                connection.close()
            self._stopped.wait(every)

    def _work(self) -> None:
        outbox.free_dead_leases()
        while not self._stopped.is_set() and outbox.work_one(overdue_by=self._every):
            pass

    def _beat(self) -> None:
        beat(self._kind)


def beat(kind: str) -> None:
    """Says that this process lives."""
    name = f"{kind}@{socket.gethostname()}:{os.getpid()}"
    now = timezone.now()
    Heartbeat.objects.update_or_create(process=name, defaults={"kind": kind, "at": now})
    Heartbeat.objects.filter(at__lt=now - FORGET_HEARTBEATS).delete()
