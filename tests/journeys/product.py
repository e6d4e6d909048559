"""The whole product as a process of its own: what `make run` starts, on a free port and a data folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from config import embedded, launch
from config.env import CHECKOUT, DOTENV

_OURS = ("MATE_", "AWS_", "OPENAI_", "ANTHROPIC_")
_NAMES = frozenset(
    {
        "DATABASE_URL",
        "DATABASE_OWNER_URL",
        "CELERY_BROKER_URL",
        "SECRET_KEY",
        "OPENCLAW_BASE",
        "TEST_DATA_DIR",
    }
)
_START_S = 180.0
_STOP_S = 60.0
_CHILDREN = ("web", "worker", "beat")
# The supervisor as it is, save that a child that dies often is not made to wait longer each time.
_LAUNCH = (
    "import sys; from config import supervise; supervise._LONGEST_DELAY = float(sys.argv[1]); "
    "sys.exit(supervise.main())"
)
_LONGEST_DELAY_S = 30.0

T = TypeVar("T")


def until(check: Callable[[], T], *, what: str, seconds: float = 60.0, every: float = 0.1) -> T:
    """The first true value of `check`; AssertionError naming `what` when it stays untrue.

    Not a test of speed: `seconds` is far above what is expected, so that a hang becomes a failure.
    """
    found = check()
    for _ in range(round(seconds / every)):
        if found:
            break
        time.sleep(every)
        found = check()
    assert found, f"{what} did not come true within {seconds:g} s"
    return found


def free_port() -> int:
    """A port of 127.0.0.1 on which nobody listens at the moment."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def clean_environment() -> dict[str, str]:
    """The environment without anything that the product reads; a `.env` of the checkout counts as not there."""
    kept = {
        name: value for name, value in os.environ.items() if name not in _NAMES and not name.startswith(_OURS)
    }
    if DOTENV.is_file():
        told = (
            line.partition("=")[0].removeprefix("export ").strip() for line in DOTENV.read_text().splitlines()
        )
        # An empty value counts as not given, and keeps what the file says out.
        kept |= {name: "" for name in told if name in _NAMES or name.startswith(_OURS)}
    # These journeys are about losing nothing; words are enough for them, and two cores are not many.
    return kept | {"MATE_EMBEDDER": "none"}


