"""Outbox messages worked per second by one, two and four processes, beside raw claims of rows."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg

from bench.tables import Table, rate, ratio
from config import embedded
from config.env import CHECKOUT
from tests.journeys.product import clean_environment

WORKERS = (1, 2, 4)
LANES = 20
A_LANE = 10
MESSAGES = LANES * A_LANE
TOPIC = "bench.nothing"
_CLAIM = """
DELETE FROM bench_queue WHERE id = (SELECT id FROM bench_queue ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING id
"""


def run() -> list[Table]:
    table = Table(
        f"Outbox: {MESSAGES} messages of {LANES} lanes, a handler that does nothing",
        ("processes", "outbox", "raw claims", "raw ÷ outbox"),
        note="Raw: DELETE … FOR UPDATE SKIP LOCKED of the same number of rows, one transaction each.",
    )
    with _database() as data_dir, psycopg.connect(embedded.urls_of(data_dir).owner, autocommit=True) as owner:
        owner.execute("CREATE TABLE bench_queue (id bigint PRIMARY KEY)")
        for workers in WORKERS:
            _call(data_dir, "fill", str(workers))
            owner.execute("INSERT INTO bench_queue SELECT generate_series(1, %s)", [MESSAGES])
            ours = _timed(data_dir, "work", workers)
            raw = _timed(data_dir, "claim", workers)
            table.add(str(workers), rate(MESSAGES, ours), rate(MESSAGES, raw), ratio(ours, raw))
    return [table]


@contextlib.contextmanager
def _database() -> Iterator[Path]:
    """A migrated database of this benchmark's own, which no product works on."""
    folder = Path(tempfile.mkdtemp(prefix="mate-bench-"))
    try:
        with embedded.running(folder):
            _command(folder, "manage.py", "migrate", "--database", "owner", "--no-input", "--verbosity", "0")
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _variables(data_dir: Path) -> dict[str, str]:
    return clean_environment() | {
        "MATE_DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "MATE_LOG_LEVEL": "ERROR",
    }


def _command(data_dir: Path, *arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], cwd=CHECKOUT, env=_variables(data_dir), check=True)


def _call(data_dir: Path, *arguments: str) -> None:
    _command(data_dir, "-m", "bench.outbox", *arguments)


def _timed(data_dir: Path, what: str, workers: int) -> float:
    """Seconds until all of so many processes find nothing more; their start is not counted."""
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.outbox", what],
            cwd=CHECKOUT, env=_variables(data_dir), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(workers)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        begun = time.perf_counter()
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        worked = sum(int(process.communicate()[0]) for process in processes)
        seconds = time.perf_counter() - begun
    finally:
        for process in processes:
            process.kill()
            process.wait()
    assert worked == MESSAGES, f"{worked} of {MESSAGES} messages were worked"
    return seconds


# --- in processes of their own ----------------------------------------------------------------------------


def main() -> None:
    """`fill N`, `work` or `claim`; the last two say `ready`, wait for a line, and print how many they worked."""
    import django  # noqa: PLC0415 - the settings are read from this process's environment

    django.setup()
    if sys.argv[1] == "fill":
        _fill(sys.argv[2])
    elif sys.argv[1] == "work":
        _work()
    else:
        _claim()


def _fill(name: str) -> None:
    from tests.factories import make_world  # noqa: PLC0415 - after the set-up
    from workspaces import outbox  # noqa: PLC0415
    from workspaces.tenancy import tenant  # noqa: PLC0415

    outbox.register(TOPIC, family="bench", handle=lambda _: None)
    outbox.on_nudge(lambda: None)
    world = make_world(f"bench-{name}", {})
    for lane in range(LANES):
        bucket = world.personal(f"api:{lane}")
        with tenant(bucket):
            for _ in range(A_LANE):
                outbox.emit(bucket, TOPIC)


def _work() -> None:
    from workspaces import outbox  # noqa: PLC0415 - after the set-up
    from workspaces.types import Reach  # noqa: PLC0415

    worked = 0

    def handle(delivery: outbox.Delivery) -> None:
        nonlocal worked
        reach = Reach(delivery.workspace_id, (delivery.bucket_id,), (delivery.bucket_id,))
        with delivery.finishing(reach):
            worked += 1

    outbox.register(TOPIC, family="bench", handle=handle)
    outbox.free_dead_leases()  # opens the connection
    _wait_for_the_start()
    outbox.drain()
    print(worked)


def _claim() -> None:
    worked = 0
    with psycopg.connect(
        embedded.urls_of(Path(os.environ["MATE_DATA_DIR"])).owner, autocommit=True
    ) as connection:
        _wait_for_the_start()
        while connection.execute(_CLAIM).fetchone() is not None:
            worked += 1
    print(worked)


def _wait_for_the_start() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


if __name__ == "__main__":
    main()
