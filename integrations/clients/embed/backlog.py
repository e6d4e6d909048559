"""What the local embedder has still to do: queries first, then passages, each in the order they came."""

import threading
from array import array
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from integrations.clients.embed.slices import Plan
from integrations.clients.embed.wire import Failure, Reply

MOST_WAITING: Final = 64
"""Requests of each kind; more than this many would wait longer than anybody does."""


@dataclass
class Job:
    """One request at work. `is_wanted`: whether somebody still waits for the answer."""

    plan: Plan
    is_wanted: Callable[[], bool] = lambda: True
    reply: Reply | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def end(self, failure: Failure | None = None) -> None:
        """The one who waits has the answer: the plan's vectors, or the failure."""
        vectors: list[array[float]] = [] if failure else self.plan.vectors
        self.reply = Reply(vectors, failure)
        self.done.set()


class Backlog:
    """A bounded queue with two levels. For any number of threads that put, and one that takes."""

    def __init__(self, *, most_waiting: int = MOST_WAITING) -> None:
        self._most = most_waiting
        self._queries: deque[Job] = deque()
        self._passages: deque[Job] = deque()
        self._is_closed = False
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """Requests that are not at work."""
        with self._changed:
            return len(self._queries) + len(self._passages)

    def put(self, job: Job) -> bool:
        """Whether there was room for it."""
        with self._changed:
            line = self._line_of(job)
            if self._is_closed or len(line) >= self._most:
                return False
            line.append(job)
            self._changed.notify()
            return True

    def put_back(self, job: Job) -> None:
        """It has more slices to do, before all others of its kind."""
        with self._changed:
            self._line_of(job).appendleft(job)

    def take(self) -> Job | None:
        """The next job, waited for; None when closed."""
        with self._changed:
            while not (self._queries or self._passages or self._is_closed):
                self._changed.wait()
            if self._is_closed:
                return None
            return (self._queries or self._passages).popleft()

    def close(self) -> None:
        """Nothing more is put or taken; those who wait are told."""
        with self._changed:
            self._is_closed = True
            left = [*self._queries, *self._passages]
            self._changed.notify_all()
        for job in left:
            job.end(Failure("The local embedder is shutting down.", "unavailable", retryable=True))

    def _line_of(self, job: Job) -> deque[Job]:
        return self._queries if job.plan.kind == "query" else self._passages
