"""The embedded Postgres: one cluster is made for the whole module, by two processes at once."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
from psycopg import errors

from config import embedded, launch

ROOT = Path(__file__).resolve().parents[2]
START = """
import resource, sys
from pathlib import Path
from config import embedded
folder, limit = Path(sys.argv[1]), int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    print(embedded.ensure_running(folder, durable=False).app)
except embedded.EmbeddedError as error:
    sys.exit(str(error))
"""


def start_elsewhere(folder: Path, *, file_size_limit: int = 0) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", START, str(folder), str(file_size_limit)]
    return subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@dataclass(frozen=True)
class Server:
    folder: Path
    urls: embedded.Urls

    def pid(self) -> int:
        return int((self.folder / "postgres/postmaster.pid").read_text().split()[0])

    def ask(self, sql: str, *, role: str = "mate_app", database: str = "mate") -> list[tuple]:
        url = self.urls.app.replace("mate_app@/mate?", f"{role}@/{database}?")
        with psycopg.connect(url, autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("embedded") / "a 'long' path" / ("数据" * 25) / ("x" * 100)
    both = [start_elsewhere(folder), start_elsewhere(folder)]
    answers = [(*process.communicate(timeout=120), process.returncode) for process in both]
    assert [code for *_, code in answers] == [0, 0], answers
    assert answers[0][0] == answers[1][0]
    yield Server(folder, embedded.ensure_running(folder))
    embedded.stop(folder)


@pytest.fixture
def server(cluster: Server) -> Server:
    """It runs, whatever the test before did."""
    embedded.ensure_running(cluster.folder, durable=False)
    return cluster


def test_two_processes_that_start_it_at_once_share_one_server(server: Server) -> None:
    assert server.ask("SELECT current_database(), current_user") == [("mate", "mate_app")]
    assert [entry.name for entry in server.folder.glob("postgres.new*")] == []


def test_starting_it_again_changes_nothing(server: Server) -> None:
    before = server.pid()
    assert embedded.ensure_running(server.folder) == server.urls
    assert server.pid() == before
    assert embedded.is_running(server.folder)


def test_its_socket_is_short_and_private_and_no_port_is_open(server: Server) -> None:
    folder = server.urls.app.partition("host=")[2]
    assert len(str(server.folder)) > 107 > len(folder) + len("/.s.PGSQL.5432.lock")
    assert Path(folder).stat().st_mode & 0o777 == 0o700
    assert server.ask("SHOW listen_addresses") == [("",)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("server_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("jit", "off"),
        ("max_connections", "200"),
        ("fsync", "off"),  # this module asked for durable=False
        ("full_page_writes", "off"),
        ("log_min_error_statement", "panic"),
    ],
)
def test_it_is_set_up_for_the_product(server: Server, setting: str, value: str) -> None:
    assert server.ask(f"SHOW {setting}") == [(value,)]


def test_letters_of_all_languages_have_cases_and_sort_by_code_point(server: Server) -> None:
    assert server.ask("SELECT lower('ÄÉ'), 'Z' < 'a'") == [("äé", True)]


def test_the_two_roles_have_no_power_beyond_their_work(server: Server) -> None:
    roles = server.ask(
        "SELECT rolname, rolcanlogin, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb "
        "FROM pg_roles WHERE rolname LIKE 'mate%' ORDER BY 1"
    )
    assert roles == [
        ("mate_app", True, False, False, False, False),
        ("mate_owner", True, False, False, False, True),
    ]
    owned = "SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'mate'"
    assert server.ask(owned) == [("mate_owner",)]


@pytest.mark.parametrize(
    "sql",
    [
        "CREATE TABLE t (id int)",
        "CREATE TEMPORARY TABLE t (id int)",
        "CREATE SCHEMA s",
        "DROP EXTENSION vector",
        "CREATE DATABASE d",
        "CREATE ROLE r",
        "SET ROLE mate_owner",
        "SET SESSION AUTHORIZATION postgres",
        "ALTER ROLE mate_app BYPASSRLS",
        "COPY (SELECT 1) TO PROGRAM 'cat'",
        "SELECT pg_read_file('/etc/passwd')",
    ],
)
def test_the_application_role_is_refused(server: Server, sql: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        server.ask(sql)


def test_the_application_role_sees_only_what_a_policy_lets_it(server: Server) -> None:
    for sql in (
        "CREATE TABLE guarded (id int)",
        "INSERT INTO guarded VALUES (1), (2)",
        "ALTER TABLE guarded ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY only_two ON guarded USING (id = 2)",
        "GRANT SELECT ON guarded TO mate_app",
    ):
        server.ask(sql, role="mate_owner")
    assert server.ask("SELECT id FROM guarded") == [(2,)]
    with pytest.raises(errors.InsufficientPrivilege):
        server.ask("SET row_security = off; SELECT id FROM guarded")
    server.ask("DROP TABLE guarded", role="mate_owner")


def test_the_owner_makes_test_databases_that_have_vectors(server: Server) -> None:
    server.ask("CREATE DATABASE test_mate", role="mate_owner")
    distance = "SELECT '[1,2]'::vector <-> '[1,4]'::vector"
    assert server.ask(distance, role="mate_owner", database="test_mate") == [(2.0,)]
    assert server.ask(distance) == [(2.0,)]
    server.ask("DROP DATABASE test_mate", role="mate_owner")


def test_it_starts_again_after_a_kill(server: Server) -> None:
    killed = server.pid()
    with open(os.pidfd_open(killed)) as end:  # noqa: PTH123 - a number, not a path
        os.kill(killed, signal.SIGKILL)
        assert select.select([end], [], [], 60)[0]
    assert embedded.ensure_running(server.folder, durable=False) == server.urls
    assert server.pid() != killed
    assert server.ask("SELECT 1") == [(1,)]


def test_it_starts_although_another_program_has_its_old_number(server: Server) -> None:
    owner = (server.folder / "postgres").stat()
    as_owner = launch.as_user(["cat"], uid=owner.st_uid, gid=owner.st_gid) if os.geteuid() == 0 else ["cat"]
    pidfile = server.folder / "postgres/postmaster.pid"
    as_left = pidfile.read_text().split("\n", 1)[1]
    embedded.stop(server.folder)
    with subprocess.Popen(as_owner, stdin=subprocess.PIPE) as other:
        pidfile.write_text(f"{other.pid}\n{as_left}")
        embedded.ensure_running(server.folder, durable=False)
        assert server.ask("SELECT 1") == [(1,)]
        assert other.poll() is None
        other.communicate()


def test_it_starts_again_when_its_socket_was_swept_away(server: Server) -> None:
    folder = server.urls.app.partition("host=")[2]
    before = server.pid()
    for entry in Path(folder).iterdir():
        entry.unlink()
    assert not embedded.is_running(server.folder)
    embedded.ensure_running(server.folder, durable=False)
    assert server.pid() != before
    assert server.ask("SELECT 1") == [(1,)]


def test_whoever_leaves_last_stops_it(server: Server) -> None:
    with embedded.running(server.folder, durable=False):
        with embedded.running(server.folder, durable=False) as urls:
            assert urls == server.urls
        assert embedded.is_running(server.folder)
    assert not embedded.is_running(server.folder)
    embedded.stop(server.folder)  # a second time is no error


def test_a_folder_that_takes_no_more_is_named_and_the_next_start_is_not_blocked(tmp_path: Path) -> None:
    refused = start_elsewhere(tmp_path, file_size_limit=64 * 1024)
    _, message = refused.communicate(timeout=120)
    assert refused.returncode == 1
    assert len(message.strip().splitlines()) == 1
    assert str(tmp_path) in message
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_dir()] == []
    embedded.ensure_running(tmp_path, durable=False)
    assert embedded.is_running(tmp_path)
    embedded.stop(tmp_path)


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(embedded.EmbeddedError, match=r"data folder .*/data: (File exists|Not a directory)"):
        embedded.ensure_running(tmp_path / "data")


def test_another_version_s_files_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "postgres").mkdir()
    (tmp_path / "postgres/PG_VERSION").write_text("16\n")
    with pytest.raises(embedded.EmbeddedError, match=r"made by Postgres 16; this release runs 18"):
        embedded.ensure_running(tmp_path)


def test_a_socket_folder_that_somebody_else_made_first_is_refused(tmp_path: Path) -> None:
    trap = embedded._home(tmp_path).socket_dir
    trap.symlink_to(tmp_path)
    try:
        with pytest.raises(embedded.EmbeddedError, match="socket folder"):
            embedded.ensure_running(tmp_path)
    finally:
        trap.unlink()
    assert not (tmp_path / "postgres").exists()
