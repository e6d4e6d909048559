"""`manage.py vector_index`: indexes for the buckets that have grown large."""

from __future__ import annotations

import threading
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from recall.services.dense import LARGE
from recall.services.vector_indexes import BusyError, Wanted, progress, update


class Command(BaseCommand):
    """Builds and drops what is due. Reads and writes go on meanwhile; broken off, the next run begins anew."""

    help = f"Builds vector indexes for buckets of {LARGE:,} records and more, and drops those not needed any more."

    def handle(self, **_: Any) -> None:
        console = Console(file=self.stdout, highlight=False)  # type: ignore[arg-type]  # a wrapped stream
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=console) as bars:
            watch = _Watch(bars)
            watch.start()
            try:
                built, dropped = update(using="owner", tell=watch.tell)
            except BusyError as busy:
                raise CommandError(str(busy)) from busy
            finally:
                watch.stop()
        names = ", ".join(one.name for one in built) or "none"
        self.stdout.write(f"Built: {names}. Dropped: {', '.join(dropped) or 'none'}.")


class _Watch(threading.Thread):
    """Asks Postgres how far the build is, and moves the bar."""

    def __init__(self, bars: Progress) -> None:
        super().__init__(daemon=True)
        self._bars = bars
        self._task = bars.add_task("looking", total=None)
        self._done = threading.Event()

    def tell(self, step: str, index: Wanted | None) -> None:
        """What begins now."""
        what = f"bucket {index.bucket}, {index.records:,} records" if index else "an index"
        self._bars.update(self._task, description=f"{step} {what}", completed=0, total=None)

    def run(self) -> None:
        try:
            while not self._done.wait(0.5):
                now = progress(using="owner")
                if now.total:
                    self._bars.update(self._task, completed=now.done, total=now.total)
        finally:
            connections.close_all()

    def stop(self) -> None:
        """Ends the thread and waits for it."""
        self._done.set()
        self.join()
