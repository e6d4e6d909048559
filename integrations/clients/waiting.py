"""What must happen before anybody waits for an outside service."""

from collections.abc import Callable

before_call: list[Callable[[], None]] = []
"""What must happen before any call of a model or an embedder, in the thread of the caller: the layer above
joins at start.

Each is called first, before anything is sent, and may raise to refuse the call.
"""


def run_before_call() -> None:
    for hook in before_call:
        hook()
