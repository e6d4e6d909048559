"""An end for what must not take forever: work that grows with the square of a text would hang the run."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

DEADLINE_S = 10.0
"""Seconds of this process's own time, far above what linear work takes and far below what squared work does."""


@contextmanager
def deadline() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError("its time is not linear in the text")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, DEADLINE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
