"""Ten thousand messages recorded over HTTP until all have vectors, beside mem0's `add` of the same texts."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psycopg

from bench import peer
from bench.embed_stub import running
from bench.synthetic import A_TALK, DIMENSIONS, OWNERS, Corpus, owner_name, vector_of
from bench.tables import Table, rate
from config import embedded
from tests.journeys.product import Product, until

RECORDS: Final = 10_000


def run() -> list[Table]:
    table = Table(
        f"Ingest of {RECORDS:,} messages of {OWNERS:,} owners (messages a second)",
        ("", "recorded", "with vectors"),
        note="POST /turns with a conversation of an owner a request, by one client; vectors follow in the worker, from "
        "an embedder that costs nothing. mem0: one `add` a message, infer=False, with its vector given."
        + ("" if peer.is_installed() else f" {peer.ABSENT}"),
    )
    talks = list(_talks())
    with running() as product, tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        with product.client() as client:
            for body in talks:
                client.post(f"memory/{product.agent_id}/turns", json=body).raise_for_status()
        recorded = time.perf_counter() - begun
        _wait_for_vectors(product)
        table.add("POST /turns", rate(RECORDS, recorded), rate(RECORDS, time.perf_counter() - begun))
        if peer.is_installed():
            seconds = _by_mem0(product, Path(folder), talks)
            table.add("mem0 add", rate(RECORDS, seconds), rate(RECORDS, seconds))
    return [table]


def _talks() -> Iterator[dict[str, Any]]:
    corpus = Corpus(RECORDS)
    chunk = corpus.chunk(0, RECORDS)
    talks: dict[tuple[int, int], list[dict[str, str]]] = {}
    for index, (owner, place) in enumerate(zip(chunk.owners.tolist(), chunk.places.tolist(), strict=True)):
        message = {"role": "user", "content": chunk.texts[index], "at": chunk.at(index).isoformat()}
        talks.setdefault((owner, place // A_TALK), []).append(message)
    for (owner, talk), messages in talks.items():
        yield {
            "conversationId": f"talk-{talk}",
            "endUserId": owner_name(owner),
            "source": "import",
            "messages": messages,
        }


def _wait_for_vectors(product: Product) -> None:
    with psycopg.connect(embedded.urls_of(product.data_dir).owner, autocommit=True) as owner:
        until(
            lambda: (
                owner.execute("SELECT count(*) >= %s FROM recall_vector", [RECORDS]).fetchone() == (True,)
            ),
            what="a vector for every message",
            seconds=1800,
            every=0.5,
        )


def _by_mem0(product: Product, folder: Path, talks: list[dict[str, Any]]) -> float:
    texts = [(body["endUserId"], message["content"]) for body in talks for message in body["messages"]]
    known = {text: vector_of(text).tolist() for _, text in texts}
    dsn = embedded.urls_of(product.data_dir).owner
    mem0 = peer.Mem0(dsn, folder, dimensions=DIMENSIONS, embed=known.__getitem__)
    begun = time.perf_counter()
    for number, (who, text) in enumerate(texts):
        mem0.add(text, who=who, key=str(number))
    seconds = time.perf_counter() - begun
    mem0.close()
    return seconds