@dataclass
class Product:
    """Started on entering, stopped and removed on leaving.

    `environment` is put over a clean one. `folder` is a data folder to use and to keep, perhaps that of an earlier
    product, which starts in half the time. `longest_delay` bounds the seconds before a child that died is started
    again. `log` keeps all that it printed.
    """

    environment: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    longest_delay: float = _LONGEST_DELAY_S
    port: int = field(init=False)
    data_dir: Path = field(init=False)
    first_run: dict[str, Any] = field(init=False)
    _process: subprocess.Popen[bytes] | None = field(init=False, default=None)

    def __enter__(self) -> Self:
        self.port = free_port()
        self.data_dir = self.folder or Path(tempfile.mkdtemp(prefix="mate-product-"))
        try:
            self._start()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        said = self.output()
        try:
            self.stop()
        finally:
            self._remove()
        if error is not None:
            error.add_note(f"The product said last:\n{said[-4000:]}")

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def agent_id(self) -> int:
        return int(self.first_run["agentId"])

    @property
    def log(self) -> Path:
        return self.data_dir / "product.log"

    def output(self) -> str:
        """All that it printed so far."""
        return self.log.read_text("utf-8", errors="replace") if self.log.exists() else ""

    def client(self, *, timeout: float = 60.0) -> httpx.Client:
        """Calls `/api/v1/…` with the token of the first run."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1/", headers=self.headers(), timeout=timeout, trust_env=False
        )

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.first_run['token']}"}

    def variables(self) -> dict[str, str]:
        """The environment in which it runs, for a command beside it."""
        own = {"MATE_DATA_DIR": str(self.data_dir), "MATE_PORT": str(self.port)}
        return clean_environment() | own | dict(self.environment)

    def command(self, *arguments: str, seconds: float = 300.0) -> subprocess.CompletedProcess[str]:
        """Runs `manage.py …` on this product's data folder; the caller looks at its return code."""
        return subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT, env=self.variables(), capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip

    def pids(self) -> dict[str, int]:
        """The children that run now: web, worker and beat, by name."""
        assert self._process is not None
        found = {}
        for pid in children_of(self._process.pid):
            with contextlib.suppress(OSError):
                variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
                name = next((v[13:].decode() for v in variables if v.startswith(b"MATE_PROCESS=")), "")
                if name in _CHILDREN:
                    found[name] = pid
        return found

    def kill_worker(self) -> None:
        """SIGKILL to the worker and all that it started; returns when the supervisor has started another."""
        old = until(lambda: self.pids().get("worker"), what="a worker", every=0.02)
        os.killpg(old, signal.SIGKILL)  # the supervisor starts each child in a group of its own
        until(lambda: self.pids().get("worker", old) != old, what="another worker", every=0.02)

    def kill_worker_child(self) -> bool:
        """SIGKILL to one process of the worker's pool; False when it has none at the moment."""
        pool = children_of(self.pids().get("worker", 0))
        if not pool:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(pool[0], signal.SIGKILL)
        return True

    def stop(self) -> None:
        """Ctrl-C, as it were: SIGTERM to the supervisor, which ends all. Once; then it does nothing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError("The product did not stop.") from None
        finally:
            embedded.stop(self.data_dir)

    def _start(self) -> None:
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                # Should the tests be killed, it ends by itself.
                launch.tied_to(os.getpid(), [sys.executable, "-c", _LAUNCH, str(self.longest_delay)]),
                cwd=CHECKOUT, env=self.variables(), stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
        until(self._is_up, what="the product's start", seconds=_START_S)
        self.first_run = json.loads((self.data_dir / "first-run.json").read_text("utf-8"))
        # Celery says nothing by itself that we could wait for, save that its pool has children.
        until(
            lambda: set(self.pids()) == set(_CHILDREN) and children_of(self.pids()["worker"]),
            what="the worker's start",
            seconds=_START_S,
        )

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"The product ended at its start:\n{self.output()[-4000:]}"
        try:
            httpx.get(f"{self.url}/health/live", timeout=5, trust_env=False)
        except httpx.TransportError:
            return False
        return True

    def _remove(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            embedded.stop(self.data_dir)
        if self.folder is None:
            shutil.rmtree(self.data_dir, ignore_errors=True)


def children_of(pid: int) -> list[int]:
    """The children of a process, oldest first; none when it has ended."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return sorted(found)


# --- what tests ask of it ---------------------------------------------------------------------------------


def record(
    client: httpx.Client, agent_id: int, who: str, conversation: str, said: list[str]
) -> dict[str, Any]:
    """Records sentences of one person through `POST …/turns`."""
    body = {
        "conversationId": conversation,
        "endUserId": who,
        "messages": [{"role": "user", "content": text} for text in said],
    }
    answer = client.post(f"memory/{agent_id}/turns", json=body)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def files_of(client: httpx.Client, agent_id: int, who: str, *, prefix: str = "") -> dict[str, str]:
    """A person's own files with their contents, by name."""
    base = f"agents/{agent_id}/workspace/files"
    asked = {"endUserId": who, "bucket": "personal"}
    return {
        row["name"]: _content(client, f"{base}/{row['name']}", asked)
        for row in _rows(client, base, asked, prefix)
    }


def _rows(client: httpx.Client, base: str, asked: dict[str, str], prefix: str) -> Iterator[dict[str, Any]]:
    page: str | None = base
    given: dict[str, str] | None = asked | ({"prefix": prefix} if prefix else {}) | {"pageSize": "200"}
    while page:
        listed = client.get(page, params=given)
        assert listed.status_code == 200, listed.text
        yield from listed.json()["results"]
        page, given = listed.json()["next"], None


def _content(client: httpx.Client, path: str, asked: dict[str, str]) -> str:
    answer = client.get(path, params=asked)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["content"])
