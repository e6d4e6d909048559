"""How the web process answers: a plain request in one hop to a thread, a stream in the event loop.

Django's own handler goes back and forth between loop and threads for each layer of middleware, and makes a thread
and a database connection's wrapper anew for each request.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from asgiref.sync import sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.db import close_old_connections
from django.urls import set_script_prefix

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]

MOST_AT_ONCE: Final = 256
"""Plain requests that are worked on at once: those that wait for a model hold a thread and nothing else."""


class Handler(ASGIHandler):
    """Django's ASGI handler, its middleware and views run as WSGI would run them."""

    def __init__(self) -> None:
        # Without its parent's: that would load the middleware for the loop.
        self.load_middleware(is_async=False)
        self._threads = ThreadPoolExecutor(MOST_AT_ONCE, thread_name_prefix="request")

    async def handle(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        """Answers one request. A client that leaves ends a stream; a plain request is finished all the same."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            # What a request sets in its context must not be there for the thread's next one.
            context = contextvars.copy_context()
            response = await asyncio.get_running_loop().run_in_executor(
                self._threads, context.run, self._answer, scope, body
            )
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    def _answer(self, scope: Mapping[str, Any], body: Any) -> Any:
        """The whole of a plain request. A stream is left open, and whatever this thread holds is given back."""
        set_script_prefix(get_script_prefix(dict(scope)))
        signals.request_started.send(sender=type(self), scope=scope)
        request, refusal = self.create_request(dict(scope), body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = type(self)
        if response.streaming:
            close_old_connections()
        else:
            response.close()
        return response

    async def _stream(self, response: Any, receive: Receive, send: Send) -> None:
        """Sends a stream until it or its reader ends; what it asks of threads runs in one of its own (`__call__`)."""
        sending = asyncio.create_task(self.send_response(response, send))
        leaving = asyncio.ensure_future(receive())
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            sending.cancel()
            try:
                await sending
            except asyncio.CancelledError:
                pass
            finally:
                await sync_to_async(response.close)()
