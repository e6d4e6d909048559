"""The embedded broker: kombu's own of files, whose files appear whole.

As it comes, a reader may find a message or a table that is opened and not yet written, and the worker ends on it.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
import uuid
from pathlib import Path
from typing import Any, Final

from kombu.transport import TRANSPORT_ALIASES, filesystem

URL: Final = "embedded://"
"""What the broker is called where none is given."""


class Channel(filesystem.Channel):
    """Writes beside, then renames."""

    # kombu's own two signatures differ from each other.
    def _put(self, queue: str, payload: dict[str, Any], **kwargs: Any) -> None:  # type: ignore[override]  # noqa: ARG002
        name = f"{round(time.monotonic() * 1000)}_{uuid.uuid4()}.{queue}.msg"
        self._write(Path(self.data_folder_in) / name, payload)

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        self.control_folder.mkdir(parents=True, exist_ok=True)
        # Two who bind at once must both be in the table.
        with (self.control_folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            bound = filesystem.exchange_queue_t(routing_key or "", pattern or "", queue or "")
            table = self.get_table(exchange)  # type: ignore[no-untyped-call]
            if bound not in table:
                file = self._exchange_file(exchange)  # type: ignore[no-untyped-call]
                self._write(file, [bound, *table])

    def _write(self, path: Path, content: Any) -> None:
        draft = self.control_folder / f"{uuid.uuid4()}.draft"
        draft.write_text(json.dumps(content), "utf-8")
        os.replace(draft, path)  # noqa: PTH105 - as atomic as it reads


class Transport(filesystem.Transport):
    """kombu's transport of files, with the channel above."""

    Channel = Channel


TRANSPORT_ALIASES["embedded"] = f"{__name__}:Transport"
