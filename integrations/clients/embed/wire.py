"""The wire between the local embedder, its clients and its child: frames of JSON, followed by floats.

A frame is two big-endian lengths, a JSON object, and 32-bit floats in the machine's own order (both ends are
one machine). Each request has one answer; there is one request at a time on a connection.
"""

import hashlib
import json
import os
import struct
from array import array
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, Literal, cast, get_args

from integrations.clients.embed.embedder import TextKind
from integrations.clients.errors import ProviderErrorKind

MOST_TEXTS: Final = 64
MOST_BYTES: Final = 4 * 1024 * 1024
_LENGTHS: Final = struct.Struct("!II")

Task = Literal["embed", "health"]

Read = Callable[[int], bytes]
"""Gives exactly that many bytes, or raises EOFError or OSError."""


class WireError(ValueError):
    """A frame that does not follow the wire; the connection is of no further use."""


@dataclass(frozen=True)
class Request:
    """`texts` for `embed` alone: at most `MOST_TEXTS`, of one kind."""

    do: Task
    kind: TextKind = "passage"
    texts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Failure:
    """As in ProviderError."""

    message: str
    kind: ProviderErrorKind
    retryable: bool
    retry_after_s: float | None = None


@dataclass(frozen=True)
class Health:
    """How the local embedder is: `ready`, or why not.

    `waiting`: requests in its queue. `restarts`: how often its model had to be loaded again.
    """

    ready: bool
    reason: str = ""
    waiting: int = 0
    restarts: int = 0


@dataclass(frozen=True)
class Reply:
    """Vectors, all of one size; or a failure; or, to `health`, how it is."""

    vectors: Sequence[Sequence[float]] = ()
    failure: Failure | None = None
    health: Health | None = None


@dataclass(frozen=True)
class _Head:
    """The JSON of a reply."""

    failure: dict[str, Any] | None = None
    health: dict[str, Any] | None = None
    sizes: list[int] = field(default_factory=list)


def folder_of(data_dir: Path) -> Path:
    """Where the embedder of a data folder listens: a short path, since a socket's ends after 107 bytes."""
    digest = hashlib.sha256(os.fsencode(os.path.realpath(data_dir))).hexdigest()[:16]
    return Path("/tmp") / f"mate-{digest}-embed"  # noqa: S108 - checked to be ours, by both ends


def socket_of(data_dir: Path) -> Path:
    return folder_of(data_dir) / "socket"


def is_ours(folder: Path) -> bool:
    """Whether only this user (or root) can have put a socket there. Raises OSError when it is not there."""
    found = folder.lstat()
    return folder.is_dir() and not folder.is_symlink() and found.st_uid in (os.geteuid(), 0)


def request_frame(request: Request) -> bytes:
    return _frame(asdict(request))


def reply_frame(reply: Reply) -> bytes:
    sizes = [len(vector) for vector in reply.vectors]
    body = array("f", [value for vector in reply.vectors for value in vector])
    head = _Head(
        failure=asdict(reply.failure) if reply.failure else None,
        health=asdict(reply.health) if reply.health else None,
        sizes=sizes,
    )
    return _frame(asdict(head), body.tobytes())


def read_request(read: Read) -> Request:
    """The next request. Raises WireError, EOFError, OSError."""
    head, _ = _read_frame(read)
    do, kind, texts = head.get("do"), head.get("kind"), head.get("texts")
    if do not in get_args(Task) or kind not in get_args(TextKind) or not isinstance(texts, list):
        raise WireError("Not a request.")
    if len(texts) > MOST_TEXTS or not all(isinstance(text, str) for text in texts):
        raise WireError(f"A request holds up to {MOST_TEXTS} texts.")
    return Request(cast("Task", do), cast("TextKind", kind), tuple(texts))


def read_reply(read: Read) -> Reply:
    """The next reply. Raises WireError, EOFError, OSError."""
    raw, body = _read_frame(read)
    try:
        head = _Head(**raw)
        values = array("f", body)
        ends = list(accumulate(head.sizes))
        if len(values) != (ends[-1] if ends else 0):
            raise WireError("A reply with other numbers than it says.")
        vectors = [values[end - size : end] for end, size in zip(ends, head.sizes, strict=True)]
        failure = Failure(**head.failure) if head.failure else None
        health = Health(**head.health) if head.health else None
    except (TypeError, ValueError) as error:
        raise WireError("Not a reply.") from error
    return Reply(vectors, failure, health)


def _frame(head: dict[str, Any], body: bytes = b"") -> bytes:
    text = json.dumps(head).encode("ascii")  # a lone surrogate stays an escape
    return _LENGTHS.pack(len(text), len(body)) + text + body


def _read_frame(read: Read) -> tuple[dict[str, Any], bytes]:
    head_bytes, body_bytes = _LENGTHS.unpack(read(_LENGTHS.size))
    if head_bytes + body_bytes > MOST_BYTES:
        raise WireError(f"A frame of {head_bytes + body_bytes} bytes; {MOST_BYTES} are allowed.")
    text, body = read(head_bytes), read(body_bytes)
    try:
        head = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise WireError("A frame without JSON.") from error
    if not isinstance(head, dict):
        raise WireError("A frame without an object.")
    return head, body
