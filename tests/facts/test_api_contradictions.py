"""The inbox over HTTP: both sides with their evidence, a decision, its undoing, and nobody else's."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.factories import World
from tests.facts.test_contradictions import tell
from workspaces.outbox import drain


@pytest.fixture
def inbox(acme: World, django_capture_on_commit_callbacks) -> str:
    with django_capture_on_commit_callbacks(execute=True):
        tell(acme.personal(acme.bob.owner_key), "Bob lives in Berlin.", "Bob lives in Rome.")
    drain()
    return f"/api/v1/memory/{acme.agent_id}/contradictions"


def test_both_sides_are_shown_with_their_evidence(acme, inbox):
    body = acme.bob.client().get(inbox).json()
    assert body["count"] == 1
    [row] = body["results"]
    assert (row["a"]["statement"], row["b"]["statement"]) == ("Bob lives in Berlin.", "Bob lives in Rome.")
    assert row["a"]["evidence"][0]["quote"] == "Bob lives in Berlin."
    assert row["decision"] is None


def test_a_decision_changes_the_facts_and_can_be_undone(acme, inbox):
    bob = acme.bob.client()
    number = bob.get(inbox).json()["results"][0]["id"]
    decided = bob.post(f"{inbox}/{number}/resolve", {"decision": "keep_b"}, format="json")
    assert (decided.status_code, decided.json()["decision"]) == (200, "keep_b")
    assert decided.json()["a"]["retiredAt"] is not None
    assert bob.get(inbox).json()["count"] == 0
    assert bob.get(inbox + "?status=decided").json()["count"] == 1
    again = bob.post(f"{inbox}/{number}/resolve", {"decision": "keep_a"}, format="json")
    assert (again.status_code, again.json()["code"]) == (409, "already_decided")
    undone = bob.post(f"{inbox}/{number}/undo", {}, format="json")
    assert (undone.status_code, undone.json()["a"]["retiredAt"]) == (200, None)
    assert bob.get(inbox).json()["count"] == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "decision"), ({"decision": "both sides"}, "decision"), ({"decision": "merge"}, "text")],
)
def test_a_bad_ruling_names_its_field(acme, inbox, body, field):
    bob = acme.bob.client()
    number = bob.get(inbox).json()["results"][0]["id"]
    refused = bob.post(f"{inbox}/{number}/resolve", body, format="json")
    assert refused.status_code == 400
    assert field in str(refused.json())


def test_another_persons_contradiction_does_not_exist(acme, inbox):
    number = acme.bob.client().get(inbox).json()["results"][0]["id"]
    vera = acme.vera.client()
    assert vera.get(inbox).json()["count"] == 0
    body = {"decision": "keep_a"}
    theirs = vera.post(f"{inbox}/{number}/resolve", body, format="json")
    none = vera.post(f"{inbox}/999999/resolve", body, format="json")
    assert theirs.status_code == none.status_code == 404
    assert theirs.json()["code"] == none.json()["code"]


def test_a_list_costs_the_same_for_one_and_for_many(acme, inbox, django_capture_on_commit_callbacks):
    bob = acme.bob.client()

    def queries() -> int:
        bob.get(inbox)  # What is asked once a minute is asked.
        with CaptureQueriesContext(connection) as seen:
            bob.get(inbox)
        return len(seen)

    one = queries()
    bucket = acme.personal(acme.bob.owner_key)
    with django_capture_on_commit_callbacks(execute=True):
        tell(bucket, "Bob is single.", "Bob is married.", "Bob is 34 years old.", "Bob is 41 years old.")
    drain()
    assert bob.get(inbox).json()["count"] == 3
    assert queries() == one
