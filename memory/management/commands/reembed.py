"""`manage.py reembed NAME`: vectors by another embedder, made beside those that serve."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from integrations.clients.errors import ProviderError
from memory.management.commands.reindex import bar
from memory.services.embedding import RECORDS_TIMEOUT_S, embedder_named, store_name
from memory.services.reindex import embed_bucket
from recall.services.index import buckets_without_vector, count_without_vector, drop_vectors
from workspaces.models import Bucket


class Command(BaseCommand):
    """Old and new stand side by side until `MATE_EMBEDDER` names the new one; then `--drop` removes the old."""

    help = (
        "Makes vectors by another embedder beside those in use; --drop removes those of one no longer used."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("embedder", help="As in MATE_EMBEDDER: local, openai:… or bedrock:…")
        parser.add_argument(
            "--drop", action="store_true", help="Remove the vectors of that embedder instead."
        )

    def handle(self, *, embedder: str, drop: bool, **_: Any) -> None:
        try:
            made = embedder_named(embedder, RECORDS_TIMEOUT_S)
        except (ValueError, ProviderError) as bad:
            raise CommandError(str(bad)) from bad
        if made is None:
            raise CommandError(
                f"{embedder!r} makes no vectors: name local, openai:<model> or bedrock:<model>."
            )
        if drop:
            if embedder == settings.MATE_EMBEDDER:
                raise CommandError(f"{embedder!r} is in use: set MATE_EMBEDDER to another one first.")
            self.stdout.write(f"Removed {drop_vectors(made.name):,} vectors of {embedder}.")
            return
        lacking = count_without_vector(embedder=made.name, store=store_name())
        try:
            with bar(self) as bars:
                task = bars.add_task("records", total=lacking)
                while buckets := buckets_without_vector(embedder=made.name, store=store_name(), limit=1000):
                    for bucket_id in buckets:
                        with suppress(Bucket.DoesNotExist):
                            embed_bucket(bucket_id, made, tell=lambda count: bars.advance(task, count))
        except ProviderError as error:
            raise CommandError(f"{error} What was made is kept: run it again to go on.") from error
        self.stdout.write(
            f"All records have a vector by {embedder}. Set MATE_EMBEDDER={embedder} and restart."
        )
