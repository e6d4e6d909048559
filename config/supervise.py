"""`make run`: one command that brings up all of the product and takes it down again.

Everything runs in the foreground under this process. Ctrl-C ends it in order and nothing is lost; should this
process be killed outright, its children end by themselves.
"""

import asyncio
import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from config import embedded, launch
from config.env import CHECKOUT, Env, EnvError, read_env
from workspaces.logic.registry import ENV_NAMES

GRACE_SECONDS = 10.0
_LONGEST_DELAY = 30.0
_STABLE_SECONDS = 60.0  # a child that lived this long starts over with the shortest delay
_COLOURS = {"web": "cyan", "worker": "magenta", "beat": "blue", "embed": "yellow"}

Say = Callable[[str, str], None]  # (who, line)


class StartError(Exception):
    """The product cannot start here; the message says why and what to do."""


@dataclass(frozen=True)
class Child:
    """A program that is to run as long as the supervisor does."""

    name: str
    command: Sequence[str]


def main() -> int:
    """Run the product until Ctrl-C or SIGTERM (0), or say why it cannot start (1)."""
    screen = _Screen(Console(highlight=False, soft_wrap=True))
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)
    try:
        _run(screen)
    except (StartError, EnvError, embedded.EmbeddedError) as error:
        screen.fail(str(error))
        return 1
    except KeyboardInterrupt:
        pass
    screen.note("Stopped.")
    return 0


def _run(screen: "_Screen") -> None:
    env = read_env(os.environ, setting_names=frozenset(ENV_NAMES))
    begun = time.monotonic()
    check_port(env.host, env.port)
    with screen.step(f"Data folder {env.data_dir}"):
        _make_data_dir(env.data_dir)
    with contextlib.ExitStack() as stack:
        if env.database_url is None:
            with screen.step("Embedded Postgres"):
                stack.enter_context(embedded.running(env.data_dir))
            stack.callback(screen.note, "Stopping Postgres …")
        with screen.step("Migrations"):
            _command("migrate", "--database", "owner", "--no-input", "--verbosity", "1")
        with screen.step("First-run set-up"):
            told = _command("first_run")
        screen.plain(told)
        address = f"http://{_shown(env.host)}:{env.port}"
        asyncio.run(
            keep_running(
                _children(env),
                say=screen.say,
                environment=os.environ | {"MATE_DATA_DIR": str(env.data_dir), "PYTHONUNBUFFERED": "1"},
                ready=lambda: screen.note(
                    f"Ready at {address} after {time.monotonic() - begun:.1f} s. Ctrl-C stops it."
                ),
                port=(_reachable(env.host), env.port),
            )
        )


def check_port(host: str, port: int) -> None:
    """The web server will be able to listen there; else StartError says why and what to do."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the web server does
            probe.bind(address)
    except OSError as error:
        reason = "is in use" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror})"
        advice = f"free it, or choose another: MATE_PORT={port % 65535 + 1} make run (or in .env)"
        raise StartError(f"Port {port} on {host} {reason}: {advice}") from error


def _make_data_dir(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(
            f"The data folder {folder} cannot be made: {error.strerror} (see MATE_DATA_DIR)"
        ) from error


def _command(*arguments: str) -> str:
    """Run a command of manage.py to its end and give its output; StartError shows it when it fails."""
    command = launch.tied_to(os.getpid(), [sys.executable, "manage.py", *arguments])
    # A session of its own: Ctrl-C is ours to pass on.
    with subprocess.Popen(  # noqa: S603 - our own program
        command, cwd=CHECKOUT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, errors="replace", start_new_session=True,
    ) as process:  # fmt: skip
        try:
            output, _ = process.communicate()
        except KeyboardInterrupt:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(GRACE_SECONDS)
            process.kill()
            raise
    if process.returncode != 0:
        raise StartError(f"`manage.py {' '.join(arguments)}` failed:\n{output.rstrip()}")
    return output


def _embedder(env: Env) -> list[Child]:
    """The local embedder's process, one for all others; none where another is chosen."""
    if env.embedder != "local":
        return []
    serve = (sys.executable, "-m", "integrations.clients.embed.serve", "--data-dir", str(env.data_dir))
    return [Child("embed", serve)]


def _children(env: Env) -> list[Child]:
    python = (sys.executable, "-m")
    level = env.log_level
    celery = (*python, "celery", "--quiet", "--app", "config.celery")
    listen = ("--host", env.host, "--port", str(env.port), "--lifespan", "off", "--no-server-header")
    # Streams that are open at the end get less than the grace period, so that the process ends by itself.
    quiet = ("--no-access-log", "--log-level", level.lower(), "--timeout-graceful-shutdown", "7")
    return [
        Child("web", (*python, "uvicorn", "config.asgi:application", *listen, *quiet)),
        *_embedder(env),
        Child("worker", (*celery, "worker", "--concurrency", str(env.workers), "--loglevel", level)),
        Child(
            "beat",
            (*celery, "beat", "--scheduler", "django_celery_beat.schedulers:DatabaseScheduler", "--pidfile=",
             "--loglevel", level),
        ),
    ]  # fmt: skip


