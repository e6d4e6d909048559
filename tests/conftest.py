"""The real Postgres, the application's role, a fixed cast, and no network."""

from __future__ import annotations

import os
import shutil
import socket
import uuid
from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from psycopg import sql
from pytest_django.plugin import blocking_manager_key

from config.embedded import ensure_running, stop
from tests import factories
from tests.environment import ROOT
from workspaces import tenancy
from workspaces.logic import policies

TEMPLATE = "mate_template"


def pytest_configure(config: pytest.Config) -> None:
    """Starts one server for the whole run and makes the template that each worker copies."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    if hasattr(config, "workerinput"):
        return
    urls = ensure_running(ROOT, durable=False)
    with psycopg.connect(urls.owner, autocommit=True) as owner:
        owner.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(TEMPLATE)))
    owner_db = connections["owner"]
    owner_db.settings_dict["NAME"] = TEMPLATE
    with config.stash[blocking_manager_key].unblock():
        call_command("migrate", database="owner", verbosity=0, interactive=False)
        owner_db.close()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stops the server of this run."""
    if hasattr(config, "workerinput"):
        return
    stop(ROOT)
    shutil.rmtree(ROOT, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_setup() -> Iterator[None]:
    """A copy of the migrated template for this worker; the tests log in as the application's role."""
    name = f"mate_test_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}_{uuid.uuid4().hex[:8]}"
    urls = ensure_running(ROOT, durable=False)
    with psycopg.connect(urls.owner, autocommit=True) as owner:
        owner.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(name), sql.Identifier(TEMPLATE))
        )
    for alias in ("default", "owner"):
        connections[alias].close()
        connections[alias].settings_dict["NAME"] = name
    yield
    for alias in ("default", "owner"):
        connections[alias].close()


@pytest.fixture
def committed(django_db_setup: None, django_db_blocker) -> Iterator[None]:
    """The database with real commits, for tests of several connections; emptied afterwards by the owner."""
    with django_db_blocker.unblock():
        yield
        connections["default"].close()
        with connections["owner"].cursor() as cursor:
            cursor.execute(
                "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables"
                " WHERE schemaname = 'public' AND tablename <> 'django_migrations'"
                " AND tablename NOT IN ('django_content_type', 'auth_permission')"
            )
            cursor.execute(f"TRUNCATE {cursor.fetchone()[0]} RESTART IDENTITY CASCADE")
            cursor.execute(policies.RESERVED_ROWS)
        connections["owner"].close()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this machine can be reached."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address):
        if self.family != socket.AF_UNIX and address[0] not in {"127.0.0.1", "localhost", "::1"}:
            raise AssertionError(f"A test reached for the network: {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True)
def _water_mark(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The transaction that a test runs in is not one of the product's."""
    if "db" in request.fixturenames or request.node.get_closest_marker("django_db"):
        request.getfixturevalue("db")
        monkeypatch.setattr(tenancy, "WATER_MARK", tenancy.transaction_depth())


@pytest.fixture
def acme(db: None) -> factories.World:
    """Alice's workspace, in a transaction that is rolled back."""
    return factories.acme()


@pytest.fixture
def umbra(db: None) -> factories.World:
    """Mallory's workspace."""
    return factories.umbra()
