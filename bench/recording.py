"""Turns recorded per second over HTTP, beside the same rows inserted by psycopg."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg

from bench.tables import Table, rate, ratio
from config import embedded
from tests.journeys.product import Product, record

REQUESTS = {1: 160, 10: 80, 100: 16}
"""Messages of a request → how many requests, at each concurrency."""
CONCURRENCY = (1, 8)
_COLUMNS = (
    "workspace_id, bucket_id, conversation_id, role, speaker, is_owner, content, tokens, failed, external_id, at, "
    "created_at"
)
# The same table with the same indexes and checks; it has no keys into others, and no row-level security.
_MAKE = "CREATE TABLE bench_message (LIKE memory_message INCLUDING ALL)"
_INSERT = (
    f"INSERT INTO bench_message ({_COLUMNS}) "
    "VALUES (1, 1, %s, 'user', '', true, %s, 12, false, %s, now(), now())"
)
_COPY = f"COPY bench_message ({_COLUMNS}) FROM STDIN"


@dataclass(frozen=True)
class Load:
    """So many requests of so many messages, by so many clients at once."""

    batch: int
    clients: int

    @property
    def requests(self) -> int:
        return REQUESTS[self.batch] // self.clients * self.clients

    @property
    def messages(self) -> int:
        return self.requests * self.batch

    def sentences(self, client: int, request: int) -> list[str]:
        return [
            f"I told client {client} in request {request} that basket {number} holds apples."
            for number in range(self.batch)
        ]

    def time(self, work: Callable[[int, range], None]) -> float:
        """Seconds that the clients need together; `work` is given a client's number and its requests."""
        each = range(self.requests // self.clients)
        with ThreadPoolExecutor(self.clients) as pool:
            begun = time.perf_counter()
            done = [pool.submit(work, client, each) for client in range(self.clients)]
            for one in done:
                one.result()
            return time.perf_counter() - begun


def run() -> list[Table]:
    table = Table(
        "Turns recorded (messages a second)",
        ("messages a request, clients", "POST /turns", "INSERT", "COPY", "INSERT ÷ HTTP"),
        note="Baseline: the same rows, batches and clients, one transaction a batch, on a copy of the table.",
    )
    # Extraction looks at each turn and finds the conversation too short: the gates are paid for, no more.
    with Product({"MATE_MEMORY_MIN_MESSAGES_FOR_SUMMARIZE": "1000"}) as product:
        with psycopg.connect(embedded.urls_of(product.data_dir).owner, autocommit=True) as owner:
            owner.execute(_MAKE)
        _over_http(product, Load(1, 8), "warm-up")
        for batch in REQUESTS:
            for clients in CONCURRENCY:
                load = Load(batch, clients)
                http = _over_http(product, load, f"{batch}x{clients}")
                insert, copy = _by_insert(product, load), _by_copy(product, load)
                table.add(
                    f"{batch}, {clients}",
                    rate(load.messages, http),
                    rate(load.messages, insert),
                    rate(load.messages, copy),
                    ratio(http, insert),
                )
    return [table]


def _over_http(product: Product, load: Load, name: str) -> float:
    def work(number: int, requests: range) -> None:
        with product.client() as client:
            for request in requests:
                said = load.sentences(number, request)
                # Not so long a conversation that it would be extracted.
                talk = f"{name}-{number}-{request // 5}"
                record(client, product.agent_id, f"{name} {number}", talk, said)

    return load.time(work)


def _by_insert(product: Product, load: Load) -> float:
    def work(number: int, requests: range) -> None:
        with psycopg.connect(embedded.urls_of(product.data_dir).owner) as connection:
            for request in requests:
                rows = [(number, text, None) for text in load.sentences(number, request)]
                with connection.transaction(), connection.cursor() as cursor:
                    cursor.executemany(_INSERT, rows)

    return load.time(work)


def _by_copy(product: Product, load: Load) -> float:
    def work(number: int, requests: range) -> None:
        with psycopg.connect(embedded.urls_of(product.data_dir).owner) as connection:
            for request in requests:
                with connection.transaction(), connection.cursor() as cursor, cursor.copy(_COPY) as copy:
                    for text in load.sentences(number, request):
                        copy.write_row((1, 1, number, "user", "", True, text, 12, False, None, "now", "now"))

    return load.time(work)
