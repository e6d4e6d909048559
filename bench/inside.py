"""What only a process of the product can tell: `python -m bench.inside WHAT AGENT TOKEN`, set up on its data folder.

Reads questions from its standard input as JSON and answers likewise. Of each size of owners, for `counts`: the SQL
queries of one `POST …/search`, and the ids of the records that `recall` finds by vectors alone, the nearest first. For
`statements`: of each question the search itself, as it is sent to Postgres.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import psycopg

Statement = tuple[str, Any]
"""SQL and its values."""


def main() -> None:
    import django  # noqa: PLC0415 - the settings are read from this process's environment

    django.setup()
    what, *whose = sys.argv[1:]
    told = json.load(sys.stdin)
    answer = _counts(told, *whose) if what == "counts" else _statements(told, *whose)
    json.dump(answer, sys.stdout, default=str)


def _counts(told: dict[str, Any], agent: str, token: str) -> dict[str, Any]:
    return {
        size: {
            "queries": _queries(agent, token, asked),
            "found": [_found(told["query"], told["embedder"], one) for one in asked["vectors"]],
        }
        for size, asked in told["sizes"].items()
    }


def _statements(told: dict[str, Any], agent: str, token: str) -> dict[str, list[list[Statement]]]:
    """Those of two kinds that choose records and read their texts."""
    noted: list[Statement] = []
    execute = psycopg.Cursor.execute

    def note(cursor: Any, sql: Any, given: Any = None, **more: Any) -> Any:
        if any(f"FROM {table}" in str(sql) for table in ("recall_record", "memory_message")):
            noted.append((str(sql), given))
        return execute(cursor, sql, given, **more)

    setattr(psycopg.Cursor, "execute", note)  # noqa: B010 - for this process, which ends with the answer
    sent: dict[str, list[list[Statement]]] = {}
    for size, questions in told.items():
        sent[size] = []
        for one in questions:
            noted.clear()
            _ask(agent, token, one)
            sent[size].append([*noted])
    return sent


def _ask(agent: str, token: str, one: dict[str, str]) -> None:
    from rest_framework.test import APIClient  # noqa: PLC0415 - after the set-up

    client = APIClient(SERVER_NAME="localhost", HTTP_AUTHORIZATION=f"Bearer {token}")
    body = {"query": one["query"], "endUserId": one["who"]}
    answer = client.post(f"/api/v1/memory/{agent}/search", body, format="json")
    assert answer.status_code == 200, answer.content


def _queries(agent: str, token: str, asked: dict[str, Any]) -> int:
    from django.db import connection  # noqa: PLC0415 - after the set-up
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415

    for _ in range(2):  # the first one also fills what is kept between requests
        with CaptureQueriesContext(connection) as captured:
            _ask(agent, token, asked)
    return len(captured)


def _found(query: str, embedder: str, one: dict[str, Any]) -> list[int]:
    """All candidates of the search, ordered by their vectors' share of the score: neighbours lend each other score,
    and would hide what the vectors found."""
    from django.utils import timezone  # noqa: PLC0415 - after the set-up

    from recall.services.search import Embedded, Wanted, search  # noqa: PLC0415

    wanted = Wanted(query=query, asked_at=timezone.now(), limit=100_000)
    found = search(one["buckets"], wanted, embedded=Embedded(embedder, one["vector"]))
    return [each.record_id for each in sorted(found, key=lambda each: -each.why["dense"])]


if __name__ == "__main__":
    main()
