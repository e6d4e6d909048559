"""Vectors in another store: found there, believed only where Postgres agrees, and taken out again."""

from __future__ import annotations

import pytest

from integrations.clients.vectors.base import Item
from memory.services import embedding
from memory.services.embedding import ask_for_missing, clear_gone, store_of
from recall.models import Gone, Record, Vector
from tests import factories
from tests.factories import make_world
from tests.memory.test_embedding import Fake, ask
from tests.memory.test_extract import tell, waiting
from tests.stubs.json_server import Answer
from tests.stubs.opensearch_server import OpenSearchServer
from tests.stubs.s3vectors_server import S3VectorsServer
from workspaces.outbox import drain
from workspaces.types import Role

DOWN = Answer(503, b"{}", {"Content-Type": "application/json"})


@pytest.fixture
def embedder(settings, monkeypatch):
    fake = Fake()
    settings.MATE_EMBEDDER = "fake"
    monkeypatch.setattr(embedding, "embedder_named", lambda _name, _timeout: fake)
    return fake


@pytest.fixture(params=["s3vectors", "opensearch"])
def server(request, settings, monkeypatch, embedder):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with S3VectorsServer() if request.param == "s3vectors" else OpenSearchServer() as server:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3VECTORS", server.url)
        settings.MATE_VECTOR_STORE = (
            "s3vectors:mate" if request.param == "s3vectors" else f"opensearch:{server.url}"
        )
        store_of.cache_clear()
        yield server
    store_of.cache_clear()


def settle(server):
    """Works what waits; a store may show it after its next refresh."""
    drain()
    if isinstance(server, OpenSearchServer):
        server.refresh()


def held() -> set[int]:
    return set(store_of("fake", 5.0).ids())


def test_what_was_said_is_found_by_meaning_through_the_store(committed, server):
    world = factories.acme()
    tell(world)
    settle(server)
    assert held() == set(Record.objects.values_list("pk", flat=True))
    assert set(Vector.objects.values_list("store", "value")) == {(embedding.store_name(), None)}
    answer = ask(world, "nuts", kinds=["message"], explain=True)
    assert "peanuts" in answer["results"][0]["text"]
    assert answer["results"][0]["why"]["dense"] > 0
    assert "reason" not in answer["providers"][0]
    assert ask(world, "nuts", kinds=["message"], endUserId="sven")["results"] == []


def test_a_store_that_is_down_delays_vectors_never_writes_and_words_answer(committed, server):
    world = factories.acme()
    server.instead(*[DOWN] * 40)
    tell(world)
    drain()
    assert Record.objects.exists()
    assert not Vector.objects.exists()
    assert {one.topic for one in waiting()} == {"recall.embed"}
    answer = ask(world, "peanuts", kinds=["message"])
    assert "peanuts" in answer["results"][0]["text"]
    assert "words only" in answer["providers"][0]["reason"]


def test_an_id_of_another_tenant_is_not_believed(committed, server):
    """The store says that a stranger's record lies in the asker's bucket."""
    world, umbra = factories.acme(), make_world("umbra", {"bob": Role.OWNER})
    tell(world)
    stranger = tell(umbra, ("My food is kept in the cellar behind the lamp.",))
    settle(server)
    [foreign] = Record.objects.filter(bucket_id=stranger.own.id, kind="message").values_list("pk", flat=True)
    [own] = {row.bucket_id for row in Record.objects.filter(kind="message").exclude(pk=foreign)}
    store_of("fake", 5.0).put([Item(foreign, own, "message", [0.6, 0.8])])
    settle(server)
    texts = [one["text"] for one in ask(world, "nuts", topK=50)["results"]]
    assert texts
    assert not any("cellar" in text for text in texts)


def test_what_is_deleted_here_is_taken_out_of_the_store(committed, server):
    world = factories.acme()
    tell(world, ("I keep bees in the garden.",))
    settle(server)
    [pk] = Record.objects.filter(kind="message").values_list("pk", flat=True)
    assert pk in held()
    world.bob.client().delete(f"/api/v1/memory/{world.agent_id}/conversations/c1?endUserId=nora")
    server.instead(DOWN)
    clear_gone(None)
    assert Gone.objects.filter(record_id=pk).exists()  # tried again
    clear_gone(None)
    settle(server)
    assert pk not in held()
    assert not Gone.objects.exists()


def test_vectors_move_to_a_store_that_is_chosen_later_and_back(committed, server, settings):
    world = factories.acme()
    chosen, settings.MATE_VECTOR_STORE = settings.MATE_VECTOR_STORE, "pgvector"
    store_of.cache_clear()
    tell(world)
    drain()
    assert set(Vector.objects.values_list("store", flat=True)) == {""}
    settings.MATE_VECTOR_STORE = chosen
    store_of.cache_clear()
    ask_for_missing(None)
    settle(server)
    assert held() == set(Record.objects.values_list("pk", flat=True))
    assert set(Vector.objects.values_list("store", flat=True)) == {chosen}
    settings.MATE_VECTOR_STORE = "pgvector"
    ask_for_missing(None)
    drain()
    assert set(Vector.objects.values_list("store", flat=True)) == {""}
    settings.MATE_VECTOR_STORE = chosen
    clear_gone(None)
    settle(server)
    assert held() == set()
