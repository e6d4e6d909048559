"""`POST …/search` over many records of a thousand owners, beside bare SQL and mem0 over the same records."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import psycopg

from bench import memory, peer
from bench.baseline import SEARCH, given
from bench.embed_stub import EMBEDDER, embedding_seconds, running
from bench.inside import Statement
from bench.loading import Tenant, load
from bench.synthetic import DIMENSIONS, OWNERS, Corpus, owner_name, question_about, vector_of
from bench.tables import Table, ms, percentile, ratio
from config import embedded
from config.env import CHECKOUT
from tests.journeys.product import Product

RECORDS: Final = (10_000, 100_000)
"""How many, unless told; a million takes a quarter of an hour and 15 GB of disk."""
SIZES: Final = {"small": 50, "middle": 20, "large": 1}
"""Owners of each size that are asked for, in turn."""
ROUNDS: Final = 100
"""Questions for each size; the sizes take turns, so that all meet the same machine."""
MOST_FOR_MEM0: Final = 100_000
"""Above, mem0 is left out: each of its searches reads every row."""
WORDLESS: Final = "xylophone"
"""A question that shares no word with any record."""

_COMPARED = 30  # questions by which the first ten are compared with the exact ones
_WARM_UP = 5
_OF_MEM0 = """
SELECT v.value::vector AS vector, m.content AS text, coalesce(substring(o.key FROM 5), 'team') AS who, r.id::text AS key
FROM recall_vector v JOIN recall_record r ON r.id = v.record_id JOIN memory_message m ON m.id = r.source_id
JOIN workspaces_bucket b ON b.id = r.bucket_id LEFT JOIN workspaces_owner o ON o.id = b.owner_id
"""
_EXACT = """
SELECT record_id FROM recall_vector WHERE embedder = %s AND bucket_id = ANY(%s)
ORDER BY (value <=> %s::halfvec) + 0 LIMIT 10
"""


@dataclass(frozen=True)
class Asking:
    """A question in an owner's memory."""

    owner: int
    query: str


@dataclass
class Timed:
    """Seconds of each question."""

    http: list[float] = field(default_factory=list)
    same: list[float] = field(default_factory=list)
    sql: list[float] = field(default_factory=list)
    mem0: list[float] = field(default_factory=list)


def run(records: Sequence[int] = RECORDS) -> Iterator[Table]:
    for count in records:
        yield from _at(count)


@dataclass
class _Run:
    """All that was measured over one corpus; what belongs to a size of owners by the size's name."""

    corpus: Corpus
    questions: dict[str, list[Asking]]
    timed: dict[str, Timed]
    loading: str
    embedding: float
    queries: dict[str, int]
    found: dict[str, float]
    found_by_mem0: dict[str, float]
    memory: Table

    def records(self, size: str) -> str:
        """How many the owners have, the median."""
        return f"{np.median([self.corpus.sizes[one.owner] for one in self.questions[size]]):,.0f}"


def _at(count: int) -> list[Table]:
    done = _measured(Corpus(count))
    return [_speed(done), _finding(done), done.memory]


def _measured(corpus: Corpus) -> _Run:
    with (
        running() as product,
        tempfile.TemporaryDirectory() as folder,
        psycopg.connect(embedded.urls_of(product.data_dir).owner, autocommit=True) as owner,
    ):
        begun = time.perf_counter()
        tenant = load(owner, product.agent_id, corpus, embedder=EMBEDDER)
        loading = f"Loaded in {time.perf_counter() - begun:.0f} s; {_index(product)}."
        questions = {size: _questions(owner, tenant, corpus, size) for size in SIZES}
        timed = {size: Timed() for size in SIZES}
        _time_all(product, owner, tenant, questions, timed)
        inside = _counts(product, tenant, questions)
        run = _Run(
            corpus, questions, timed, loading, embedding_seconds(product),
            queries={size: inside[size]["queries"] for size in SIZES},
            found={s: _share_found(owner, inside[s]["found"], tenant, questions[s]) for s in SIZES},
            found_by_mem0={},
            memory=memory.table(product, after=f"searching {corpus.records:,} records"),
        )  # fmt: skip
        if peer.is_installed() and corpus.records <= MOST_FOR_MEM0:
            run.found_by_mem0 = _time_mem0(owner, Path(folder), tenant, questions, timed)
    return run


