"""What the environment and `.env` say, checked once at the start."""

import base64
import binascii
import contextlib
import difflib
import json
import os
import re
import secrets
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import environ as django_environ

from integrations.clients.vectors.names import check_store_name

CHECKOUT = Path(__file__).resolve().parent.parent
DOTENV = CHECKOUT / ".env"

_T = TypeVar("_T")
_PREFIX = "MATE_"
_SECRETS = "secrets.json"


class EnvError(Exception):
    """The environment is not usable; `problems` holds every reason, one line each, without any secret."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


@dataclass(frozen=True)
class Secrets:
    """The two keys that must outlive a restart: Django's, and the one that encrypts stored credentials."""

    secret_key: str = field(repr=False)
    encryption_key: str = field(repr=False)


@dataclass(frozen=True)
class Env:
    """The environment, typed. None (or "" for a text) means: not given."""

    database_url: str | None = field(repr=False)  # None: the embedded Postgres
    database_owner_url: str | None = field(repr=False)  # the role that migrates
    celery_broker_url: str | None = field(repr=False)  # None: the embedded broker
    data_dir: Path
    host: str
    port: int
    secret_key: str | None = field(repr=False)  # None: kept in the data folder, as the next
    encryption_key: str | None = field(repr=False)
    model: str | None  # a pydantic-ai model name; None: rules without a model
    openai_base_url: str | None
    embedder: str
    vector_store: str
    opensearch_username: str | None
    opensearch_password: str | None = field(repr=False)
    debug: bool
    allowed_hosts: tuple[str, ...]
    log_level: str
    workers: int  # processes of the worker
    process: str | None  # web, worker or beat, as the supervisor says
    openclaw_base: Path | None
    providers: tuple[str, ...]  # dotted paths of classes of plugins


def read_env(
    environ: MutableMapping[str, str], *, setting_names: frozenset[str], dotenv: Path | None = DOTENV
) -> Env:
    """The environment, typed and whole, or EnvError with all problems at once.

    What the file `dotenv` says and `environ` does not is added to `environ` first. An empty value counts as
    not given. `setting_names` are the variables of settings, which are known here and checked elsewhere.
    """
    if dotenv is not None and dotenv.is_file():
        _DotEnv.into(environ, dotenv)
    reader = _Reader(environ)
    env = _env(reader)
    problems = _unknown(environ, setting_names) + reader.problems + _missing(reader)
    if problems:
        raise EnvError(problems)
    return env


def ensure_secrets(data_dir: Path) -> Secrets:
    """The keys of this data folder, made at the first call and the same ever after, in every process.

    The file is readable by its owner only. Raises EnvError when it cannot be made or read.
    """
    path = data_dir / _SECRETS
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            _create_once(
                path, json.dumps({"secret_key": secrets.token_urlsafe(48), "encryption_key": _new_key()})
            )
        kept = json.loads(path.read_text(encoding="utf-8"))
        return Secrets(secret_key=kept["secret_key"], encryption_key=kept["encryption_key"])
    except OSError as error:
        raise EnvError([f"The data folder {data_dir} cannot hold {_SECRETS}: {error.strerror}"]) from error
    except (ValueError, KeyError, TypeError) as error:
        raise EnvError(
            [f"{path} is damaged: put it back from a backup (stored credentials need it)"]
        ) from error


def _create_once(path: Path, text: str) -> None:
    """The file exists, whole and private; of several writers at once the first wins."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(draft)
    finally:
        draft.unlink(missing_ok=True)


def _new_key() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(32)).decode("ascii")


class _DotEnv(django_environ.Env):  # type: ignore[misc] # it has no types
    """The library's reader of such files, writing elsewhere than into os.environ."""

    @classmethod
    def into(cls, environ: MutableMapping[str, str], path: Path) -> None:
        type("_Bound", (cls,), {"ENVIRON": environ}).read_env(path)  # type: ignore[attr-defined]


