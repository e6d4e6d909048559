"""A child of the local embedder without a model: `python -m tests.stubs.embed_child`, as `nano` in its place.

A vector is made of the text's hash. Some texts make it misbehave; see `_misbehave` and `_spoilt`. What it is
asked is written to the file that EMBED_STUB_LOG names, a line of JSON each. With EMBED_STUB_ABSENT it says
that there is no model; with EMBED_STUB_BROKEN it ends before it says anything.
"""

import hashlib
import json
import os
import signal
import sys
from pathlib import Path

from integrations.clients.embed.wire import Health, Reply, Request, read_request, reply_frame

DIMENSIONS = 384


def vector_of(text: str, kind: str) -> list[float]:
    seed = hashlib.shake_256(f"{kind}: {text}".encode()).digest(DIMENSIONS)
    return [byte / 255 - 0.5 for byte in seed]


def main() -> None:
    if os.environ.get("EMBED_STUB_BROKEN"):
        sys.exit(7)
    absence = os.environ.get("EMBED_STUB_ABSENT", "")
    _say(Reply(health=Health(ready=not absence, reason=absence)))
    while not absence:
        request = read_request(_read)
        _log(request)
        for text in request.texts:
            _misbehave(text)
        _say(Reply(_spoilt(request)))


def _misbehave(text: str) -> None:
    """HOLD waits until somebody has opened and closed the named pipe; DIE with a path dies once."""
    word, _, path = text.partition(" ")
    if word == "HOLD":
        Path(path).read_bytes()
    elif word == "HANG":
        signal.pause()
    elif word == "DIE" and not (path and Path(path).exists()):
        if path:
            Path(path).touch()
        os._exit(3)


def _spoilt(request: Request) -> list[list[float]]:
    vectors = [vector_of(text, request.kind) for text in request.texts]
    for place, text in enumerate(request.texts):
        if text == "NAN":
            vectors[place][7] = float("nan")
        elif text == "ZERO":
            vectors[place] = [0.0] * DIMENSIONS
        elif text == "SIZE":
            vectors[place].pop()
        elif text == "FEW":
            return vectors[1:]
    return vectors


def _log(request: Request) -> None:
    if path := os.environ.get("EMBED_STUB_LOG"):
        with Path(path).open("a", encoding="utf-8") as log:
            log.write(json.dumps([request.kind, list(request.texts)]) + "\n")


def _say(reply: Reply) -> None:
    sys.stdout.buffer.write(reply_frame(reply))
    sys.stdout.buffer.flush()


def _read(size: int) -> bytes:
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        sys.exit(0)
    return data


if __name__ == "__main__":
    main()
