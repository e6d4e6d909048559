"""Numbers of the memory app for `/metrics`: turns, recall and providers since midnight UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Sum
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric, SummaryMetricFamily

from memory.models import Turn
from memory.providers.registry import OWN
from workspaces.tenancy import Door, door


def turn_metrics(now: datetime) -> Iterator[Metric]:
    """Turns by status with their time, and recall, and providers by outcome with theirs. Three statements,
    today's rows."""
    since = now.replace(hour=0, minute=0, second=0, microsecond=0)
    with door(Door.METRICS):
        turns = list(
            Turn.unscoped.filter(started_at__gte=since)
            .values_list("status")
            .annotate(count=Count("pk"), ms=Sum("ms"))
        )
        with connection.cursor() as cursor:
            cursor.execute(_PROVIDERS, [since])
            told = cursor.fetchall()
            cursor.execute(_RECALLS, [since])
            recalled = cursor.fetchone()
    total = CounterMetricFamily("mate_turns", "Turns since midnight UTC.", labels=["status"])
    seconds = SummaryMetricFamily("mate_turn_seconds", "From question to answer, closed turns.")
    for status in Turn.Status.values:
        total.add_metric([status], next((count for name, count, _ in turns if name == status), 0))
    closed = [(count, ms) for name, count, ms in turns if name != Turn.Status.STARTED]
    seconds.add_metric([], sum(count for count, _ in closed), sum(ms or 0 for _, ms in closed) / 1000)
    searched = HistogramMetricFamily("mate_recall_seconds", "What the search for memory took in turns.")
    count, ms, *below = recalled
    searched.add_metric([], _buckets(count, below), (ms or 0) / 1000)
    yield from (total, seconds, searched, *_provider_metrics(told))


STATUSES: Final = ("answered", "skipped", "failed", "late")
BOUNDS_MS: Final = (10, 50, 100, 250, 500, 1000, 1500, 2500, 5000)
"""The upper ends of the histogram, around the deadlines that are shipped."""


def _provider_metrics(told: list[tuple[Any, ...]]) -> Iterator[Metric]:
    """Rows of (name, status, count, sum of ms, one cumulative count for each bound), ordered by name."""
    asked = CounterMetricFamily(
        "mate_provider_asked", "What became of providers of memory in turns.", labels=["provider", "status"]
    )
    took = HistogramMetricFamily(
        "mate_provider_seconds", "What providers of memory took in turns.", labels=["provider", "status"]
    )
    rows = {name: {row[1]: row for row in some} for name, some in groupby(told, key=lambda row: str(row[0]))}
    for name in sorted({*rows, *(one.name for one in OWN)}):
        for status in STATUSES:
            _, _, count, ms, *below = rows.get(name, {}).get(status, ("", "", 0, 0, *(0 for _ in BOUNDS_MS)))
            asked.add_metric([name, status], count)
            if count:
                took.add_metric([name, status], _buckets(count, below), ms / 1000)
    yield from (asked, took)


def _buckets(count: int, below: list[int]) -> list[tuple[str, float]]:
    ends = [(f"{end / 1000:g}", float(some)) for end, some in zip(BOUNDS_MS, below, strict=True)]
    return [*ends, ("+Inf", float(count))]


def _histogram(ms: str) -> str:
    """How many, their sum, and how many within each bound."""
    within = ", ".join(f"count(*) FILTER (WHERE {ms} <= {end})" for end in BOUNDS_MS)
    return f"count(*), sum({ms}), {within}"


_RECALLS: Final = f"""
SELECT {_histogram("(memory_turn.window->>'recallMs')::int")} FROM memory_turn
WHERE started_at >= %s AND memory_turn.window ? 'recallMs'
"""  # noqa: S608 - put together from numbers of ours
_PROVIDERS: Final = f"""
SELECT one->>'name', one->>'status', {_histogram("(one->>'ms')::int")}
FROM memory_turn, jsonb_array_elements(providers) AS one WHERE started_at >= %s GROUP BY 1, 2 ORDER BY 1, 2
"""  # noqa: S608 - put together from numbers of ours
