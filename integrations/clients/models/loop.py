"""One event loop a process, in a thread of its own, where every model call runs.

A connection belongs to the loop that opened it. With one loop, threads, prefork workers and async views
share one pool of connections, a deadline holds whatever the call is doing, and a call is stopped by
cancelling its future.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

import anyio.to_thread

from integrations.clients.errors import ProviderError
from integrations.clients.waiting import before_call, run_before_call

__all__ = ["before_call", "run", "run_before_call", "start"]

T = TypeVar("T")

# Bedrock's client blocks a thread for each call, and tools run in threads too; anyio's default is 40.
_THREADS = 256

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def start(work: Coroutine[Any, Any, T]) -> "Future[T]":
    """Run `work` on the models' loop. Cancelling the future cancels it there, and closes what it had open."""
    return asyncio.run_coroutine_threadsafe(work, _models_loop())


def run(work: Coroutine[Any, Any, T], *, timeout_s: float) -> T:
    """The result of `work`; after `timeout_s` seconds, `work` is cancelled and ProviderError says `timeout`.

    For plain threads, prefork workers and sync views (also under ASGI, where Django gives them a thread).
    Where an event loop runs in this thread it raises RuntimeError: waiting here would stop that loop.
    """
    if _is_inside_a_loop():
        work.close()
        raise RuntimeError(
            "A blocking model call inside a running event loop: use the async one, or a thread."
        )
    future = start(work)
    try:
        return future.result(timeout_s)
    except TimeoutError as error:
        if future.done():  # the work's own error, not our deadline
            raise
        raise ProviderError(
            f"The model did not answer within {timeout_s:g} s.", retryable=True, kind="timeout"
        ) from error
    finally:
        future.cancel()


def _is_inside_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _models_loop() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one loop a process is the point
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_serve, args=(_loop,), name="model-calls", daemon=True).start()
        return _loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_until_complete(_widen_thread_limit())
    loop.run_forever()


async def _widen_thread_limit() -> None:
    anyio.to_thread.current_default_thread_limiter().total_tokens = _THREADS


def _forget_after_fork() -> None:
    """A forked child has the parent's loop object but not its thread: it starts its own at its first call."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_after_fork)