@dataclass
class _Reader:
    """Takes values out of the environment and notes what is wrong with them, all of it."""

    environ: Mapping[str, str]
    problems: list[str] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def text(self, name: str) -> str | None:
        self.known.add(name)
        return self.environ.get(name, "").strip() or None

    def take(self, name: str, parse: Callable[[str], _T], default: _T, *, secret: bool = False) -> _T:
        value = self.text(name)
        if value is None:
            return default
        try:
            return parse(value)
        except ValueError as wanted:
            shown = "its value (not shown)" if secret else repr(value)
            self.problems.append(f"{name}: {shown} is not {wanted}")
            return default


def _env(read: _Reader) -> Env:
    host = read.take("MATE_HOST", _host, "127.0.0.1")
    local = ("localhost", "127.0.0.1", "[::1]")
    return Env(
        database_url=read.take("DATABASE_URL", _database_url, None, secret=True),
        database_owner_url=read.take("DATABASE_OWNER_URL", _database_url, None, secret=True),
        celery_broker_url=read.take("CELERY_BROKER_URL", _broker_url, None, secret=True),
        data_dir=read.take("MATE_DATA_DIR", _path, CHECKOUT / ".data"),
        host=host,
        port=read.take("MATE_PORT", _whole(1, 65535), 8230),
        secret_key=read.take("SECRET_KEY", _secret_key, None, secret=True),
        encryption_key=read.take("MATE_ENCRYPTION_KEY", _encryption_key, None, secret=True),
        model=read.take("MATE_MODEL", _model, None),
        openai_base_url=read.take("OPENAI_BASE_URL", _http_url, None, secret=True),
        embedder=read.take("MATE_EMBEDDER", _embedder, "local"),
        vector_store=read.take("MATE_VECTOR_STORE", _vector_store, "pgvector"),
        opensearch_username=read.take("OPENSEARCH_USERNAME", _plain, None),
        opensearch_password=read.take("OPENSEARCH_PASSWORD", _plain, None, secret=True),
        debug=read.take("MATE_DEBUG", _truth, False),  # noqa: FBT003 - a default, named by its neighbour
        allowed_hosts=read.take("MATE_ALLOWED_HOSTS", _hosts, tuple(dict.fromkeys((*local, host)))),
        log_level=read.take("MATE_LOG_LEVEL", _log_level, "INFO"),
        workers=read.take("MATE_WORKERS", _whole(1, 64), 2),
        process=read.take("MATE_PROCESS", _one_of("web", "worker", "beat"), None),
        openclaw_base=read.take("OPENCLAW_BASE", _path, None),
        providers=read.take("MATE_PROVIDERS", _dotted_paths, ()),
    )


def _unknown(environ: Mapping[str, str], setting_names: frozenset[str]) -> list[str]:
    """One line for each MATE_… variable nobody reads. Its value may be a secret with a mistyped name."""
    reader = _Reader({})
    _env(reader)
    known = sorted(reader.known | setting_names)
    problems = []
    for name in sorted(environ):
        if name.startswith(_PREFIX) and name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}?" if near else "see the settings in the README"
            problems.append(f"{name}: there is no such variable; {hint}")
    return problems


def _missing(reader: _Reader) -> list[str]:
    if reader.text("DATABASE_URL") is None:
        if reader.text("DATABASE_OWNER_URL") is not None:
            return ["DATABASE_OWNER_URL: is given without DATABASE_URL, the application's own access"]
        return []
    # Several machines may share that database: keys that each made for itself would not fit together.
    return [
        f"{name}: must be given when DATABASE_URL is ({wanted})"
        for name, wanted in (("SECRET_KEY", _LONG_TEXT), ("MATE_ENCRYPTION_KEY", _KEY_BYTES))
        if reader.text(name) is None
    ]


# Each parser gives the value, or raises ValueError saying what would be right: "X is not …".

