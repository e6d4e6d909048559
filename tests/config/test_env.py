import base64
import json
import multiprocessing
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from config.env import CHECKOUT, Env, EnvError, Secrets, ensure_secrets, read_env

KEY = base64.urlsafe_b64encode(b"k" * 32).decode()
EXTERNAL = {
    "DATABASE_URL": "postgresql://mate_app:hush@db:5432/mate",
    "SECRET_KEY": "s" * 50,
    "MATE_ENCRYPTION_KEY": KEY,
}
SETTINGS = frozenset({"MATE_MEMORY_FACT_TRUST_HALF_LIFE_DAYS"})


def read(**given: str) -> Env:
    return read_env(given, setting_names=SETTINGS, dotenv=None)


def problems(**given: str) -> list[str]:
    with pytest.raises(EnvError) as error:
        read(**given)
    return error.value.problems


def test_an_empty_environment_runs_everything_embedded() -> None:
    assert read() == Env(
        database_url=None,
        database_owner_url=None,
        celery_broker_url=None,
        data_dir=CHECKOUT / ".data",
        host="127.0.0.1",
        port=8230,
        secret_key=None,
        encryption_key=None,
        model=None,
        openai_base_url=None,
        embedder="local",
        vector_store="pgvector",
        opensearch_username=None,
        opensearch_password=None,
        debug=False,
        allowed_hosts=("localhost", "127.0.0.1", "[::1]"),
        log_level="INFO",
        workers=2,
        process=None,
        openclaw_base=None,
        providers=(),
    )


@pytest.mark.parametrize(
    ("name", "value", "field", "expected"),
    [
        ("MATE_DATA_DIR", "elsewhere", "data_dir", CHECKOUT / "elsewhere"),
        ("MATE_DATA_DIR", "/数据 1", "data_dir", Path("/数据 1")),
        ("MATE_PORT", "65535", "port", 65535),
        ("MATE_PORT", " 1 ", "port", 1),
        ("MATE_MODEL", "openai:gpt-4o-mini", "model", "openai:gpt-4o-mini"),
        ("MATE_MODEL", "bedrock:eu.anthropic.claude:1", "model", "bedrock:eu.anthropic.claude:1"),
        ("MATE_MODEL", "", "model", None),
        ("MATE_EMBEDDER", "none", "embedder", "none"),
        ("MATE_EMBEDDER", "openai:bge-m3", "embedder", "openai:bge-m3"),
        ("MATE_VECTOR_STORE", "s3vectors:memories", "vector_store", "s3vectors:memories"),
        ("MATE_DEBUG", "Yes", "debug", True),
        ("MATE_DEBUG", "0", "debug", False),
        ("MATE_ALLOWED_HOSTS", "a.example, b.example,", "allowed_hosts", ("a.example", "b.example")),
        ("MATE_LOG_LEVEL", "debug", "log_level", "DEBUG"),
        ("MATE_WORKERS", "64", "workers", 64),
        ("CELERY_BROKER_URL", "redis://r:6379/0", "celery_broker_url", "redis://r:6379/0"),
        ("OPENAI_BASE_URL", "http://localhost:11434/v1", "openai_base_url", "http://localhost:11434/v1"),
        ("OPENCLAW_BASE", "/openclaw", "openclaw_base", Path("/openclaw")),
    ],
)
def test_a_good_value_is_taken(name: str, value: str, field: str, expected: object) -> None:
    changed: dict[str, Any] = {field: expected}
    assert read(**{name: value}) == replace(read(), **changed)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("MATE_PORT", "0", "MATE_PORT: '0' is not a whole number from 1 to 65535"),
        ("MATE_PORT", "65536", "MATE_PORT: '65536' is not a whole number from 1 to 65535"),
        ("MATE_PORT", "٨", "MATE_PORT: '٨' is not a whole number from 1 to 65535"),
        ("MATE_PORT", "9" * 5000, "MATE_PORT: '999"),
        ("MATE_HOST", "http://x", "MATE_HOST: 'http://x' is not a host name"),
        ("MATE_DEBUG", "maybe", "MATE_DEBUG: 'maybe' is not true or false"),
        ("MATE_MODEL", "gpt-4o", "MATE_MODEL: 'gpt-4o' is not a model with its provider"),
        ("MATE_EMBEDDER", "openai:", "MATE_EMBEDDER: 'openai:' is not local, none, openai:<model>"),
        ("MATE_VECTOR_STORE", "pgvectro", "s3vectors:<vector bucket> or opensearch:<https://host:port>"),
        ("MATE_LOG_LEVEL", "verbose", "MATE_LOG_LEVEL: 'verbose' is not DEBUG or INFO"),
        ("MATE_WORKERS", "-1", "MATE_WORKERS: '-1' is not a whole number from 1 to 64"),
        ("MATE_PORTT", "1", "MATE_PORTT: there is no such variable; did you mean MATE_PORT?"),
        ("MATE_MEMORY_FACT_TRUST_HALF_LIVE_DAYS", "1", "mean MATE_MEMORY_FACT_TRUST_HALF_LIFE_DAYS?"),
        ("MATE_QQQQQQ", "1", "MATE_QQQQQQ: there is no such variable; see the settings in the README"),
        ("DATABASE_OWNER_URL", "postgresql://o@db/mate", "DATABASE_OWNER_URL: is given without DATABASE_URL"),
    ],
)
def test_a_bad_value_is_named_with_what_would_be_right(name: str, value: str, told: str) -> None:
    (problem,) = problems(**{name: value})
    assert told in problem


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://mate:hush@db/mate"),
        ("DATABASE_URL", "postgresql://mate:hush@db"),
        ("DATABASE_URL", "postgresql://mate:hush@db:hush/mate"),
        ("DATABASE_URL", "postgresql://mate:hush@[db/mate"),
        ("DATABASE_OWNER_URL", "hush"),
        ("CELERY_BROKER_URL", "kafka://u:hush@k"),
        ("OPENAI_BASE_URL", "ftp://u:hush@host"),
        ("SECRET_KEY", "hush"),
        ("MATE_ENCRYPTION_KEY", "hush"),
        ("MATE_ENCRYPTON_KEY", "hush"),
    ],
)
def test_a_secret_is_never_shown(name: str, value: str) -> None:
    (problem,) = problems(**EXTERNAL | {name: value})
    assert problem.startswith(f"{name}: ")
    assert "hush" not in problem


