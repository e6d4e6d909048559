"""`manage.py migrate`: Django's own, one at a time, as the owner of the tables."""

from __future__ import annotations

from typing import Any, Final

from django.core.management.base import CommandParser
from django.core.management.commands import migrate
from django.db import connections

LOCK: Final = 0x6D617465
"""The advisory lock of migrations ("mate" in ASCII): processes that start together wait for the first."""


class Command(migrate.Command):
    """Runs as the role `owner` unless told otherwise, and holds an advisory lock meanwhile."""

    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(database="owner")

    def handle(self, *args: Any, **options: Any) -> Any:
        connection = connections[options["database"]]
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        try:
            return super().handle(*args, **options)
        finally:
            if connection.connection is not None:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