async def keep_running(
    children: Sequence[Child],
    *,
    say: Say,
    environment: Mapping[str, str],
    ready: Callable[[], None] = lambda: None,
    port: tuple[str, int] | None = None,
    first_delay: float = 1.0,
) -> None:
    """The children run until SIGINT, SIGTERM or SIGHUP, and have ended when this returns.

    One that ends is started again after `first_delay` seconds, doubled each time up to 30. Each has its
    name in MATE_PROCESS. At the signal all get SIGTERM, and SIGKILL after 10 seconds or a second signal.
    `ready` is called once, when somebody listens on `port`.
    """
    stopping, hurry = asyncio.Event(), asyncio.Event()

    def on_signal() -> None:
        if stopping.is_set():
            hurry.set()
            return
        stopping.set()
        say("", "Stopping … (Ctrl-C again to hurry)")

    loop = asyncio.get_running_loop()
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(sig, on_signal)
    kept = [
        _Kept(child, say, {**environment, "MATE_PROCESS": child.name}, stopping, hurry).keep(first_delay)
        for child in children
    ]
    async with asyncio.TaskGroup() as group:
        for one in kept:
            group.create_task(one)
        if port is not None:
            group.create_task(_tell_when_ready(port, ready, stopping))


@dataclass(frozen=True)
class _Kept:
    """One child and the two events that end it."""

    child: Child
    say: Say
    environment: Mapping[str, str]
    stopping: asyncio.Event
    hurry: asyncio.Event

    async def keep(self, first_delay: float) -> None:
        delay = first_delay
        while not self.stopping.is_set():
            begun = time.monotonic()
            code = await self._live()
            if self.stopping.is_set():
                return
            if time.monotonic() - begun > _STABLE_SECONDS:
                delay = first_delay
            self.say(self.child.name, f"{_ending(code)}; it is started again in {delay:g} s")
            await _within(delay, self.stopping.wait())
            delay = min(2 * delay, _LONGEST_DELAY)

    async def _live(self) -> int:
        """Start it, pass its lines on until it ends or we stop, and give its exit code."""
        reading, writing = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                *launch.tied_to(os.getpid(), self.child.command), cwd=CHECKOUT, env=self.environment,
                stdin=subprocess.DEVNULL, stdout=writing, stderr=writing, start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(writing)
        with _lines(reading, lambda line: self.say(self.child.name, line)):
            ended = asyncio.create_task(process.wait())
            stop = asyncio.create_task(self.stopping.wait())
            await asyncio.wait([ended, stop], return_when=asyncio.FIRST_COMPLETED)
            if not ended.done():
                await self._end(process, ended)
            stop.cancel()
            # What it started itself does not outlive it.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return await ended

    async def _end(self, process: asyncio.subprocess.Process, ended: "asyncio.Task[int]") -> None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        hurry = asyncio.create_task(self.hurry.wait())
        await asyncio.wait([ended, hurry], timeout=GRACE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()


@contextlib.contextmanager
def _lines(reading: int, take: Callable[[str], None]) -> Iterator[None]:
    """Inside, each line that arrives on the file descriptor is taken at once; closes it at the end.

    Not asyncio's own pipe: that one counts a process as alive until its last grandchild has closed it.
    """
    loop = asyncio.get_running_loop()
    os.set_blocking(reading, False)
    rest = bytearray()

    def on_bytes() -> None:
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(reading, 65536):
                rest.extend(chunk)
                *whole, last = rest.split(b"\n")
                for line in whole:
                    take(line.decode(errors="replace").rstrip("\r"))
                rest[:] = last
            loop.remove_reader(reading)  # the end of it

    loop.add_reader(reading, on_bytes)
    try:
        yield
    finally:
        on_bytes()
        if rest:
            take(rest.decode(errors="replace"))
        loop.remove_reader(reading)
        os.close(reading)


async def _tell_when_ready(port: tuple[str, int], ready: Callable[[], None], stopping: asyncio.Event) -> None:
    while not stopping.is_set():
        try:
            _, writer = await asyncio.open_connection(*port)
        except OSError:
            await _within(0.1, stopping.wait())
        else:
            writer.close()
            ready()
            return


async def _within(seconds: float, waiting: Coroutine[Any, Any, object]) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(waiting, seconds)


def _ending(code: int) -> str:
    return f"was killed ({signal.Signals(-code).name})" if code < 0 else f"ended with code {code}"


def _reachable(host: str) -> str:
    """The address under which this machine reaches a server that listens on `host`."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - compared, not bound


def _shown(host: str) -> str:
    reachable = _reachable(host)
    return f"[{reachable}]" if ":" in reachable else reachable


class _Screen:
    """What the person at the terminal sees; plain lines where there is none, silence when it went away."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @contextlib.contextmanager
    def step(self, title: str) -> Iterator[None]:
        """One step of the start: a spinner while it lasts, then a tick and the time it took."""
        begun = time.monotonic()
        with self._console.status(title):
            yield
        self._print(Text.assemble(("✓ ", "green"), title, (f" ({time.monotonic() - begun:.1f} s)", "dim")))

    def say(self, who: str, line: str) -> None:
        if not who:
            self.note(line)
            return
        self._print(Text.assemble((f"{who:<7}| ", _COLOURS.get(who, "white")), Text.from_ansi(line)))

    def note(self, line: str) -> None:
        self._print(Text(line, "bold"))

    def plain(self, lines: str) -> None:
        if lines.strip():
            self._print(Text(lines.rstrip()))

    def fail(self, lines: str) -> None:
        self._print(Text.assemble(("✗ ", "red"), lines))

    def _print(self, text: Text) -> None:
        with contextlib.suppress(OSError):
            self._console.print(text)


if __name__ == "__main__":
    sys.exit(main())
