"""What was recalled is counted once, for the person whose turn it was, and forgotten in time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from memory.models import Message, RecallHit
from tests.memory.test_embedding import ask
from tests.memory.test_extract import open_as, tell
from workspaces.services.maintenance import maintain
from workspaces.tenancy import Door, door, tenant


def hits(opened) -> list[RecallHit]:
    with tenant(opened.reach):
        return list(RecallHit.objects.of(opened.own).order_by("pk"))


@pytest.fixture
def told(acme):
    return tell(acme, ("I keep bees in the garden.", "How nice.", "My sister studies law in Bergen.", "Oh."))


def test_a_chat_counts_what_it_put_before_the_agent(acme, told):
    body = {"agentId": acme.agent_id, "message": "Where are my bees?", "endUserId": "nora"}
    answer = acme.bob.client().post("/api/v1/chat", body).json()
    found = hits(told)
    assert [hit.item for hit in found] == [item["id"] for item in answer["recalled"]] != []
    assert {hit.source for hit in found} == {"chat"}
    assert [hit.rank for hit in found] == list(range(len(found)))
    assert all(hit.turn_id and hit.source_id and hit.content_hash and hit.query_hash for hit in found)


def test_a_context_counts_and_a_search_only_when_asked_to(acme, told):
    url = f"/api/v1/memory/{acme.agent_id}/context"
    answer = acme.bob.client().post(url, {"query": "Where are my bees?", "endUserId": "nora"}).json()
    assert len(hits(told)) == len(answer["items"]) > 0
    ask(acme, "Where are my bees?")
    assert len(hits(told)) == len(answer["items"])
    searched = ask(acme, "where  are my BEES?", record=True)
    fresh = hits(told)[len(answer["items"]) :]
    assert [hit.item for hit in fresh] == [one["id"] for one in searched["results"]] != []
    assert {hit.source for hit in fresh} == {"search"}
    assert len({hit.query_hash for hit in hits(told)}) == 1  # one question, written in two ways


def test_what_a_job_recalls_is_marked(acme):
    opened = tell(acme, ("I keep bees in the garden.",), conversation="job", source="cron")
    body = {
        "agentId": acme.agent_id,
        "message": "Where are my bees?",
        "endUserId": "nora",
        "conversationId": "job",
    }
    tell(acme, ("The bees are by the pond.",), conversation="other")
    acme.bob.client().post("/api/v1/chat", body)
    assert {hit.source for hit in hits(opened)} == {"job"}


def test_a_reader_of_whom_nothing_is_known_leaves_no_hit(acme, told):
    ask(acme, "bees", endUserId="sven", record=True)
    assert len(hits(told)) == 0
    with door(Door.MAINTENANCE):
        assert not RecallHit.unscoped.exists()


def test_old_hits_go_and_others_stay(acme, told):
    ask(acme, "bees", record=True)
    with door(Door.MAINTENANCE):
        first = RecallHit.unscoped.order_by("pk").first()
        RecallHit.unscoped.filter(pk=first.pk).update(at=timezone.now() - timedelta(days=181))
        before = RecallHit.unscoped.count()
    maintain(now=timezone.now())
    assert len(hits(open_as(acme))) == before - 1


def test_a_message_that_is_gone_makes_room_for_the_next(acme, told):
    first, second, *rest = [one["id"] for one in ask(acme, "Where are my bees?")["results"]]
    assert [one["id"] for one in ask(acme, "Where are my bees?", topK=2)["results"]] == [first, second]
    with door(Door.ERASURE):
        Message.unscoped.filter(pk=first.removeprefix("message:")).delete()
    found = ask(acme, "Where are my bees?", topK=2)["results"]
    assert [one["id"] for one in found] == [second, rest[0]]


def test_a_threshold_leaves_out_what_scores_less(acme, told):
    everything = ask(acme, "Where are my bees?")["results"]
    scores = [one["score"] for one in everything]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    middle = scores[1]
    kept = ask(acme, "Where are my bees?", threshold=middle)["results"]
    assert [one["id"] for one in kept] == [one["id"] for one in everything if one["score"] >= middle]
    assert len(kept) < len(everything)
    url = f"/api/v1/memory/{acme.agent_id}/search"
    for bad in (-0.1, 1.1, "high"):
        answer = acme.bob.client().post(url, {"query": "bees", "endUserId": "nora", "threshold": bad})
        assert answer.status_code == 400
        assert "threshold" in answer.content.decode()
