"""How much memory the product's processes take."""

from __future__ import annotations

import re
from pathlib import Path

from bench.tables import Table
from tests.journeys.product import Product, children_of


def table(product: Product, *, after: str) -> Table:
    """Each process with its children: web, worker, beat, the embedder where there is one, and Postgres."""
    shown = Table(
        f"Memory after {after} (MB)",
        ("process", "processes", "RSS", "PSS"),
        note="RSS counts memory that processes share once for each of them, PSS once in all: Postgres shares much.",
    )
    assert product._process is not None
    found = {_name_of(pid): pid for pid in children_of(product._process.pid)}
    postmaster = next((product.data_dir / "postgres").rglob("postmaster.pid"), None)
    if postmaster is not None:
        found["postgres"] = int(postmaster.read_text().split()[0])
    for name, pid in sorted(found.items()):
        if name:
            family = [*_family(pid)]
            rss, pss = (sum(_megabytes(one, kind) for one in family) for kind in ("Rss", "Pss"))
            shown.add(name, str(len(family)), f"{rss:,.0f}", f"{pss:,.0f}")
    return shown


def _family(pid: int) -> list[int]:
    return [pid, *(one for child in children_of(pid) for one in _family(child))]


def _name_of(pid: int) -> str:
    """What the supervisor calls it."""
    try:
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return ""
    return next((value[13:].decode() for value in variables if value.startswith(b"MATE_PROCESS=")), "")


def _megabytes(pid: int, kind: str) -> float:
    """0 for a process that has ended meanwhile."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0.0
    found = re.search(rf"^{kind}:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) / 1024 if found else 0.0