_LONG_TEXT = "a text of 32 characters or more, such as `openssl rand -base64 48` prints"
_KEY_BYTES = "32 random bytes in url-safe base64, such as `openssl rand -base64 32 | tr +/ -_` prints"


def _database_url(value: str) -> str:
    parts = _parts(value)
    if parts is None or parts[0] not in ("postgres", "postgresql") or len(parts[1]) < 2:
        raise ValueError("a Postgres address like postgresql://user:password@host:5432/database")
    return value


def _broker_url(value: str) -> str:
    parts = _parts(value)
    if parts is None or parts[0] not in ("amqp", "amqps", "redis", "rediss", "sentinel"):
        raise ValueError("a broker's address like amqp://user:password@host:5672// or redis://host:6379/0")
    return value


def _http_url(value: str) -> str:
    parts = _parts(value)
    if parts is None or parts[0] not in ("http", "https") or not urlsplit(value).hostname:
        raise ValueError("an address like https://host/v1")
    return value


def _parts(url: str) -> tuple[str, str] | None:
    """(scheme, path), or None where even the port is no number; urllib's own messages may tell a password."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts.scheme, parts.path


def _path(value: str) -> Path:
    """Relative to the checkout, so that all processes mean the same folder."""
    if "\0" in value:
        raise ValueError("a path")
    return CHECKOUT / Path(value).expanduser()


def _host(value: str) -> str:
    if any(c.isspace() or c in "/@" for c in value):
        raise ValueError("a host name or address, without port or scheme")
    return value


def _hosts(value: str) -> tuple[str, ...]:
    return tuple(_host(part.strip()) for part in value.split(",") if part.strip())


def _dotted_paths(value: str) -> tuple[str, ...]:
    paths = tuple(part.strip() for part in value.split(",") if part.strip())
    if not all("." in path and all(name.isidentifier() for name in re.split("[.:]", path)) for path in paths):
        raise ValueError("the dotted paths of classes, separated by commas, such as wiki.plugin.Wiki")
    return paths


def _secret_key(value: str) -> str:
    if len(value) < 32:
        raise ValueError(_LONG_TEXT)
    return value


def _encryption_key(value: str) -> str:
    with contextlib.suppress(binascii.Error, UnicodeEncodeError):
        if len(base64.b64decode(value.encode("ascii"), altchars=b"-_", validate=True)) == 32:
            return value
    raise ValueError(_KEY_BYTES)


def _model(value: str) -> str:
    provider, _, name = value.partition(":")
    if not provider or not name:
        raise ValueError("a model with its provider, such as openai:gpt-4o-mini, anthropic:… or bedrock:…")
    return value


def _embedder(value: str) -> str:
    provider, _, name = value.partition(":")
    if value not in ("local", "none") and not (provider in ("openai", "bedrock") and name):
        raise ValueError("local, none, openai:<model> or bedrock:<model>")
    return value


def _vector_store(value: str) -> str:
    try:
        return str(check_store_name(value))
    except ValueError as bad:
        raise ValueError(str(bad).partition("must be ")[2].rstrip(".")) from None


def _plain(value: str) -> str:
    return value


def _one_of(*choices: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            near = difflib.get_close_matches(value, choices, n=1)
            raise ValueError(" or ".join(choices) + (f": did you mean {near[0]}?" if near else ""))
        return value

    return parse


def _log_level(value: str) -> str:
    return _one_of("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")(value.upper())


def _whole(lowest: int, highest: int) -> Callable[[str], int]:
    def parse(value: str) -> int:
        if not (value.isascii() and value.isdigit() and lowest <= int(value[:20]) <= highest):
            raise ValueError(f"a whole number from {lowest} to {highest}")
        return int(value)

    return parse


def _truth(value: str) -> bool:
    truths = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    if value.lower() not in truths:
        raise ValueError("true or false")
    return truths[value.lower()]
