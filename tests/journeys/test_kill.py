"""Extraction is exactly once, whatever dies: the worker at random points, or the broker for good.

`TEST_KILLS` says how often the worker is killed (3 by default).
"""

from __future__ import annotations

import json
import logging
import os
import random
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest

from config import embedded
from tests.journeys.product import Product, children_of, files_of, record, until
from tests.stubs.openai_server import StubServer
from tests.stubs.wire import Reply, Request, Say

log = logging.getLogger(__name__)
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kill")]

KILLS = int(os.environ.get("TEST_KILLS", "3"))
SEED = int(os.environ.get("TEST_SEED", "20240229"))
PEOPLE = ("ann", "bo", "chen")
A_ROUND = 2
"""Sentences that each person says in a round; a worker is killed once a round."""
THINKS_S = 0.3
"""How long the model thinks, so that most of a run is spent thinking."""
_SAID = re.compile(r"My locker (?P<number>\d{5}) holds a \w+ parcel")
_TRANSCRIPT = re.compile(r'<material name="transcript">(.*?)</material>', re.DOTALL)
_COLOURS = ("green", "yellow", "blue", "white")

# Fewer messages than usual make a conversation, and nothing cools down: each turn is work at once.
AT_ONCE = {"MATE_MEMORY_COOLDOWN_MINUTES": "0", "MATE_MEMORY_MIN_MESSAGES_FOR_SUMMARIZE": "1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data folder for all products of this module, which run one after the other."""
    return tmp_path_factory.mktemp("product")


def sentence(number: int) -> str:
    return f"My locker {number:05d} holds a {_COLOURS[number % len(_COLOURS)]} parcel"


@dataclass
class SlowScribe:
    """A model that thinks, then notes each sentence of the transcript. Each answer numbers its lines anew, so
    that a window stored twice cannot pass for one that was stored once.
    """

    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    answered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    answers: int = 0
    on_asked: Callable[[], object] = lambda: None

    def __call__(self, request: Request) -> Reply:
        self.answers += 1
        self.on_asked()
        (transcript,) = _TRANSCRIPT.findall(request.text("user"))
        lines = [f"- {found[0]} (answer {self.answers})" for found in _SAID.finditer(transcript)]
        answer = {"should_update": True, "reason": "Lockers.", "daily_entry": "\n".join(lines)}
        thought = threading.Event()
        threading.Timer(THINKS_S, self._has_thought, [thought]).start()
        self.asked.release()
        return Say(json.dumps(answer), wait=thought)

    def _has_thought(self, thought: threading.Event) -> None:
        thought.set()
        self.answered.release()


@dataclass
class Assassin:
    """Kills the worker at a random point of its work: while it thinks, or just when the answer has come."""

    product: Product
    scribe: SlowScribe
    rng: random.Random
    points: list[str] = field(default_factory=list)

    def strike(self) -> None:
        in_mind = self.rng.random() < 0.5
        # How many answers it lets pass; a round has at least one for each person.
        for _ in range(1 + self.rng.randrange(len(PEOPLE))):
            signal = self.scribe.asked if in_mind else self.scribe.answered
            assert signal.acquire(timeout=60), "the worker asked nothing"
        delay = self.rng.uniform(0, THINKS_S) if in_mind else self.rng.uniform(0, 0.05)
        threading.Event().wait(delay)
        only_child = self.rng.random() < 0.25
        if not (only_child and self.product.kill_worker_child()):
            self.product.kill_worker()
            only_child = False
        self.points.append(
            f"{'thinking' if in_mind else 'applying'}, {'a child' if only_child else 'all of it'}"
        )
        for signal in (self.scribe.asked, self.scribe.answered):
            while signal.acquire(blocking=False):
                pass


def waiting_conversations(product: Product) -> int:
    """How many conversations have messages beyond their watermark."""
    with psycopg.connect(embedded.urls_of(product.data_dir).owner) as owner:
        row = owner.execute(
            "SELECT count(*) FROM memory_conversation WHERE last_message > extracted_upto"
        ).fetchone()
    assert row is not None
    return int(row[0])


def holders(product: Product) -> set[int]:
    """The processes that work on something at the moment, by the leases they hold."""
    with psycopg.connect(embedded.urls_of(product.data_dir).owner) as owner:
        rows = owner.execute("SELECT lease_by FROM workspaces_lane WHERE lease_token IS NOT NULL").fetchall()
    return {int(lease.rpartition(":")[2]) for (lease,) in rows}


def noted(client: httpx.Client, agent_id: int, who: str) -> list[int]:
    """The numbers of all sentences in a person's daily notes, as often as they stand there."""
    notes = files_of(client, agent_id, who, prefix="memory/")
    return sorted(int(found["number"]) for text in notes.values() for found in _SAID.finditer(text))


def run_states(client: httpx.Client, agent_id: int, who: str) -> set[str]:
    answer = client.get(f"memory/{agent_id}/runs", params={"endUserId": who, "pageSize": 200})
    assert answer.status_code == 200, answer.text
    return {run["status"] for run in answer.json()["results"]}


def test_every_turn_is_extracted_exactly_once_though_the_worker_is_killed_again_and_again(
    folder: Path,
) -> None:
    scribe = SlowScribe()
    rng = random.Random(SEED)
    said: dict[str, list[int]] = {who: [] for who in PEOPLE}
    with (
        StubServer(scribe) as stub,
        Product(AT_ONCE | {"MATE_MODEL": "openai:stub", "OPENAI_BASE_URL": stub.url}, folder, 0.2) as product,
        product.client() as client,
    ):
        assassin = Assassin(product, scribe, rng)
        numbers = iter(range(100_000))
        for turn in range(KILLS):
            for who in PEOPLE:
                new = [next(numbers) for _ in range(A_ROUND)]
                said[who] += new
                record(
                    client, product.agent_id, who, f"talk-{turn % 2}", [sentence(number) for number in new]
                )
            assassin.strike()
        for who in PEOPLE:
            until(
                lambda who=who: set(noted(client, product.agent_id, who)) >= set(said[who]),
                what=f"all of what {who} said in the notes",
                seconds=180,
                every=0.5,
            )
        until(lambda: not waiting_conversations(product), what="every watermark at its end", seconds=180)
        until(
            lambda: all(run_states(client, product.agent_id, who) <= {"stored", "nothing"} for who in PEOPLE),
            what="the end of every run",
            seconds=180,
        )
        assert {who: noted(client, product.agent_id, who) for who in PEOPLE} == said
        assert all("stored" in run_states(client, product.agent_id, who) for who in PEOPLE)
        assert not stub.failures
    log.info(
        "%d kills: %s; %d answers for %d sentences",
        KILLS, Counter(assassin.points), scribe.answers, sum(map(len, said.values())),
    )  # fmt: skip


# --- the broker -------------------------------------------------------------------------------------------


def _listens(url: str) -> bool:
    parts = urlsplit(url)
    try:
        socket.create_connection((parts.hostname or "", parts.port or 0), timeout=1).close()
    except OSError:
        return False
    return True


NOBODY = "amqp://guest:guest@127.0.0.1:1//"
BROKERS = {
    "none at all": NOBODY,
    "the embedded one": "",
    "RabbitMQ": "amqp://guest:guest@127.0.0.1:5672//",
    "Redis": "redis://127.0.0.1:6379/9",
}


@pytest.fixture(params=BROKERS)
def broker(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A broker's name and address; the first is away for the whole of the product's life."""
    name, url = request.param, BROKERS[request.param]
    if url not in {"", NOBODY} and not _listens(url):
        pytest.skip(f"no {name} answers at {urlsplit(url).netloc.rpartition('@')[2]}")
    return name, url


def test_turns_are_taken_and_extracted_with_any_broker_and_with_none(
    broker: tuple[str, str], folder: Path
) -> None:
    name, url = broker
    people = [f"{who} of {name}" for who in PEOPLE]
    said = {who: [100 * index + number for number in range(5)] for index, who in enumerate(people)}
    scribe = SlowScribe()
    with StubServer(scribe) as stub:
        given = {"CELERY_BROKER_URL": url, "MATE_MODEL": "openai:stub", "OPENAI_BASE_URL": stub.url}
        # A publish that a request waited for would cost each of them the two seconds of a connection's attempt,
        # or hang; the client gives up long before their sum.
        with Product(AT_ONCE | given, folder) as product, product.client(timeout=10) as client:
            worked_by: set[int] = set()
            scribe.on_asked = lambda: worked_by.update(holders(product))
            for number in range(5):
                for who in people:
                    record(client, product.agent_id, who, "talk", [sentence(said[who][number])])
            until(
                lambda: {who: noted(client, product.agent_id, who) for who in people} == said,
                what="what was said, once each, in the notes",
                every=0.5,
            )
            until(lambda: not waiting_conversations(product), what="every watermark at its end")
            # The sweep is a thread of the worker itself; a nudge reaches the processes of its pool.
            is_nudged = bool(worked_by & set(children_of(product.pids()["worker"])))
            assert is_nudged == (url != NOBODY), f"worked by {worked_by}, the worker's are {product.pids()}"
            assert not stub.failures
