"""Postgres settings that fit the machine, or the container, it runs on."""

import os
from collections.abc import Iterator
from pathlib import Path

_MB = 1024 * 1024
_GB = 1024 * _MB
_CGROUPS = Path("/sys/fs/cgroup")


def settings(socket_dir: Path, *, durable: bool) -> list[str]:
    """The lines of a postgresql.conf. `durable=False` is for tests: a crash may lose or break everything."""
    return [
        *_connections(socket_dir),
        *_memory(available_memory(), durable=durable),
        *_planning(),
        *_log(),
        *([] if durable else ["fsync = off", "synchronous_commit = off", "full_page_writes = off"]),
    ]


def available_memory() -> int:
    """Bytes this process may use at most: the machine's memory or the tightest limit of its cgroups."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([machine, *_limits()])


def _limits() -> Iterator[int]:
    """Memory limits of this process's control groups and all groups above them, of both versions."""
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            group, name = _CGROUPS / path.lstrip("/"), "memory.max"
        elif "memory" in controllers.split(","):
            group, name = _CGROUPS / controllers / path.lstrip("/"), "memory.limit_in_bytes"
        else:
            continue
        for folder in (group, *group.parents):
            try:
                limit = (folder / name).read_text(encoding="ascii").strip()
            except OSError:
                continue  # in a container the path may be the host's; the groups above still tell
            if limit.isdigit() and int(limit) > 0:
                yield int(limit)


def _connections(socket_dir: Path) -> list[str]:
    return [
        "listen_addresses = ''",
        f"unix_socket_directories = '{socket_dir}'",
        "unix_socket_permissions = 0700",
        "max_connections = 200",
        # A client that hangs inside a transaction holds row versions and locks for everybody.
        "idle_in_transaction_session_timeout = '10min'",
    ]


def _memory(memory: int, *, durable: bool) -> list[str]:
    """Shares below a database machine's usual quarter: web, worker and embedder live here too."""
    buffers = _between(memory // 6, 64 * _MB, 4 * _GB if durable else 256 * _MB)
    # A vector index is built three times faster when it fits into this: from 8 GB on, 1 GB and more.
    maintenance = _between(memory // 8, 64 * _MB, 2 * _GB)
    lines = [
        f"shared_buffers = {buffers // _MB}MB",
        f"effective_cache_size = {memory // 2 // _MB}MB",
        f"work_mem = {_between(memory // 400, 4 * _MB, 64 * _MB) // _MB}MB",
        f"maintenance_work_mem = {maintenance // _MB}MB",
        # Autovacuum's three workers may not each take as much as one index build.
        f"autovacuum_work_mem = {min(maintenance, 256 * _MB) // _MB}MB",
        f"max_parallel_maintenance_workers = {_between((os.cpu_count() or 1) - 1, 0, 4)}",
    ]
    if _shared_memory_free() < 2 * maintenance:
        # Containers give 64 MB there; a parallel index build would fail in it.
        lines.append("dynamic_shared_memory_type = mmap")
    return lines


def _planning() -> list[str]:
    return [
        "jit = off",  # short statements: compiling costs more than it saves
        "random_page_cost = 1.1",  # solid state
        # One statement serves owners of 20 rows and of 50,000: a plan made for one is wrong for the other.
        "plan_cache_mode = force_custom_plan",
        "hnsw.iterative_scan = strict_order",
        "hnsw.ef_search = 100",
        "timezone = 'UTC'",
    ]


def _log() -> list[str]:
    """The server's log names errors, never what people wrote: no statements, no key values."""
    return [
        "log_timezone = 'UTC'",
        "log_line_prefix = '%m [%p] %q%u@%d '",
        "log_error_verbosity = terse",
        "log_min_error_statement = panic",
        "log_checkpoints = off",
    ]


def _between(value: int, lowest: int, highest: int) -> int:
    return max(lowest, min(value, highest))


def _shared_memory_free() -> int:
    try:
        found = os.statvfs("/dev/shm")  # noqa: S108 - where Postgres puts it, too
    except OSError:
        return 0
    return found.f_bavail * found.f_frsize
