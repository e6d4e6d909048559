"""The child process that holds the model, as the server sees it: asked, timed, killed, started again."""

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Final

from integrations.clients.embed.wire import (
    Failure,
    Reply,
    Request,
    WireError,
    read_reply,
    request_frame,
)

NANO: Final = (sys.executable, "-m", "integrations.clients.embed.nano")
SLICE_S: Final = 5.0
_START_S: Final = 60.0
_LONGEST_DELAY_S: Final = 30.0


class ChildError(Exception):
    """The child did not answer; it is gone, and the next question starts another where one can be had."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Child:
    """One model, in a process that may hang or die.

    For one thread; others may call `interrupt` and read what is public.
    """

    def __init__(self, command: Sequence[str] = NANO, *, slice_s: float = SLICE_S) -> None:
        self.starts = 0
        self.is_ready = False
        self.absence: str | None = None
        """Why no model can be had on this machine, once that is known."""
        self._command = command
        self._slice_s = slice_s
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        self._delay_s = 0.0
        self._not_before = 0.0

    def start(self) -> None:
        """A child is ready, or ChildError says why not. One that will not start is left alone for a while:
        1 second, doubled each time up to 30.
        """
        if self._process is not None:
            return
        if self.absence is not None:
            raise ChildError(Failure(self.absence, "unavailable", retryable=False))
        wait_s = self._not_before - time.monotonic()
        if wait_s > 0 or self._is_closed:
            message = "The local embedder's model did not start; it is tried again in a while."
            raise ChildError(Failure(message, "unavailable", retryable=True, retry_after_s=max(wait_s, 0.0)))
        self._process = self._launch()
        try:
            hello = self._read_reply(within_s=_START_S)
        except ChildError:
            self._delay_s = min(max(1.0, 2 * self._delay_s), _LONGEST_DELAY_S)
            self._not_before = time.monotonic() + self._delay_s
            raise
        self._delay_s = 0.0
        self.is_ready = True
        if hello.health is not None and not hello.health.ready:
            self._end()
            self.absence = hello.health.reason
            raise ChildError(Failure(self.absence, "unavailable", retryable=False))

    def ask(self, request: Request) -> Reply:
        """The child's answer, within the time of a slice; started first if need be. Raises ChildError."""
        self.start()
        assert self._process is not None  # noqa: S101 - it has started
        assert self._process.stdin is not None  # noqa: S101 - a pipe
        try:
            # A slice is smaller than the pipe's buffer, so that even a child that hangs takes it.
            self._process.stdin.write(request_frame(request))
        except OSError as error:
            raise self._lost() from error
        return self._read_reply(within_s=self._slice_s)

    def interrupt(self) -> None:
        """No other child is started; one that is being asked fails at once. From any thread."""
        self._is_closed = True
        process = self._process
        if process is not None:
            process.kill()

    def close(self) -> None:
        """The child has ended, and no other is started."""
        self._is_closed = True
        if self._process is not None:
            self._end()

    def _launch(self) -> "subprocess.Popen[bytes]":
        self.starts += 1
        # With OpenMP's default, threads that wait spin: among 80 busy processes a query took 3.9 s, not 25 ms.
        environment = {"OMP_NUM_THREADS": str(_threads()), **os.environ, "OMP_WAIT_POLICY": "passive"}
        return subprocess.Popen(  # noqa: S603 - our own program
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=environment
        )

    def _read_reply(self, *, within_s: float) -> Reply:
        process = self._process
        assert process is not None  # noqa: S101 - it has started
        assert process.stdout is not None  # noqa: S101 - a pipe
        reading = process.stdout.fileno()
        deadline = time.monotonic() + within_s

        def read(size: int) -> bytes:
            data = bytearray()
            while len(data) < size:
                left_s = deadline - time.monotonic()
                if left_s <= 0 or not select.select([reading], [], [], left_s)[0]:
                    raise TimeoutError
                chunk = os.read(reading, size - len(data))
                if not chunk:
                    raise EOFError
                data += chunk
            return bytes(data)

        try:
            return read_reply(read)
        except TimeoutError as error:
            self._end()
            message = f"The local embedder's model did not answer within {within_s:g} s."
            raise ChildError(Failure(message, "timeout", retryable=True)) from error
        except (EOFError, OSError, WireError) as error:
            raise self._lost() from error

    def _lost(self) -> ChildError:
        code = self._end()
        message = f"The local embedder's model ended while it was asked (code {code})."
        return ChildError(Failure(message, "unavailable", retryable=True))

    def _end(self) -> int:
        process, self._process, self.is_ready = self._process, None, False
        assert process is not None  # noqa: S101 - called with one
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        return process.wait()


def _threads() -> int:
    """The CPUs this process may use, four at most: beyond, a text as short as ours gains nothing."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cpus, 4)
