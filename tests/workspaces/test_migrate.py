"""Migrations run as the owner, one at a time."""

from __future__ import annotations

from io import StringIO

from django.core.management import call_command
from django.db import connections
from django.test.utils import CaptureQueriesContext

from workspaces.management.commands.migrate import LOCK


def test_migrating_takes_the_lock_and_gives_it_back(committed):
    owner = connections["owner"]
    with CaptureQueriesContext(owner) as asked:
        call_command("migrate", "sessions", stdout=StringIO())
    sent = [query["sql"] for query in asked.captured_queries]
    assert f"pg_advisory_lock({LOCK})" in sent[0]
    with owner.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)
