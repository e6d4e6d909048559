"""`POST …/context` for owners of ten, of some and of ten thousand messages: time, and queries."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg

from bench.tables import Table, ms, percentile, ratio
from config import embedded
from config.env import CHECKOUT
from tests.journeys.product import Product, until

OWNERS = {"10 messages": 10, "2,000": 2000, "10,000": 10_000}
"""The second owner has as many files as a turn looks at (two and fifty notes or so), the third has far more."""
A_DAY = 40
ROUNDS = 100
"""Requests for each owner; they take turns, so that both meet the same machine."""
_BEGIN = datetime(2025, 1, 1, 8, 0, tzinfo=UTC)
_THINGS = (
    "kite",
    "lantern",
    "saddle",
    "compass",
    "teapot",
    "drum",
    "ladder",
    "violin",
    "anchor",
    "mirror",
    "basket",
)
_PLACES = ("Oslo", "Lima", "Pune", "Cork", "Graz", "Kobe", "Turin")
_QUESTIONS = [f"Where did I buy the {thing}?" for thing in _THINGS]
# As the product's recall reads: the owner's newest files with their contents, once.
_RAW = """
SELECT f.name, f.content FROM workspaces_file f JOIN workspaces_bucket b ON b.id = f.bucket_id
JOIN workspaces_owner o ON o.id = b.owner_id
WHERE o.key = %s AND f.deleted_at IS NULL ORDER BY f.updated_at DESC LIMIT 50
"""


def run() -> list[Table]:
    table = Table(
        f"POST /context, {ROUNDS} requests for each owner",
        ("an owner of", "p50", "p95", "SELECT", "p50 ÷ SELECT", "SQL queries"),
    )
    at_once = {"MATE_MEMORY_COOLDOWN_MINUTES": "0", "MATE_MEMORY_MIN_MESSAGES_FOR_SUMMARIZE": "1"}
    with Product(at_once) as product, product.client() as client:
        for who, count in OWNERS.items():
            for body in _talks(who, count):
                answer = client.post(f"memory/{product.agent_id}/turns", json=body)
                answer.raise_for_status()
        with psycopg.connect(embedded.urls_of(product.data_dir).owner, autocommit=True) as owner:
            until(lambda: _is_extracted(owner), what="extraction", seconds=150, every=0.5)
            timed = _time(product, client)
            raw = {who: _time_raw(owner, who) for who in OWNERS}
        queries = _count_queries(product)
    for who, seconds in timed.items():
        p50 = percentile(seconds, 0.5)
        table.add(
            who, ms(p50), ms(percentile(seconds, 0.95)), ms(raw[who]), ratio(p50, raw[who]), str(queries[who])
        )
    few, some, many = (percentile(seconds, 0.5) for seconds in timed.values())
    table.note = (
        f"p50 of 10,000 messages: {ratio(many, some)} that of 2,000, {ratio(many, few)} that of 10. "
        "Baseline: the owner's 50 newest files read by one SELECT."
    )
    return [table]


def _talks(who: str, count: int) -> Iterator[dict[str, Any]]:
    """Requests that record so many messages, forty a day."""
    messages = [
        {
            "role": "user",
            "content": f"I bought a {_THINGS[n % 11]} number {n} in {_PLACES[n % 7]} for my sister, and I love it.",
            "at": (_BEGIN + timedelta(days=n // A_DAY, minutes=n % A_DAY)).isoformat(),
        }
        for n in range(count)
    ]
    for start in range(0, count, 1000):
        yield {
            "conversationId": f"talk-{start}",
            "endUserId": who,
            "source": "import",
            "messages": messages[start : start + 1000],
        }


def _is_extracted(owner: psycopg.Connection[Any]) -> bool:
    row = owner.execute(
        "SELECT count(*) FROM memory_conversation WHERE last_message > extracted_upto"
    ).fetchone()
    return row == (0,)


def _time(product: Product, client: httpx.Client) -> dict[str, list[float]]:
    timed: dict[str, list[float]] = {who: [] for who in OWNERS}
    for number in range(ROUNDS):
        for who, seconds in timed.items():
            body = {"query": _QUESTIONS[number % len(_QUESTIONS)], "endUserId": who}
            begun = time.perf_counter()
            answer = client.post(f"memory/{product.agent_id}/context", json=body)
            seconds.append(time.perf_counter() - begun)
            assert answer.json()["recalled"], answer.text
    return timed


def _time_raw(owner: psycopg.Connection[Any], who: str) -> float:
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        rows = owner.execute(_RAW, [f"api:{who}"]).fetchall()
        seconds.append(time.perf_counter() - begun)
        assert rows
    return percentile(seconds, 0.5)


def _count_queries(product: Product) -> dict[str, int]:
    told = subprocess.run(
        [sys.executable, "-m", "bench.context", str(product.agent_id), product.first_run["token"], *OWNERS],
        cwd=CHECKOUT, env=product.variables() | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return dict(json.loads(told.stdout))


def main() -> None:
    """In a process of its own, set up on the product's data folder: the queries of one request for each owner."""
    import django  # noqa: PLC0415 - the settings are read from this process's environment

    django.setup()
    from django.db import connection  # noqa: PLC0415 - after the set-up
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415
    from rest_framework.test import APIClient  # noqa: PLC0415

    agent, token, *owners = sys.argv[1:]
    client = APIClient(SERVER_NAME="localhost", HTTP_AUTHORIZATION=f"Bearer {token}")
    found = {}
    for who in owners:
        with CaptureQueriesContext(connection) as captured:
            answer = client.post(
                f"/api/v1/memory/{agent}/context", {"query": _QUESTIONS[0], "endUserId": who}, format="json"
            )
        assert answer.status_code == 200, answer.content
        found[who] = len(captured)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
