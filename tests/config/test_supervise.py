"""The supervisor, run as a process of its own over tiny children that stand for web, worker and beat."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config.supervise import StartError, check_port

ROOT = Path(__file__).resolve().parents[2]
HARNESS = """
import asyncio, json, os, sys
from config.supervise import Child, keep_running
children = [Child(name, [sys.executable, "-c", code]) for name, code in json.loads(sys.argv[1]).items()]
asyncio.run(keep_running(
    children, say=lambda *said: print(*said, sep="|", flush=True), environment=os.environ, first_delay=0.01,
))
print("all ended", flush=True)
"""
UNTIL_SIGTERM = "import os, signal; print('up', os.getpid(), flush=True); signal.pause()"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); signal.pause()"

Supervise = Callable[[dict[str, str]], "subprocess.Popen[str]"]


@pytest.fixture
def supervise() -> Iterator[Supervise]:
    started: list[subprocess.Popen[str]] = []

    def start(children: dict[str, str]) -> "subprocess.Popen[str]":
        command = [sys.executable, "-c", HARNESS, json.dumps(children)]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def lines_until(process: "subprocess.Popen[str]", wanted: Callable[[list[str]], bool]) -> list[str]:
    assert process.stdout is not None
    seen: list[str] = []
    while not wanted(seen):
        line = process.stdout.readline()
        assert line, f"it ended, having said {seen}"
        seen.append(line.rstrip("\n"))
    return seen


def has_ended(end: int) -> bool:
    """Whether the process behind this pidfd ends within the minute."""
    with open(end) as file:
        return bool(select.select([file], [], [], 60)[0])


def test_a_child_that_dies_is_started_again_and_said_so(supervise: Supervise, tmp_path: Path) -> None:
    third_time_lucky = (
        f"import os, signal, pathlib; p = pathlib.Path({str(tmp_path / 'tries')!r}); p.touch()\n"
        "n = len(p.read_text()) + 1; p.write_text('x' * n)\n"
        "if n == 1: raise SystemExit(3)\n"
        "if n == 2: os.kill(os.getpid(), signal.SIGKILL)\n"
        "print('up at last', flush=True); signal.pause()"
    )
    process = supervise({"web": third_time_lucky})
    said = lines_until(process, lambda seen: "web|up at last" in seen)
    assert said == [
        "web|ended with code 3; it is started again in 0.01 s",
        "web|was killed (SIGKILL); it is started again in 0.02 s",
        "web|up at last",
    ]


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_all_children(supervise: Supervise, sig: signal.Signals) -> None:
    process = supervise({"web": UNTIL_SIGTERM, "worker": UNTIL_SIGTERM, "beat": UNTIL_SIGTERM})
    said = lines_until(process, lambda seen: len(seen) == 3)
    ends = [os.pidfd_open(int(line.split()[-1])) for line in said]
    process.send_signal(sig)
    assert lines_until(process, lambda seen: "all ended" in seen)[0].startswith("|Stopping")
    assert process.wait(60) == 0
    assert all(has_ended(end) for end in ends)


def test_a_second_signal_hurries_a_child_that_does_not_listen(supervise: Supervise) -> None:
    process = supervise({"worker": DEAF})
    lines_until(process, lambda seen: seen == ["worker|up"])
    process.send_signal(signal.SIGINT)
    lines_until(process, lambda seen: len(seen) == 1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert lines_until(process, lambda seen: "all ended" in seen) == ["all ended"]
    assert process.wait(60) == 0


def test_children_end_when_the_supervisor_is_killed(supervise: Supervise) -> None:
    process = supervise({"web": UNTIL_SIGTERM, "beat": UNTIL_SIGTERM})
    said = lines_until(process, lambda seen: len(seen) == 2)
    ends = [os.pidfd_open(int(line.split()[-1])) for line in said]
    process.kill()
    assert all(has_ended(end) for end in ends)


def test_what_a_dead_child_started_does_not_outlive_it(supervise: Supervise) -> None:
    parent = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import signal; signal.pause()'])\n"
        "print('started', p.pid, flush=True); p.wait()"
    )
    process = supervise({"worker": parent})
    (line,) = lines_until(process, lambda seen: len(seen) == 1)
    grandchild = int(line.split()[-1])
    end = os.pidfd_open(grandchild)
    os.kill(os.getpgid(grandchild), signal.SIGKILL)  # the group carries the number of its first process
    assert has_ended(end)
    said = lines_until(process, lambda seen: len(seen) == 2)
    assert said[0].startswith("worker|was killed (SIGKILL)")
    assert said[1].startswith("worker|started")


def test_lines_arrive_whole_whatever_they_hold(supervise: Supervise) -> None:
    writer = (
        "import os, signal\n"
        "os.write(1, b'half a '); os.write(1, b'line\\n\\n'); os.write(2, '错误\\n'.encode())\n"
        "os.write(1, b'\\xff\\r\\n')\n"
        "for _ in range(20): os.write(1, b'x' * 10_000)\n"
        "os.write(1, b'\\n'); print(os.environ['MATE_PROCESS'], end='', flush=True)"
    )
    process = supervise({"web": writer})
    said = lines_until(process, lambda seen: any("ended with code 0" in line for line in seen))
    assert said[:-1] == [
        "web|half a line",
        "web|",
        "web|错误",
        "web|\ufffd",
        "web|" + "x" * 200_000,
        "web|web",
    ]


def test_a_port_in_use_is_told_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=rf"Port {port} on 127.0.0.1 is in use: .*MATE_PORT="):
            check_port("127.0.0.1", port)
    check_port("127.0.0.1", port)


def test_an_address_of_another_machine_is_told() -> None:
    with pytest.raises(StartError, match=r"on 192\.0\.2\.1 cannot be opened"):
        check_port("192.0.2.1", 8230)


def test_nothing_starts_when_the_port_is_in_use(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        given = {"MATE_DATA_DIR": str(data), "MATE_PORT": str(port)}
        command = [sys.executable, "-m", "config.supervise"]
        ended = subprocess.run(
            command, cwd=ROOT, env=os.environ | given, capture_output=True, text=True, timeout=60, check=False
        )
    assert ended.returncode == 1
    assert f"Port {port}" in ended.stdout
    assert not data.exists()


def test_all_bad_variables_are_told_at_once(tmp_path: Path) -> None:
    given = {"MATE_DATA_DIR": str(tmp_path / "data"), "MATE_PROT": "1", "MATE_WORKERS": "many"}
    command = [sys.executable, "-m", "config.supervise"]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | given, capture_output=True, text=True, timeout=60, check=False
    )
    assert ended.returncode == 1
    assert "MATE_PROT: there is no such variable; did you mean MATE_PORT?" in ended.stdout
    assert "MATE_WORKERS: 'many' is not a whole number from 1 to 64" in ended.stdout
    assert ended.stderr == ""
