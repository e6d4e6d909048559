"""Retrieval on LoCoMo through the HTTP API, beside words alone, the embedder alone, and mem0, in one run."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from bench import memory, peer
from bench.bm25 import Bm25, english_words
from bench.measures import grade
from bench.playing import DEPTH, ENVIRONMENT, Nearest, Question, Ranked, Said, Stage, ranked
from bench.tables import Table, ms, percentile
from tests.journeys.product import Product

SORTS: Final = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single hop", 5: "adversarial"}
"""The set's categories. The last are questions that nothing answers; they are reported, and left out of the sum."""


def run(path: Path, *, split: bool = False) -> list[Table]:
    """`path` is a LoCoMo JSON; `split` also reports each half of the conversations for itself."""
    talks = json.loads(path.read_text("utf-8"))
    said = {_who(talk): messages(talk) for talk in talks}
    questions = [question for talk in talks for question in questions_of(talk)]
    with Product(ENVIRONMENT) as product, tempfile.TemporaryDirectory() as folder:
        stage = Stage(product)
        with product.client() as client:
            for who, ones in said.items():
                stage.record(client, who, ones)
            stage.wait_for_vectors()
            results = {"POST /search": ranked(questions, lambda q: stage.search(client, q))}
            used = memory.table(product, after="LoCoMo")
        results |= _beside(stage, Path(folder), said, questions)
    session_of = {one.key: one.conversation for ones in said.values() for one in ones}
    tables = [_table("LoCoMo, categories 1 to 4", results, questions, session_of), _sorts(results, questions)]
    if split:
        people = list(said)
        for name, half in (("first", people[: len(people) // 2]), ("second", people[len(people) // 2 :])):
            kept = [place for place, question in enumerate(questions) if question.who in half]
            fewer = {
                method: Ranked([one.rankings[n] for n in kept], [one.seconds[n] for n in kept])
                for method, one in results.items()
            }
            some = [questions[n] for n in kept]
            tables.append(_table(f"The {name} {len(half)} conversations", fewer, some, session_of))
    return [*tables, used]


def _beside(
    stage: Stage, folder: Path, said: dict[str, list[Said]], questions: Sequence[Question]
) -> dict[str, Ranked]:
    """The baselines: over the same messages as `[date] speaker: text`, with the product's own vectors."""
    texts = {who: {one.key: _with_date(one) for one in ones} for who, ones in said.items()}
    words = {who: Bm25(ones, english_words) for who, ones in texts.items()}
    known = stage.vectors()
    near = {who: Nearest({one.key: known[one.key] for one in ones}) for who, ones in said.items()}
    asked = {question.text: stage.embed(question.text) for question in questions}
    results = {
        "BM25": ranked(questions, lambda q: words[q.who].ranked(q.text, DEPTH)),
        "embedder": ranked(questions, lambda q: near[q.who].ranked(asked[q.text], DEPTH)),
    }
    if not peer.is_installed():
        return results
    by_text = {text.strip(): known[key].tolist() for ones in texts.values() for key, text in ones.items()}
    by_text |= {text.strip(): vector.tolist() for text, vector in asked.items()}
    mem0 = peer.Mem0(stage.urls.owner, folder, dimensions=384, embed=lambda text: by_text[text.strip()])
    for who, ones in texts.items():
        for key, text in ones.items():
            mem0.add(text, who=who, key=key)
    results["mem0"] = ranked(questions, lambda q: mem0.ranked(q.text, who=q.who, limit=DEPTH))
    mem0.close()
    return results


def _table(
    title: str, results: dict[str, Ranked], questions: Sequence[Question], session_of: dict[str, str]
) -> Table:
    kept = [place for place, question in enumerate(questions) if question.sort != SORTS[5]]
    meant = [questions[place].meant for place in kept]
    table = Table(
        f"{title}: {len(kept)} questions (per cent)",
        ("", "R@5", "R@10", "R@20", "hit@10", "MRR@10", "session R@5", "p50", "p95"),
        note="R@k: the share of the turns that answer a question among the first k. Times: /search embeds the question "
        "and answers with texts; the others are given its vector."
        + ("" if peer.is_installed() else f" {peer.ABSENT}"),
    )
    for method, one in results.items():
        found = grade([one.rankings[place] for place in kept], meant, session_of=session_of)
        shares = (found.at5, found.at10, found.at20, found.hit10, found.rank10, found.sessions5)
        times = (percentile(one.seconds, 0.5), percentile(one.seconds, 0.95))
        table.add(method, *(f"{100 * share:.1f}" for share in shares), *map(ms, times))
    return table


def _sorts(results: dict[str, Ranked], questions: Sequence[Question]) -> Table:
    sorts = {sort: [n for n, q in enumerate(questions) if q.sort == sort] for sort in SORTS.values()}
    sorts = {sort: places for sort, places in sorts.items() if places}
    table = Table("LoCoMo, R@10 by category", ("", *(f"{s} ({len(p)})" for s, p in sorts.items())))
    for method, one in results.items():
        shares = [
            grade(
                [one.rankings[n] for n in places],
                [questions[n].meant for n in places],
                session_of={key: key for n in places for key in (*one.rankings[n], *questions[n].meant)},
            ).at10
            for places in sorts.values()
        ]
        table.add(method, *(f"{100 * share:.1f}" for share in shares))
    return table


# --- the file ---------------------------------------------------------------------------------------------


def messages(talk: dict[str, Any]) -> list[Said]:
    """The turns of a sample; a session is a conversation."""
    body, name = talk["conversation"], talk["sample_id"]
    numbers = sorted(int(found[1]) for key in body if (found := re.fullmatch(r"session_(\d+)", key)))
    return [
        Said(
            key=f"{name}:{turn['dia_id']}",
            conversation=f"{name}:{number}",
            speaker=turn["speaker"],
            text=turn["text"] + (f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""),
            at=said_at(body[f"session_{number}_date_time"]).isoformat(),
        )
        for number in numbers
        for turn in body[f"session_{number}"]
    ]


def questions_of(talk: dict[str, Any]) -> list[Question]:
    """The questions whose answer lies in turns that the sample has; evidence written amiss is read as it is meant."""
    known = {one.key for one in messages(talk)}
    found = []
    for row in talk["qa"]:
        keys = [
            f"{talk['sample_id']}:{place}" for text in row.get("evidence") or () for place in places_in(text)
        ]
        if meant := tuple(dict.fromkeys(key for key in keys if key in known)):
            found.append(Question(_who(talk), row["question"], SORTS[row["category"]], meant))
    return found


def places_in(evidence: str) -> list[str]:
    """`D1:3` of a string that may hold several, or write one as `D:1:03`."""
    return [f"D{session}:{int(turn)}" for session, turn in re.findall(r"D:?(\d+):(\d+)", evidence)]


def said_at(text: str) -> datetime:
    """A session's date, such as `1:56 pm on 8 May, 2023`."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _who(talk: dict[str, Any]) -> str:
    return f"{talk['sample_id']}/{talk['conversation']['speaker_a']}"


def _with_date(one: Said) -> str:
    return f"[{datetime.fromisoformat(one.at):%d %B %Y}] {one.speaker}: {one.text}"
