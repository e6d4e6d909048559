"""A table of results, and the few sums that all benchmarks need."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as RichTable


@dataclass
class Table:
    """What one benchmark prints."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    note: str = ""

    def add(self, *cells: str) -> None:
        assert len(cells) == len(self.columns), f"{len(cells)} cells for {len(self.columns)} columns"
        self.rows.append(cells)

    def show(self) -> None:
        shown = RichTable(title=self.title, title_justify="left", caption=self.note, caption_justify="left")
        for number, column in enumerate(self.columns):
            shown.add_column(column, justify="left" if number == 0 else "right")
        for row in self.rows:
            shown.add_row(*row)
        Console().print(shown)


def percentile(seconds: Sequence[float], share: float) -> float:
    """The value below which that share of the measurements lies."""
    if not 0 < share < 1:
        raise ValueError(share)
    return statistics.quantiles(seconds, n=100, method="inclusive")[round(share * 100) - 1]


def ms(seconds: float) -> str:
    return f"{seconds * 1000:.1f} ms"


def rate(count: int, seconds: float) -> str:
    return f"{count / seconds:,.0f}/s"


def ratio(of: float, to: float) -> str:
    """`of` in units of `to`."""
    return f"{of / to:.2f} ×"
