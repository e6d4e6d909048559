"""What only a process of the product can tell: `python -m bench.inside AGENT TOKEN`, set up on its data folder.

Reads a question from its standard input as JSON and answers likewise: of each size of owners the SQL queries of one
`POST …/search`, and the ids of the records that `recall` finds by vectors alone, the nearest first.
"""

from __future__ import annotations

import json
import sys
from typing import Any


def main() -> None:
    import django  # noqa: PLC0415 - the settings are read from this process's environment

    django.setup()
    agent, token = sys.argv[1:]
    told = json.load(sys.stdin)
    json.dump(
        {
            size: {
                "queries": _queries(agent, token, asked),
                "found": [_found(told["query"], told["embedder"], one) for one in asked["vectors"]],
            }
            for size, asked in told["sizes"].items()
        },
        sys.stdout,
    )


def _queries(agent: str, token: str, asked: dict[str, Any]) -> int:
    from django.db import connection  # noqa: PLC0415 - after the set-up
    from django.test.utils import CaptureQueriesContext  # noqa: PLC0415
    from rest_framework.test import APIClient  # noqa: PLC0415

    client = APIClient(SERVER_NAME="localhost", HTTP_AUTHORIZATION=f"Bearer {token}")
    body = {"query": asked["query"], "endUserId": asked["who"]}
    for _ in range(2):  # the first one also fills what is kept between requests
        with CaptureQueriesContext(connection) as captured:
            answer = client.post(f"/api/v1/memory/{agent}/search", body, format="json")
        assert answer.status_code == 200, answer.content
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
