"""`manage.py reindex`: the search index, made anew from messages and files."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory.services.reindex import all_buckets, reindex_bucket
from workspaces.models import Bucket


def bar(command: BaseCommand) -> Progress:
    """A progress bar on the command's output."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(file=command.stdout, highlight=False),  # type: ignore[arg-type]  # a wrapped stream
    )


class Command(BaseCommand):
    """Serves on meanwhile; broken off, run it again. What has no vector yet gets it from the worker."""

    help = "Makes the search index anew from messages and files, bucket by bucket, while all goes on."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bucket", type=int, action="append", help="Only this bucket; may be repeated.")

    def handle(self, *, bucket: list[int] | None, **_: Any) -> None:
        buckets = bucket or all_buckets()
        records = 0
        with bar(self) as bars:
            for bucket_id in bars.track(buckets, description="buckets"):
                # One that was erased meanwhile has none.
                with suppress(Bucket.DoesNotExist):
                    records += reindex_bucket(bucket_id)
        self.stdout.write(f"{records:,} records of {len(buckets):,} buckets.")
