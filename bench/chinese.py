"""Retrieval on a Chinese set of our own through the HTTP API, beside BM25 on pairs of characters and the embedder."""

from __future__ import annotations

from typing import Final

from bench import memory
from bench.bm25 import Bm25, bigrams
from bench.chinese_make import KINDS, read
from bench.measures import grade
from bench.playing import DEPTH, ENVIRONMENT, Nearest, Question, Said, Stage, ranked
from bench.tables import Table, ms, percentile
from tests.journeys.product import Product

_WHO: Final = "everybody"


def run() -> list[Table]:
    lines, asked = read()
    said = [Said(one.id, one.day, one.speaker, one.text, f"{one.day}T12:00:00+00:00") for one in lines]
    questions = [Question(_WHO, one.query, one.kind, one.evidence) for one in asked]
    with Product(ENVIRONMENT) as product:
        stage = Stage(product)
        with product.client() as client:
            stage.record(client, _WHO, said)
            stage.wait_for_vectors()
            results = {"/search": ranked(questions, lambda q: stage.search(client, q))}
        used = memory.table(product, after="the Chinese set")
        near = Nearest(stage.vectors())
        vectors = {question.text: stage.embed(question.text) for question in questions}
    words = Bm25({one.key: f"{_day(one.at)} {one.speaker}：{one.text}" for one in said}, bigrams)
    results["BM25"] = ranked(questions, lambda q: words.ranked(q.text, DEPTH))
    results["embedder"] = ranked(questions, lambda q: near.ranked(vectors[q.text], DEPTH))
    session_of = {one.key: one.conversation for one in said}
    table = Table(
        f"Chinese: {len(said)} lines, {len(questions)} questions (per cent)",
        ("", *(f"{name} {k}" for name in results for k in ("R@5", "R@10", "MRR"))),
        note="; ".join(
            f"{name} p50 {ms(percentile(one.seconds, 0.5))}, p95 {ms(percentile(one.seconds, 0.95))}"
            for name, one in results.items()
        )
        + ". /search embeds the question; the embedder's row is given its vector.",
    )
    for kind in (*KINDS, "all"):
        places = [n for n, question in enumerate(questions) if kind in (question.sort, "all")]
        graded = [
            grade(
                [one.rankings[n] for n in places],
                [questions[n].meant for n in places],
                session_of=session_of,
            )
            for one in results.values()
        ]
        table.add(
            kind, *(f"{100 * share:.1f}" for one in graded for share in (one.at5, one.at10, one.rank10))
        )
    return [table, used]


def _day(at: str) -> str:
    year, month, day = at[:10].split("-")
    return f"{year}年{int(month)}月{int(day)}日"
