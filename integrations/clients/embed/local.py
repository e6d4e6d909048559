"""The local embedder as its clients see it: a socket, no native code, nothing that a fork could break."""

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from integrations.clients.embed.embedder import Limits, TextKind
from integrations.clients.embed.names import LOCAL_DIMENSIONS, LOCAL_MODEL
from integrations.clients.embed.slices import MOST_CHARACTERS, estimated_tokens
from integrations.clients.embed.wire import (
    MOST_TEXTS,
    Health,
    Reply,
    Request,
    WireError,
    is_ours,
    read_reply,
    request_frame,
    socket_of,
)
from integrations.clients.errors import ProviderError

_MOST_IDLE: Final = 4

# About a second of an idle machine's time, ten of a busy one's.
_TOKENS_PER_CALL: Final = 2000


class LocalEmbedder:
    """A Service: the embedder of this data folder. `timeout_s` bounds one request, waiting included."""

    name: Final = f"local:{LOCAL_MODEL}"
    dimensions: Final = LOCAL_DIMENSIONS
    limits: Final = Limits(
        texts_per_call=MOST_TEXTS,
        cut=lambda text: text[:MOST_CHARACTERS].rstrip(),
        cost=estimated_tokens,
        cost_per_call=_TOKENS_PER_CALL,
    )

    def __init__(self, data_dir: Path, *, timeout_s: float) -> None:
        self._path = socket_of(data_dir)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._idle: list[socket.socket] = []
        self._pid = os.getpid()

    def __del__(self) -> None:
        for connection in self._idle:
            connection.close()

    def ask(self, texts: Sequence[str], kind: TextKind) -> Sequence[Sequence[float]]:
        return self._exchange(Request("embed", kind, tuple(texts))).vectors

    def health(self) -> Health:
        """How the embedder is. Raises ProviderError when nobody answers."""
        health = self._exchange(Request("health")).health
        if health is None:
            raise ProviderError("The local embedder answered wrongly.", retryable=True, kind="bad_answer")
        return health

    def _exchange(self, request: Request) -> Reply:
        deadline = time.monotonic() + self._timeout_s
        try:
            reply = self._exchange_before(deadline, request)
        except TimeoutError as error:
            message = f"The local embedder did not answer within {self._timeout_s:g} s."
            raise ProviderError(message, retryable=True, kind="timeout") from error
        except (EOFError, OSError) as error:
            reason = str(error) or "it hung up"
            message = f"The local embedder does not answer ({reason}): does its process run?"
            raise ProviderError(message, retryable=True, kind="unavailable") from error
        except WireError as error:
            message = f"The local embedder answered wrongly: {error}"
            raise ProviderError(message, retryable=True, kind="bad_answer") from error
        if (failure := reply.failure) is not None:
            raise ProviderError(
                failure.message,
                retryable=failure.retryable,
                kind=failure.kind,
                retry_after_s=failure.retry_after_s,
            )
        return reply

    def _exchange_before(self, deadline: float, request: Request) -> Reply:
        """On a connection that was kept, or else on a new one: the server may have been started again."""
        for connection in chain(self._kept(), (None,)):
            try:
                with self._lent(connection or self._connect(deadline)) as lent:
                    return _converse(lent, request, deadline)
            except TimeoutError:
                raise
            except (EOFError, OSError):
                if connection is None:
                    raise
        raise AssertionError("The last round returns or raises.")

    def _connect(self, deadline: float) -> socket.socket:
        if not is_ours(self._path.parent):
            raise PermissionError(f"the socket folder {self._path.parent} is not ours")
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.settimeout(_left(deadline))
            connection.connect(str(self._path))
        except BaseException:
            connection.close()
            raise
        return connection

    def _kept(self) -> Iterator[socket.socket]:
        """Connections without a use, each given once; the parent's are not ours after a fork."""
        if self._pid != os.getpid():
            inherited, self._lock, self._idle, self._pid = self._idle, threading.Lock(), [], os.getpid()
            for connection in inherited:
                connection.close()  # our copy of it
        while True:
            with self._lock:
                if not self._idle:
                    return
                connection = self._idle.pop()
            yield connection

    @contextlib.contextmanager
    def _lent(self, connection: socket.socket) -> Iterator[socket.socket]:
        """A connection that is kept when all went well, and closed when not: an answer may still come on it."""
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append(connection)
                return
        connection.close()


def _converse(connection: socket.socket, request: Request, deadline: float) -> Reply:
    def read(size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            connection.settimeout(_left(deadline))
            chunk = connection.recv(size - len(data))
            if not chunk:
                raise EOFError
            data += chunk
        return bytes(data)

    connection.settimeout(_left(deadline))
    connection.sendall(request_frame(request))
    return read_reply(read)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
