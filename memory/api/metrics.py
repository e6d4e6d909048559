"""Numbers of the memory app for `/metrics`: turns and providers since midnight UTC."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db import connection
from django.db.models import Count, Sum
from prometheus_client.core import CounterMetricFamily, Metric, SummaryMetricFamily

from memory.models import Turn
from workspaces.tenancy import Door, door


def turn_metrics(now: datetime) -> Iterator[Metric]:
    """Turns by status with their time, and providers by outcome with theirs. Two statements, today's rows."""
    since = now.replace(hour=0, minute=0, second=0, microsecond=0)
    with door(Door.METRICS):
        turns = list(
            Turn.unscoped.filter(started_at__gte=since)
            .values_list("status")
            .annotate(count=Count("pk"), ms=Sum("ms"))
        )
        with connection.cursor() as cursor:
            cursor.execute(_PROVIDERS, [since])
            asked = cursor.fetchall()
    total = CounterMetricFamily("mate_turns", "Turns since midnight UTC.", labels=["status"])
    seconds = SummaryMetricFamily("mate_turn_seconds", "From question to answer, closed turns.")
    for status in Turn.Status.values:
        total.add_metric([status], next((count for name, count, _ in turns if name == status), 0))
    closed = [(count, ms) for name, count, ms in turns if name != Turn.Status.STARTED]
    seconds.add_metric([], sum(count for count, _ in closed), sum(ms or 0 for _, ms in closed) / 1000)
    providers = SummaryMetricFamily(
        "mate_provider_seconds", "What providers of memory took in turns.", labels=["provider", "status"]
    )
    for name, status, count, ms in asked:
        providers.add_metric([name, status], count, ms / 1000)
    yield from (total, seconds, providers)


_PROVIDERS = """
SELECT one->>'name', one->>'status', count(*), sum((one->>'ms')::int)
FROM memory_turn, jsonb_array_elements(providers) AS one WHERE started_at >= %s GROUP BY 1, 2 ORDER BY 1, 2
"""