def test_all_problems_are_told_at_once() -> None:
    told = problems(MATE_PORT="x", MATE_DEBUG="y", MATE_NOPE="z")
    assert [line.partition(":")[0] for line in told] == ["MATE_NOPE", "MATE_PORT", "MATE_DEBUG"]


def test_a_database_of_ones_own_needs_keys_of_ones_own() -> None:
    told = problems(DATABASE_URL=EXTERNAL["DATABASE_URL"])
    assert [line.partition(":")[0] for line in told] == ["SECRET_KEY", "MATE_ENCRYPTION_KEY"]
    env = read(**EXTERNAL)
    assert (env.secret_key, env.encryption_key) == (EXTERNAL["SECRET_KEY"], KEY)
    assert "hush" not in repr(env)
    assert KEY not in repr(env)


def test_settings_are_known_and_other_programs_variables_ignored() -> None:
    assert read(MATE_MEMORY_FACT_TRUST_HALF_LIFE_DAYS="x", PATH="/bin", MATERIAL="m") == read()


def test_the_env_file_fills_in_what_the_environment_does_not_say(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("# mine\nMATE_PORT=9000\nexport MATE_MODEL='openai:m'\nMATE_HOST=h\n")
    given = {"MATE_HOST": "127.0.0.2"}
    env = read_env(given, setting_names=SETTINGS, dotenv=tmp_path / ".env")
    assert (env.port, env.model, env.host) == (9000, "openai:m", "127.0.0.2")
    assert given == {"MATE_HOST": "127.0.0.2", "MATE_PORT": "9000", "MATE_MODEL": "openai:m"}


def test_a_variable_of_the_env_file_is_checked_too(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("MATE_PRT=9000\n")
    with pytest.raises(EnvError, match="MATE_PRT: there is no such variable"):
        read_env({}, setting_names=SETTINGS, dotenv=tmp_path / ".env")


def test_keys_are_made_once_and_kept_private(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = ensure_secrets(data)
    assert ensure_secrets(data) == first
    assert ensure_secrets(tmp_path / "other") != first
    (file,) = data.iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert read(**EXTERNAL | {"MATE_ENCRYPTION_KEY": first.encryption_key, "SECRET_KEY": first.secret_key})
    assert first.secret_key not in repr(first)


def test_processes_that_start_at_once_agree_on_the_keys(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        made: list[Secrets] = pool.map(ensure_secrets, [tmp_path] * 16, chunksize=1)
    assert len(set(made)) == 1


@pytest.mark.parametrize("text", ["", "{", "[]", json.dumps({"secret_key": "x"})])
def test_a_damaged_file_of_keys_is_told_and_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "secrets.json").write_text(text)
    with pytest.raises(EnvError, match=r"secrets\.json is damaged"):
        ensure_secrets(tmp_path)
    assert (tmp_path / "secrets.json").read_text() == text


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvError, match=r"data folder .*/file/data cannot hold secrets.json: Not a directory"):
        ensure_secrets(tmp_path / "file/data")
