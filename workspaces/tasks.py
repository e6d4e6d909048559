"""Celery tasks: a nudge to work what is due, and the upkeep. Ids in, nothing out."""

from __future__ import annotations

import os
import threading

import structlog
from celery import shared_task
from kombu.exceptions import KombuError

from workspaces import outbox
from workspaces.services.maintenance import maintain
from workspaces.services.tick import tick

log = structlog.get_logger(__name__)

WORK = "workspaces.work"
MAINTAIN = "workspaces.maintain"
TICK = "workspaces.tick"


@shared_task(name=WORK, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def work() -> None:
    """Works lanes until nothing is due."""
    outbox.drain()


@shared_task(name=MAINTAIN, soft_time_limit=600, time_limit=660)  # type: ignore[untyped-decorator]
def upkeep() -> None:
    """Retention, and closing what dead processes left open."""
    maintain()


@shared_task(name=TICK, soft_time_limit=50, time_limit=58)  # type: ignore[untyped-decorator]
def minute() -> None:
    """Queues what schedules say is due."""
    tick()


class _Nudger:
    """Sends nudges from a thread of its own, many wishes as one.

    A publish may take a second when the broker is away, and no request may wait for that.
    """

    def __init__(self) -> None:
        self._wanted = threading.Event()
        self._lock = threading.Lock()
        self._pid = 0

    def send(self) -> None:
        """Wishes for a nudge; returns at once."""
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._wanted = threading.Event()
                    threading.Thread(target=self._run, name="nudger", daemon=True).start()
                    self._pid = os.getpid()
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            try:
                work.apply_async(expires=30, ignore_result=True)
            except (KombuError, OSError) as away:
                # The sweep finds the work a second later.
                log.debug("nudge.lost", reason=str(away))


send_nudge = _Nudger().send
