"""Conversations played into the product over HTTP, and asked for; the same vectors for whoever stands beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import httpx
import numpy as np
import psycopg

from config import embedded
from integrations.clients.embed.build import make_embedder
from tests.journeys.product import Product, until

DEPTH: Final = 50
"""Results that are looked at."""
ENVIRONMENT: Final = {"MATE_EMBEDDER": "local", "MATE_MEMORY_AUTO_SUMMARIZE_ENABLED": "false"}
"""With vectors; nothing is extracted, since only messages are looked for."""


@dataclass(frozen=True)
class Said:
    """A message. `key` is unique over all conversations, `at` in ISO form."""

    key: str
    conversation: str
    speaker: str
    text: str
    at: str


@dataclass(frozen=True)
class Question:
    """What is asked in whose memory, of what sort, and which messages answer it."""

    who: str
    text: str
    sort: str
    meant: tuple[str, ...]


@dataclass(frozen=True)
class Ranked:
    """A ranking for each question, and the seconds that each took."""

    rankings: list[list[str]]
    seconds: list[float]


class Stage:
    """A running product with what was recorded in it."""

    def __init__(self, product: Product) -> None:
        self.product = product
        self.urls = embedded.urls_of(product.data_dir)
        self._embedder = make_embedder("local", data_dir=product.data_dir, timeout_s=90)

    def record(self, client: httpx.Client, who: str, said: Sequence[Said]) -> None:
        """One person's messages, each conversation in its order."""
        by_conversation: dict[str, list[Said]] = {}
        for one in said:
            by_conversation.setdefault(one.conversation, []).append(one)
        for conversation, ones in by_conversation.items():
            messages = [
                {"role": "user", "content": o.text, "speaker": o.speaker, "at": o.at, "externalId": o.key}
                for o in ones
            ]
            body = {
                "conversationId": conversation,
                "endUserId": who,
                "source": "import",
                "messages": messages,
            }
            client.post(f"memory/{self.product.agent_id}/turns", json=body).raise_for_status()

    def wait_for_vectors(self) -> None:
        """Until the embedder has seen every record."""
        with psycopg.connect(self.urls.owner, autocommit=True) as owner:
            until(
                lambda: (
                    owner.execute(
                        "SELECT NOT EXISTS (SELECT FROM recall_record r WHERE kind = 'message' AND NOT EXISTS"
                        " (SELECT FROM recall_vector v WHERE v.record_id = r.id))"
                    ).fetchone()
                    == (True,)
                ),
                what="a vector for every message",
                seconds=1800,
                every=0.5,
            )

    def vectors(self) -> dict[str, np.ndarray[Any, Any]]:
        """The product's own vectors of the messages, by key."""
        with psycopg.connect(self.urls.owner, autocommit=True) as owner:
            rows = owner.execute(
                "SELECT m.external_id, v.value::text FROM recall_vector v JOIN recall_record r ON r.id = v.record_id"
                " JOIN memory_message m ON m.id = r.source_id WHERE r.kind = 'message'"
            ).fetchall()
        return {key: np.array(value.strip("[]").split(","), dtype=float) for key, value in rows}

    def embed(self, query: str) -> np.ndarray[Any, Any]:
        assert self._embedder is not None
        return np.array(self._embedder.embed_query(query))

    def search(self, client: httpx.Client, question: Question) -> list[str]:
        """Keys of the messages that the product finds."""
        body = {"query": question.text, "endUserId": question.who, "topK": DEPTH, "kinds": ["message"]}
        answer = client.post(f"memory/{self.product.agent_id}/search", json=body)
        answer.raise_for_status()
        assert "reason" not in answer.json()["providers"][0], answer.text
        return [one["source"]["externalId"] for one in answer.json()["results"]]


def ranked(questions: Iterable[Question], ask: Callable[[Question], list[str]]) -> Ranked:
    """Each question asked once, in order."""
    rankings, seconds = [], []
    for question in questions:
        begun = time.perf_counter()
        rankings.append(ask(question))
        seconds.append(time.perf_counter() - begun)
    return Ranked(rankings, seconds)


class Nearest:
    """The raw embedder: the cosine to every vector of a person's messages."""

    def __init__(self, vectors: dict[str, np.ndarray[Any, Any]]) -> None:
        self._keys = list(vectors)
        self._matrix = np.stack(list(vectors.values()))

    def ranked(self, query: np.ndarray[Any, Any], limit: int) -> list[str]:
        return [self._keys[place] for place in np.argsort(-(self._matrix @ query))[:limit]]
