"""Records get their vectors, questions theirs; without an embedder words alone answer, and say so."""

from __future__ import annotations

import pytest
from django.core.management import call_command

from integrations.clients.errors import ProviderError
from memory.services import embedding
from memory.services.embedding import BATCH, ask_for_missing
from recall.models import Record, Vector
from tests import factories
from tests.memory.test_extract import tell, waiting
from tests.stubs.json_server import Answer, Call, JsonServer, answer_of
from workspaces.models import GLOBAL_BUCKET_ID, Bucket, File
from workspaces.outbox import drain
from workspaces.services.files import Author, append_to_file, write_file
from workspaces.tenancy import Door, door, tenant
from workspaces.types import AuthorKind


class Fake:
    """Tells texts about food from others; two numbers are enough."""

    name = "fake"
    dimensions = 2

    def __init__(self):
        self.passages: list[str] = []
        self.is_away = False

    def _vector(self, text):
        if self.is_away:
            raise ProviderError("The embedder is away.", retryable=True, kind="unavailable")
        return [0.6, 0.8] if any(word in text for word in ("peanut", "nuts", "food")) else [1.0, 0.0]

    def embed_passages(self, texts):
        self.passages += texts
        return [self._vector(text) for text in texts]

    def embed_query(self, text):
        return self._vector(text)


@pytest.fixture
def embedder(settings, monkeypatch):
    fake = Fake()
    settings.MATE_EMBEDDER = "fake"
    monkeypatch.setattr(embedding, "embedder_named", lambda _name, _timeout: fake)
    return fake


def ask(world, query, **more):
    body = {"query": query, "endUserId": "nora"} | more
    return world.bob.client().post(f"/api/v1/memory/{world.agent_id}/search", body).json()


def test_what_was_said_is_embedded_with_its_day_and_found_by_meaning(committed, embedder):
    world = factories.acme()
    tell(world)
    drain()
    assert Vector.objects.count() == Record.objects.count() > 0
    assert any(text.startswith("[") and "I love skiing" in text for text in embedder.passages)
    answer = ask(world, "nuts", kinds=["message"])
    assert "peanuts" in answer["results"][0]["text"]
    assert "reason" not in answer["providers"][0]


def test_an_embedder_that_is_away_delays_the_vector_never_the_write(committed, embedder):
    world = factories.acme()
    embedder.is_away = True
    tell(world)
    drain()
    assert Record.objects.exists()
    assert not Vector.objects.exists()
    answer = ask(world, "peanuts", kinds=["message"])
    assert "peanuts" in answer["results"][0]["text"]
    assert "words only" in answer["providers"][0]["reason"]


def test_a_long_talk_is_embedded_batch_by_batch(committed, embedder):
    world = factories.acme()
    tell(world, [f"I visited town number {n}." for n in range(2 * BATCH + 3)])
    drain()
    assert Vector.objects.count() == Record.objects.count() >= 2 * BATCH + 3


def test_a_deleted_conversation_is_found_no_more(committed, embedder):
    world = factories.acme()
    tell(world, ("I keep bees in the garden.",))
    drain()
    assert ask(world, "bees", kinds=["message"])["results"]
    world.bob.client().delete(f"/api/v1/memory/{world.agent_id}/conversations/c1?endUserId=nora")
    assert ask(world, "bees", kinds=["message"])["results"] == []
    assert not Vector.objects.filter(record__kind="message").exists()


def test_the_index_of_a_file_is_the_same_whether_it_grew_or_was_written_whole(acme):
    lines = ["# Day", "", "## Morning", "- Tea with Ida.", "- A letter came.", "", "## Evening", "- We sang."]
    author = Author(AuthorKind.PERSON, "user:1")
    with tenant(acme.team):
        write_file(acme.team, "whole.md", "\n".join(lines) + "\n", author=author)
        write_file(acme.team, "grown.md", "\n".join(lines[:4]) + "\n", author=author)
        for line in lines[4:]:
            append_to_file(acme.team, "grown.md", line, author=author)
        texts = {file.name: file.content for file in File.objects.of(acme.team)}
        ids = dict(File.objects.of(acme.team).values_list("name", "pk"))
    indexed = {
        name: list(
            Record.objects.filter(kind="file", source_id=ids[name])
            .order_by("position")
            .values_list("position", "content_hash")
        )
        for name in ("whole.md", "grown.md")
    }
    assert indexed["whole.md"] == indexed["grown.md"] != []
    assert texts["grown.md"].startswith("\n".join(lines[:4]))


@pytest.mark.parametrize(
    "bad",
    [
        {"query": ""},
        {"query": 5},
        {"query": "x", "topK": 0},
        {"query": "x", "topK": 1000},
        {"query": "x", "kinds": ["moon"]},
        {"query": "x\0"},
        {"query": "x", "from": "soon"},
        {"query": "x", "colour": "red"},
    ],
)
def test_bad_searches_are_refused_by_name(acme, bad):
    url = f"/api/v1/memory/{acme.agent_id}/search"
    answer = acme.bob.client().post(url, bad)
    assert answer.status_code == 400
    assert answer.json()["errors"]