def _speed(run: _Run) -> Table:
    table = Table(
        f"POST /search over {run.corpus.records:,} records of {OWNERS:,} owners ({ROUNDS} questions for each size)",
        ("owners", "records", "p50", "p95", "less embedding", "its SQL p50", "its SQL p95", "less emb. ÷ its SQL",
         "plain SQL p50", "plain SQL p95", "mem0 p50", "mem0 p95", "queries"),
        note=f"{run.loading} The stub embeds a question in {ms(run.embedding)}. Its SQL: the two statements by which "
        "the product searched and read texts, by psycopg alone. Plain SQL: a simpler search in one statement. Both are "
        "given the vector, and asked right after the product. mem0 is given its vector; it looks at the owner's own "
        "rows only, and at no word. The team's bucket, which all others search as well, has "
        f"{run.corpus.sizes[OWNERS]:,} records."
        + ("" if peer.is_installed() else f" {peer.ABSENT}"),
    )  # fmt: skip
    for size, timed in run.timed.items():
        less, its = (
            [percentile(seconds, share) for share in (0.5, 0.95)] for seconds in (timed.http, timed.same)
        )
        less = [seconds - run.embedding for seconds in less]
        table.add(
            size, run.records(size), *_two(timed.http), " / ".join(map(ms, less)), *_two(timed.same),
            " / ".join(map(ratio, less, its)), *_two(timed.sql), *_two(timed.mem0), str(run.queries[size]),
        )  # fmt: skip
    return table


def _finding(run: _Run) -> Table:
    table = Table(
        f"Share of the exact first ten that vectors find, {run.corpus.records:,} records",
        ("owners", "records", "product", "mem0"),
        note="The product is asked with a word that no record has, and its nearest candidates are looked at. mem0 "
        "is compared with the exact ones among the owner's own.",
    )
    for size in run.timed:
        mem0 = f"{run.found_by_mem0[size]:.3f}" if size in run.found_by_mem0 else "–"
        table.add(size, run.records(size), f"{run.found[size]:.3f}", mem0)
    return table


def _two(seconds: Sequence[float]) -> tuple[str, str]:
    return (ms(percentile(seconds, 0.5)), ms(percentile(seconds, 0.95))) if seconds else ("–", "–")


def _index(product: Product) -> str:
    """Builds the vector indexes of large buckets, by the product's own command."""
    begun = time.perf_counter()
    done = product.command("vector_index", seconds=7200)
    if done.returncode and "Unknown command" in done.stderr:
        return "this product has no vector index"
    assert done.returncode == 0, done.stderr
    return f"vector indexes made in {time.perf_counter() - begun:.0f} s"


