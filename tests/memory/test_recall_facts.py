"""Facts and entries as they are recalled."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from facts.models import Fact
from facts.services.learn import learn
from facts.types import Claim, Source, SourceKind
from memory.models import Message
from memory.services.recall import search_memory
from memory.services.reindex import reindex_bucket
from memory.tools import ToolRun, agent_tools
from recall.models import Record
from tests.facts.test_api_facts import Api
from workspaces.access import open_personal, principal_of_token
from workspaces.tenancy import tenant

HARBOUR = {"type": "project", "key": "harbour", "content": "Repaint the harbour wall."}


@pytest.fixture
def bob(acme) -> Api:
    return Api(acme)


def said_and_learned(
    bob: Api, text="My sister Ines mends violins.", statement="Ines, Bob's sister, mends violins."
):
    body = {"conversationId": "talk", "messages": [{"role": "user", "content": text, "externalId": "x1"}]}
    assert bob.client.post(f"{bob.base}/turns", body, format="json").status_code == 201
    with tenant(bob.bucket):
        row = Message.objects.of(bob.bucket).get()
    source = Source(
        SourceKind.MESSAGE, f"message:{row.pk}", row.at, quote=text, message_id=row.pk,
        prompt="extract", prompt_version=3, model="small",
    )  # fmt: skip
    [learned] = learn(
        bob.bucket, [Claim(statement, (source,), confidence=0.8)], actor="t", now=timezone.now()
    )
    return row, learned.fact_id


def test_a_recalled_fact_tells_where_it_comes_from_and_by_what_it_was_learned(bob):
    row, fact_id = said_and_learned(bob)
    [item] = bob.search("Who mends violins?", kinds=["fact"])
    assert (item["id"], item["kind"], item["scope"]) == (f"fact:{fact_id}", "fact", "PERSONAL")
    assert item["trust"] == pytest.approx(0.8, abs=0.01)
    assert item["speaker"] == "owner"
    source = item["source"]
    assert (source["factId"], source["messageId"], source["externalId"], source["conversationId"]) == (
        fact_id, row.pk, "x1", "talk",
    )  # fmt: skip
    assert source["learnedBy"] == {"prompt": "extract", "promptVersion": 3, "model": "small"}
    [evidence] = source["evidence"]
    assert (evidence["quote"], evidence["speaker"]) == ("My sister Ines mends violins.", "owner")


def test_a_fact_and_its_message_are_shown_once(bob):
    row, _ = said_and_learned(bob)
    items = bob.search("Who mends violins?")
    assert len(items) == 1
    assert items[0]["source"]["messageId"] == row.pk


def test_an_entry_is_recalled_with_who_wrote_it(bob):
    made = bob.client.post(
        f"{bob.base}/entries",
        {"type": "project", "key": "harbour", "content": "Repaint the harbour wall."},
        format="json",
    ).json()
    [item] = bob.search("harbour wall", kinds=["entry"])
    assert (item["id"], item["text"]) == (f"entry:{made['id']}", "Repaint the harbour wall.")
    assert (item["source"]["entryId"], item["source"]["writtenBy"], item["source"]["key"]) == (
        made["id"], "program", "harbour",
    )  # fmt: skip
    bob.client.delete(f"{bob.base}/entries/{made['id']}")
    assert bob.search("harbour wall", kinds=["entry"]) == []


def test_facts_and_entries_are_legs_of_a_turn(bob):
    said_and_learned(bob)
    answer = bob.client.post(f"{bob.base}/context", {"query": "Who mends violins?"}, format="json").json()
    assert [one["name"] for one in answer["providers"]] == ["builtin", "structured", "session", "fact"]
    assert "violins" in answer["recalled"]


def test_what_is_out_of_its_range_is_not_recalled(bob):
    _, fact_id = said_and_learned(bob)
    now = timezone.now()
    for change in (
        {"valid_to": now - timedelta(days=1)},
        {"valid_from": now + timedelta(days=1), "valid_to": None},
    ):
        with tenant(bob.bucket):
            Fact.objects.of(bob.bucket).filter(pk=fact_id).update(**change)
        assert bob.search("Who mends violins?", kinds=["fact"]) == []


def test_ranking_trusts_less_what_was_long_not_confirmed(bob):
    _, fact_id = said_and_learned(bob)
    old = timezone.now() - timedelta(days=240)
    [fresh] = bob.search("Who mends violins?", kinds=["fact"], explain=True)
    with tenant(bob.bucket):
        Fact.objects.of(bob.bucket).filter(pk=fact_id).update(confirmed_at=old)
    Record.objects.filter(kind="fact", source_id=fact_id).update(trusted_at=old)
    [stale] = bob.search("Who mends violins?", kinds=["fact"], explain=True)
    assert stale["trust"] == pytest.approx(0.05, abs=0.01)
    assert stale["why"]["trust"] < 0 < fresh["why"]["trust"]


def test_a_new_index_holds_what_holds(bob):
    said_and_learned(bob)
    bob.client.post(
        f"{bob.base}/entries",
        {"type": "project", "key": "harbour", "content": "Repaint the harbour wall."},
        format="json",
    )
    before = set(
        Record.objects.filter(bucket_id=bob.bucket.id).values_list("kind", "source_id", "root", "trusted_at")
    )
    assert {kind for kind, *_ in before} == {"message", "entry", "fact"}
    Record.objects.filter(bucket_id=bob.bucket.id, kind__in=["fact", "entry"]).delete()
    Record.objects.create(
        bucket_id=bob.bucket.id,
        kind="fact",
        source_id=10**9,
        part=0,
        position=0,
        size=1,
        content_hash="x",
        lexemes="",
    )
    reindex_bucket(bob.bucket.id)
    after = set(
        Record.objects.filter(bucket_id=bob.bucket.id).values_list("kind", "source_id", "root", "trusted_at")
    )
    assert after == before


def test_the_agent_asks_for_facts_and_sees_only_this_persons(acme):
    bob, alice = Api(acme), Api(acme, "alice")
    _, fact_id = said_and_learned(bob)

    def ask(api: Api, **arguments):
        principal = principal_of_token(acme.people[api.who].token, address="", now=timezone.now())
        opened = open_personal(principal, acme.agent_id, end_user_id=None, writes=True)
        run = ToolRun.of(opened, settings=opened.settings, search=search_memory)
        tool = next(one for one in agent_tools(run) if one.name == "fact_query")
        return cast("Any", tool.function)(**arguments)

    for arguments in ({"query": "violins"}, {}, {"includeHistory": True}):
        found = ask(bob, **arguments)
        assert [one["factId"] for one in found["facts"]] == [fact_id], found
        assert found["facts"][0]["holds"] is True
        assert ask(alice, **arguments)["facts"] == []
    assert ask(bob, asOf="2001-01-01T00:00:00Z")["facts"] == []
    assert ask(bob, agentId=acme.agent_id + 1)["error"] is True
