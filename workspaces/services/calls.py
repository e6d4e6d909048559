"""Calls of code that is not ours, each under a deadline: what it raises is kept, and it is never waited out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from django.db import connections

T = TypeVar("T")


class DeadlineError(Exception):
    """The call did not end in its time."""


class BusyError(Exception):
    """As many of these calls are under way as may be."""


class Call(Generic[T]):
    """One call, in a daemon thread of its own, which gives its database connections back when it ends.

    A thread cannot be stopped: one that hangs is left behind, keeps its place among `slots`, and does not hold
    up the end of the process. Times are in seconds of `time.monotonic()`.
    """

    def __init__(
        self,
        work: Callable[[], T],
        *,
        name: str,
        limit_s: float | None = None,
        slots: threading.Semaphore | None = None,
    ) -> None:
        self._work = work
        self._name = name
        self._slots = slots
        self._bell = threading.Condition()
        self._values: list[T] = []
        self.limit_s = limit_s
        self.error: Exception | None = None
        self.began: float | None = None
        self.ended: float | None = None

    def start(self) -> bool:
        """Begins the call; False when all slots are taken or no thread can be had."""
        if self._slots is not None and not self._slots.acquire(blocking=False):
            return False
        try:
            threading.Thread(target=self._in_thread, name=self._name, daemon=True).start()
        except RuntimeError:
            if self._slots is not None:
                self._slots.release()
            return False
        return True

    def here(self) -> None:
        """The same in the caller's thread, with the caller's connection and without a deadline."""
        self.began = time.monotonic()
        self._run()
        self.ended = time.monotonic()

    def limit(self, seconds: float) -> None:
        """Shortens the deadline, also while it is waited for."""
        with self._bell:
            self.limit_s = seconds if self.limit_s is None else min(self.limit_s, seconds)
            self._bell.notify_all()

    def wait(self, until: float | None = None) -> None:
        """Waits for the end, the call's own deadline or that moment, whichever comes first."""
        with self._bell:
            while self.ended is None:
                ends = [end for end in (until, self._deadline()) if end is not None]
                left = min(ends) - time.monotonic() if ends else None
                if left is not None and left <= 0:
                    return
                self._bell.wait(left)

    def result(self) -> T:
        """What came of it; raises what it raised, or `DeadlineError` when it has not ended in its time."""
        if self.ended is None or self.is_overdue:
            raise DeadlineError(f"no answer within {self.limit_s:g} s" if self.limit_s else "no answer yet")
        if self.error is not None:
            raise self.error
        if not self._values:
            raise DeadlineError("it ended its thread")
        return self._values[0]

    @property
    def took_s(self) -> float:
        """Seconds that it has run, or ran."""
        if self.began is None:
            return 0.0
        return (time.monotonic() if self.ended is None else self.ended) - self.began

    @property
    def is_overdue(self) -> bool:
        """Whether it ran past its own deadline."""
        deadline = self._deadline()
        return deadline is not None and (time.monotonic() if self.ended is None else self.ended) >= deadline

    def _deadline(self) -> float | None:
        return None if self.limit_s is None or self.began is None else self.began + self.limit_s

    def _in_thread(self) -> None:
        with self._bell:
            self.began = time.monotonic()
            self._bell.notify_all()
        try:
            self._run()
        finally:
            self._end()

    def _run(self) -> None:
        try:
            self._values.append(self._work())
        except Exception as error:  # noqa: BLE001 - the one door of code that is not ours: it is told by the caller
            self.error = error

    def _end(self) -> None:
        # Before the connections: they are no part of its time, and nobody waits for them.
        with self._bell:
            self.ended = time.monotonic()
            self._bell.notify_all()
        try:
            connections.close_all()
        finally:
            if self._slots is not None:
                self._slots.release()


def call_within(seconds: float, work: Callable[[], T], *, name: str, slots: threading.Semaphore) -> T:
    """What `work` gives, or raises what it raises, `DeadlineError` after so long, `BusyError` without a slot."""
    call = Call(work, name=name, limit_s=seconds, slots=slots)
    if not call.start():
        raise BusyError("all its calls are busy")
    call.wait()
    return call.result()
