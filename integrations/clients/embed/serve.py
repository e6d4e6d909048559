"""The embedder of this machine: `python -m integrations.clients.embed.serve --data-dir …`.

One process for all that run on one data folder, reached over a Unix socket. It keeps the model in a child of
its own, which is started again when it dies or hangs. Where the model cannot be had, it says so when asked.
"""

import argparse
import contextlib
import fcntl
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from integrations.clients.embed.backlog import Backlog, Job
from integrations.clients.embed.child import NANO, Child, ChildError
from integrations.clients.embed.embedder import cleaned
from integrations.clients.embed.lifeline import end_with_parent
from integrations.clients.embed.slices import Plan, Slice
from integrations.clients.embed.wire import (
    Failure,
    Health,
    Read,
    Reply,
    Request,
    WireError,
    folder_of,
    is_ours,
    read_request,
    reply_frame,
    socket_of,
)

_MOST_CONNECTIONS: Final = 256
_BUSY_S: Final = 1.0
_BUSY: Final = Failure(
    "The local embedder has too much to do.", "rate_limited", retryable=True, retry_after_s=_BUSY_S
)

log = logging.getLogger(__name__)


class Server:
    """Answers on the socket at `path`, which is made and removed, inside a `with` block."""

    def __init__(
        self,
        path: Path,
        child: Child,
        *,
        backlog: Backlog | None = None,
        most_connections: int = _MOST_CONNECTIONS,
    ) -> None:
        self._path = path
        self._child = child
        self._backlog = backlog or Backlog()
        self._places = threading.Semaphore(most_connections)
        self._listener = socket.socket(socket.AF_UNIX)
        self._worker = threading.Thread(target=self._work, name="embed-worker", daemon=True)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._path.unlink(missing_ok=True)
        self._listener.bind(str(self._path))
        self._path.chmod(0o600)
        self._listener.listen(_MOST_CONNECTIONS)
        self._worker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._backlog.close()
        self._child.interrupt()
        self._worker.join()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def accept_forever(self) -> None:
        """Serve until the block is left (by another thread) or a signal raises."""
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            if not self._places.acquire(blocking=False):
                with connection:
                    _send(connection, Reply(failure=_BUSY))
                continue
            threading.Thread(target=self._talk, args=(connection,), daemon=True).start()

    # --- one thread for each connection

    def _talk(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)
        try:
            with connection:
                self._answer_all(connection)
        finally:
            with self._lock:
                self._open.discard(connection)
            self._places.release()

    def _answer_all(self, connection: socket.socket) -> None:
        read = reading(connection)
        while True:
            try:
                request = read_request(read)
            except WireError as error:
                _send(connection, Reply(failure=Failure(str(error), "bad_request", retryable=False)))
                return
            except (EOFError, OSError):
                return
            if not _send(connection, self._reply_to(request, connection)):
                return

    def _reply_to(self, request: Request, connection: socket.socket) -> Reply:
        if request.do == "health":
            return Reply(health=self._health())
        if self._child.absence is not None:
            return Reply(failure=Failure(self._child.absence, "unavailable", retryable=False))
        texts = [cleaned(text) for text in request.texts]
        if not texts or not all(texts):
            return Reply(
                failure=Failure("A text with nothing in it to embed.", "bad_request", retryable=False)
            )
        job = Job(Plan(texts, request.kind), is_wanted=lambda: _is_there(connection))
        if not self._backlog.put(job):
            return Reply(failure=_BUSY)
        job.done.wait()
        assert job.reply is not None  # noqa: S101 - what `done` says
        return job.reply

    def _health(self) -> Health:
        child = self._child
        reason = "" if child.is_ready else child.absence or "The local embedder's model is not loaded."
        return Health(child.is_ready, reason, self._backlog.waiting, max(0, child.starts - 1))

    # --- the one thread that has the child

    def _work(self) -> None:
        with contextlib.closing(self._child):
            with contextlib.suppress(ChildError):
                self._child.start()
            log.info("Ready." if self._child.is_ready else self._health().reason)
            while (job := self._backlog.take()) is not None:
                self._advance(job)

    def _advance(self, job: Job) -> None:
        if not job.is_wanted():
            job.end(Failure("Nobody waits for it.", "timeout", retryable=True))
            return
        failure = self._do(job, job.plan.slices.popleft())
        if failure is not None or not job.plan.slices:
            job.end(failure)
        else:
            self._backlog.put_back(job)

    def _do(self, job: Job, part: Slice) -> Failure | None:
        """A slice is done, or why it cannot be."""
        request = Request("embed", job.plan.kind, tuple(piece.text for piece in part))
        try:
            vectors = self._vectors_of(request)
        except ChildError as error:
            return error.failure
        try:
            job.plan.take(part, vectors)
        except ValueError as error:
            return Failure(
                f"The local embedder's model answered wrongly: {error}.", "bad_answer", retryable=True
            )
        return None

    def _vectors_of(self, request: Request) -> Sequence[Sequence[float]]:
        """What the child answers; asked once more when it was lost over it. Raises ChildError."""
        try:
            return self._child.ask(request).vectors
        except ChildError as error:
            log.warning("%s", error)
            if self._child.absence is not None:
                raise
            return self._child.ask(request).vectors


def reading(connection: socket.socket) -> Read:
    """Reads exactly as much as asked from a connection."""

    def read(size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = connection.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    return read


def _send(connection: socket.socket, reply: Reply) -> bool:
    try:
        connection.sendall(reply_frame(reply))
    except OSError:
        return False
    return True


def _is_there(connection: socket.socket) -> bool:
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


@contextlib.contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """This process is the embedder of the folder inside the block; another one is waited for.

    Raises PermissionError when somebody else made the folder: it stands where everybody may.
    """
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    if not is_ours(folder):
        raise PermissionError(f"The socket folder {folder} is not ours: remove it.")
    folder.chmod(0o700)
    with (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] | None = None, *, command: Sequence[str] = NANO) -> None:
    """Serve until SIGTERM, SIGINT or the end of the parent."""
    parser = argparse.ArgumentParser(description="The embedder of this machine.")
    parser.add_argument("--data-dir", type=Path, required=True)
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    end_with_parent(os.getppid())
    with (
        contextlib.suppress(KeyboardInterrupt),
        only_one(folder_of(options.data_dir)),
        Server(socket_of(options.data_dir), Child(command)) as server,
    ):
        server.accept_forever()


if __name__ == "__main__":
    main()
