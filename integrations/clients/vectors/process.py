"""Clients that hold connections, across forks."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class PerProcess(Generic[T]):
    """What `make` makes, once in each process: the parent's connections are not ours after a fork."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._made: T | None = None
        self._pid = os.getpid()

    def get(self) -> T:
        if self._pid != os.getpid():
            self._lock, self._made, self._pid = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made