def test_nobody_finds_what_another_said(acme, umbra):
    tell(acme, ("I keep bees in the garden.",))
    assert ask(acme, "bees")["results"]
    url = f"/api/v1/memory/{acme.agent_id}/search"
    for who in ({"endUserId": "sven"}, {}):
        assert acme.bob.client().post(url, {"query": "bees"} | who).json()["results"] == []
    own = f"/api/v1/memory/{umbra.agent_id}/search"
    assert umbra.mallory.client().post(own, {"query": "bees", "endUserId": "nora"}).json()["results"] == []
    assert umbra.mallory.client().post(url, {"query": "bees", "endUserId": "nora"}).status_code == 404


def test_a_text_that_is_refused_for_good_keeps_no_other_from_its_vector(committed, embedder, monkeypatch):
    world = factories.acme()
    real = embedder.embed_passages

    def refuse(texts):
        if any("cursed" in text for text in texts):
            raise ProviderError("No.", retryable=False, kind="bad_request")
        return real(texts)

    monkeypatch.setattr(embedder, "embed_passages", refuse)
    tell(world, ("I keep bees.", "Good.", "The cursed word.", "Oh.", "I keep hens."))
    drain()
    assert sorted(Vector.objects.filter(record__kind="message").values_list("store", flat=True)) == [
        "",
        "",
        "",
        "",
        "none",
    ]


def test_when_all_texts_are_refused_it_is_not_the_texts(committed, embedder, monkeypatch):
    world = factories.acme()

    def refuse(_texts):
        raise ProviderError("No such model.", retryable=False, kind="bad_request")

    monkeypatch.setattr(embedder, "embed_passages", refuse)
    tell(world)
    drain()
    assert not Vector.objects.exists()


def test_what_has_nothing_to_embed_keeps_nobody_waiting(committed, embedder):
    world = factories.acme()
    tell(world, ["\u200b" for _ in range(BATCH)] + [f"I visited town number {n}." for n in range(4)])
    drain()
    assert Vector.objects.filter(store="").count() >= 4


class Spoilt(JsonServer):
    """An embedder over HTTP whose vectors are not what was asked for."""

    def __init__(self, rows):
        self.rows = rows
        super().__init__()

    def answer(self, call: Call) -> Answer:
        asked = call.json["input"]
        data = [{"index": n, "embedding": row} for n, row in enumerate(self.rows(asked))]
        return answer_of({"object": "list", "data": data})


@pytest.mark.parametrize(
    "rows",
    [
        lambda asked: [[float("nan"), 1.0, 0.0] for _ in asked],
        lambda asked: [[0.0, 0.0, 0.0] for _ in asked],
        lambda asked: [[1.0, 0.0] for _ in asked],
        lambda asked: [[1.0, 0.0, 0.0] for _ in asked][1:],
        lambda asked: [["one", 0.0, 0.0] for _ in asked],
    ],
    ids=["NaN", "zero", "too short", "one too few", "words"],
)
def test_an_embedder_that_answers_rubbish_costs_vectors_and_nothing_else(committed, settings, rows):
    world = factories.acme()
    with Spoilt(rows) as server:
        settings.MATE_EMBEDDER, settings.OPENAI_BASE_URL = "openai:spoilt@3", f"{server.url}/v1"
        embedding.embedder_named.cache_clear()
        tell(world)
        drain()
        assert not Vector.objects.exists()
        answer = ask(world, "peanuts", kinds=["message"])
    embedding.embedder_named.cache_clear()
    assert "peanuts" in answer["results"][0]["text"]
    assert "words only" in answer["providers"][0]["reason"]


@pytest.mark.parametrize(
    "query",
    [
        "?",
        "的",
        "😀😀😀",
        "x" * 10_000,
        "' OR 1=1 --",
        "cat & !dog | (fish:*)",
        "\\'; DROP TABLE x",
        "%s %(a)s {b}",
    ],
)
def test_odd_queries_are_answered(acme, query):
    tell(acme)
    url = f"/api/v1/memory/{acme.agent_id}/search"
    answer = acme.bob.client().post(url, {"query": query, "endUserId": "nora", "topK": 100, "explain": True})
    assert answer.status_code == 200
    assert isinstance(answer.json()["results"], list)


def test_missing_vectors_are_asked_for_in_every_bucket_the_global_one_too(committed, embedder, settings):
    settings.MATE_EMBEDDER = "none"
    tell(factories.acme())
    with door(Door.OPERATOR):
        common = Bucket.unscoped.get(pk=GLOBAL_BUCKET_ID).ref()
        write_file(
            common,
            "HOUSE.md",
            "# House\n\n- Food is served at noon.\n",
            author=Author(AuthorKind.PERSON, "user:1"),
        )
    drain()
    assert not Vector.objects.exists()
    settings.MATE_EMBEDDER = "fake"
    ask_for_missing(None)
    drain()
    assert Vector.objects.count() == Record.objects.count()
    assert Vector.objects.filter(bucket_id=GLOBAL_BUCKET_ID).exists()
    assert [one for one in waiting() if one.attempts] == []
    before = Record.objects.filter(bucket_id=GLOBAL_BUCKET_ID).count()
    Record.objects.filter(bucket_id=GLOBAL_BUCKET_ID).delete()
    call_command("reindex", bucket=[GLOBAL_BUCKET_ID])
    assert Record.objects.filter(bucket_id=GLOBAL_BUCKET_ID).count() == before > 0
