"""Server-sent events: an event's lines, and a heartbeat where nothing else is said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final, Protocol

from rest_framework.utils.encoders import JSONEncoder

HEARTBEAT_S: Final = 15.0
"""Seconds of silence after which a comment is sent, so that proxies keep the stream open."""


class Named(Protocol):
    """An event with a name and a JSON body."""

    name: str
    data: dict[str, Any]


def event_bytes(name: str, data: Any) -> bytes:
    """One event on the wire."""
    return f"event: {name}\ndata: {json.dumps(data, cls=JSONEncoder, ensure_ascii=False)}\n\n".encode()


async def with_heartbeats(
    events: AsyncGenerator[bytes, None], *, every: float = HEARTBEAT_S
) -> AsyncGenerator[bytes, None]:
    """The events, with a comment after each silence. Closing it closes the source."""
    async with aclosing(events) as source:
        step: asyncio.Task[bytes] | None = None
        try:
            while True:
                step = step or asyncio.ensure_future(anext(source))
                done, _ = await asyncio.wait({step}, timeout=every)
                if not done:
                    yield b": heartbeat\n\n"
                    continue
                try:
                    event = step.result()
                except StopAsyncIteration:
                    return
                finally:
                    step = None
                yield event
        finally:
            if step is not None:
                step.cancel()
                await asyncio.wait({step})