def _questions(owner: psycopg.Connection[Any], tenant: Tenant, corpus: Corpus, size: str) -> list[Asking]:
    """About what owners of that size have said; one owner after the other."""
    rng = np.random.default_rng(7)
    owners = corpus.owners_like(size, SIZES[size])
    texts = {
        who: [
            text
            for (text,) in owner.execute(
                "SELECT content FROM memory_message WHERE bucket_id = %s ORDER BY md5(id::text) LIMIT %s",
                [int(tenant.buckets[who]), ROUNDS + _WARM_UP],
            )
        ]
        for who in owners
    }
    asked = []
    for number in range(ROUNDS + _WARM_UP):
        who = owners[number % len(owners)]
        text = texts[who][number // len(owners) % len(texts[who])]
        asked.append(Asking(who, question_about(text, rng)))
    return asked


def _time_all(
    product: Product,
    owner: psycopg.Connection[Any],
    tenant: Tenant,
    questions: dict[str, list[Asking]],
    timed: dict[str, Timed],
) -> None:
    """Over HTTP and by bare SQL of both kinds, one right after the other."""
    sent = _statements(product, questions)

    def over_http(one: Asking) -> int:
        body = {"query": one.query, "endUserId": owner_name(one.owner)}
        answer = client.post(f"memory/{product.agent_id}/search", json=body)
        answer.raise_for_status()
        assert "reason" not in answer.json()["providers"][0], answer.text
        return len(answer.json()["results"])

    def by_sql(one: Asking) -> int:
        return len(owner.execute(SEARCH, given(tenant, one.owner, one.query)).fetchall())

    with (
        product.client() as client,
        psycopg.connect(embedded.urls_of(product.data_dir).app, autocommit=True) as line,
    ):
        for number in range(ROUNDS + _WARM_UP):
            for size, asked in questions.items():
                one, statements = asked[number], sent[size][number]
                http, sql = _seconds(over_http, one), _seconds(by_sql, one)
                same = _seconds(lambda _, of=statements: _run(line, of), one)
                if number >= _WARM_UP:
                    timed[size].http.append(http)
                    timed[size].sql.append(sql)
                    timed[size].same.append(same)


def _run(line: psycopg.Connection[Any], statements: Sequence[Statement]) -> int:
    """Sends what the product sent, in the way in which it was sent; rows of the last one."""
    rows = 0
    for sql, values in statements:
        with psycopg.ClientCursor(line) as cursor:
            cursor.execute(sql.encode(), values)
            while cursor.nextset():
                """What is asked for comes last."""
            rows = len(cursor.fetchall())
    return rows


def _statements(product: Product, questions: dict[str, list[Asking]]) -> dict[str, list[list[Statement]]]:
    """By size, of each question: the product's two statements; see `bench.inside`."""
    asked = {
        size: [{"who": owner_name(one.owner), "query": one.query} for one in ones]
        for size, ones in questions.items()
    }
    sent = _inside(product, "statements", asked)
    assert all(len(statements) == 2 for ones in sent.values() for statements in ones)
    return sent


def _seconds(work: Callable[[Asking], int], one: Asking) -> float:
    begun = time.perf_counter()
    found = work(one)
    seconds = time.perf_counter() - begun
    assert found, one
    return seconds


def _counts(product: Product, tenant: Tenant, questions: dict[str, list[Asking]]) -> dict[str, Any]:
    """What only a process of the product can tell; see `bench.inside`."""
    asked = {
        size: {
            "who": owner_name(ones[0].owner),
            "query": ones[0].query,
            "vectors": [
                {"buckets": tenant.reach(one.owner), "vector": vector_of(one.query).tolist()}
                for one in ones[:_COMPARED]
            ],
        }
        for size, ones in questions.items()
    }
    return _inside(product, "counts", {"embedder": EMBEDDER, "query": WORDLESS, "sizes": asked})


def _inside(product: Product, what: str, asked: dict[str, Any]) -> dict[str, Any]:
    told = subprocess.run(
        [sys.executable, "-m", "bench.inside", what, str(product.agent_id), product.first_run["token"]],
        input=json.dumps(asked), text=True,
        cwd=CHECKOUT, env=product.variables() | {"DJANGO_SETTINGS_MODULE": "config.settings"},
        check=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    return dict(json.loads(told.stdout))


def _share_found(
    owner: psycopg.Connection[Any], found: list[list[int]], tenant: Tenant, asked: Sequence[Asking]
) -> float:
    shares = []
    for ids, one in zip(found, asked, strict=False):
        vector = str(vector_of(one.query).tolist())
        exact = {pk for (pk,) in owner.execute(_EXACT, [tenant.embedder, tenant.reach(one.owner), vector])}
        shares.append(len(exact & {*ids[: len(exact)]}) / len(exact))
    return sum(shares) / len(shares)


def _time_mem0(
    owner: psycopg.Connection[Any],
    folder: Path,
    tenant: Tenant,
    questions: dict[str, list[Asking]],
    timed: dict[str, Timed],
) -> dict[str, float]:
    """The same questions, and the share of the exact first ten among an owner's own that it finds."""
    known = {one.query: vector_of(one.query).tolist() for ones in questions.values() for one in ones}
    mem0 = peer.Mem0(owner.info.dsn, folder, dimensions=DIMENSIONS, embed=known.__getitem__)
    mem0.fill(owner, _OF_MEM0)
    shares: dict[str, list[float]] = {size: [] for size in questions}
    for number in range(_WARM_UP + ROUNDS):
        for size, asked in questions.items():
            one = asked[number]
            begun = time.perf_counter()
            keys = mem0.ranked(one.query, who=owner_name(one.owner), limit=10)
            if number >= _WARM_UP:
                timed[size].mem0.append(time.perf_counter() - begun)
            if number < _COMPARED:
                own = [int(tenant.buckets[one.owner])]
                rows = owner.execute(_EXACT, [tenant.embedder, own, str(known[one.query])]).fetchall()
                exact = {str(pk) for (pk,) in rows}
                shares[size].append(len(exact & {*keys}) / len(exact))
    mem0.close()
    return {size: sum(found) / len(found) for size, found in shares.items()}
