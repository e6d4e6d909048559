"""Facts over HTTP."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from facts.models import Fact
from facts.services.expiry import retire_expired
from facts.services.retire import retire_facts
from facts.services.tombstones import keyed_fingerprint
from tests.factories import World
from workspaces.tenancy import tenant


class Api:
    """One person's calls."""

    def __init__(self, world: World, who: str = "bob") -> None:
        self.world, self.who = world, who
        self.client = world.people[who].client()
        self.base = f"/api/v1/memory/{world.agent_id}"
        self.facts = f"{self.base}/facts"

    def state(self, statement="Bob keeps two grey cats.", **more):
        return self.client.post(self.facts, {"statement": statement, **more}, format="json")

    def stated(self, statement="Bob keeps two grey cats.", **more):
        answer = self.state(statement, **more)
        assert answer.status_code in {200, 201}, answer.json()
        return answer.json()

    def all(self, **query):
        answer = self.client.get(self.facts, query)
        assert answer.status_code == 200, answer.json()
        return answer.json()["results"]

    def patch(self, pk, **body):
        headers = body.pop("headers", {})
        return self.client.patch(f"{self.facts}/{pk}", body, format="json", headers=headers)

    def search(self, query, **more):
        answer = self.client.post(f"{self.base}/search", {"query": query, **more}, format="json")
        assert answer.status_code == 200, answer.json()
        return answer.json()["results"]

    @property
    def bucket(self):
        return self.world.personal(self.world.people[self.who].owner_key)


@pytest.fixture
def bob(acme) -> Api:
    return Api(acme)


def test_a_stated_fact_is_new_once_and_known_after_that(bob):
    made = bob.state(category="pets", subject="Bob", metadata={"from": "a form"})
    assert made.status_code == 201, made.json()
    one = made.json()
    assert (one["outcome"], one["scope"], one["tier"], one["category"]) == (
        "added",
        "PERSONAL",
        "LONG",
        "pets",
    )
    assert one["metadata"] == {"from": "a form"}
    [evidence] = one["evidence"]
    assert (evidence["kind"], evidence["quote"]) == ("api", "Bob keeps two grey cats.")
    again = bob.state("bob keeps two GREY cats")
    assert (again.status_code, again.json()["id"], again.json()["outcome"]) == (200, one["id"], "confirmed")
    assert len(again.json()["evidence"]) == 1, "one person counts once"
    assert [row["id"] for row in bob.all()] == [one["id"]]


def test_a_fact_is_read_with_its_history_and_every_piece_of_evidence(bob):
    one = bob.stated()
    assert bob.patch(one["id"], statement="Bob keeps three grey cats.", reason="a kitten").status_code == 200
    answer = bob.client.get(f"{bob.facts}/{one['id']}")
    body = answer.json()
    assert answer.headers["ETag"] == '"2"'
    assert (body["history"][0]["op"], body["history"][0]["reason"]) == ("update", "a kitten")
    assert body["history"][0]["before"]["statement"] == "Bob keeps two grey cats."
    assert body["history"][0]["after"]["statement"] == body["statement"] == "Bob keeps three grey cats."
    assert body["evidence"][0]["quote"] == "Bob keeps three grey cats."
    listed = bob.client.get(f"{bob.facts}/{one['id']}/history").json()
    assert [row["number"] for row in listed["results"]] == [2, 1]


@pytest.mark.parametrize("how", ["body", "header"])
def test_a_change_of_what_was_changed_meanwhile_is_refused_with_the_current_one(bob, how):
    one = bob.stated()
    bob.patch(one["id"], category="pets")
    stale = {"baseRevision": 1} if how == "body" else {"headers": {"If-Match": '"1"'}}
    answer = bob.patch(one["id"], category="animals", **stale)
    assert answer.status_code == 409
    assert (answer.json()["code"], answer.json()["currentRevision"]) == ("stale_revision", 2)
    assert answer.json()["fact"]["category"] == "pets"
    assert bob.patch(one["id"], category="animals", baseRevision=2).json()["revision"] == 3


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"statement": "Bob plays the tuba."}, 409, "already_known"),
        ({"statement": " \n "}, 400, None),
        ({"statement": "x" * 8193}, 400, "statement_too_long"),
        ({"validFrom": "2024-02-01T00:00:00Z", "validTo": "2024-01-01T00:00:00Z"}, 400, None),
        ({"metadata": [1]}, 400, None),
        ({"headers": {"If-Match": "soon"}, "category": "x"}, 400, "bad_if_match"),
        ({"trust": 1}, 400, None),
    ],
)
def test_a_bad_change_is_refused_and_changes_nothing(bob, body, status, code):
    bob.stated("Bob plays the tuba.")
    one = bob.stated()
    answer = bob.patch(one["id"], **body)
    assert answer.status_code == status, answer.json()
    assert code is None or answer.json()["code"] == code
    assert bob.client.get(f"{bob.facts}/{one['id']}").json()["revision"] == 1


def test_a_changed_statement_is_found_by_its_new_words_alone(bob):
    one = bob.stated("Bob commutes by bicycle.")
    bob.patch(one["id"], statement="Bob commutes by tram.")
    assert [row["id"] for row in bob.all(q="tram")] == [one["id"]]
    assert bob.all(q="bicycle") == []


def test_what_was_superseded_is_absent_unless_it_is_asked_for(bob):
    """Peer faults C: confirm the new one, recall, and the old one must not be there."""
    old = bob.stated("Bob lives in Leeds.", validFrom="2020-01-01T00:00:00Z")
    new = bob.stated("Bob lives in Porto.", validFrom="2024-06-01T00:00:00Z")
    if new["outcome"] != "updated":
        with tenant(bob.bucket):
            row = Fact.objects.of(bob.bucket).get(pk=new["id"])
            retire_facts(
                bob.bucket,
                Fact.objects.of(bob.bucket).filter(pk=old["id"]),
                why=Fact.Retired.SUPERSEDED,
                actor="t",
                now=timezone.now(),
                superseded_by=row,
                valid_to=row.valid_from,
            )
    assert [row["id"] for row in bob.all()] == [new["id"]]
    assert [row["id"] for row in bob.all(q="Where does Bob live?")] == [new["id"]]
    texts = [row["text"] for row in bob.search("Where does Bob live?")]
    assert texts == ["Bob lives in Porto."]
    kept = bob.all(includeRetired=True)
    assert {row["id"]: row["supersededBy"] for row in kept} == {old["id"]: new["id"], new["id"]: None}
    assert {row["id"] for row in bob.all(q="Bob lives", includeRetired=True)} == {old["id"], new["id"]}


def test_as_of_tells_what_was_true_then(bob):
    test_what_was_superseded_is_absent_unless_it_is_asked_for(bob)
    said = {row["statement"] for row in bob.all(asOf="2022-01-01T00:00:00Z")}
    assert said == {"Bob lives in Leeds."}
    assert {row["statement"] for row in bob.all(asOf="2024-07-01T00:00:00Z")} == {"Bob lives in Porto."}
    assert bob.all(asOf="2019-01-01T00:00:00Z") == []
    bob.stated("Bob hums while cooking.")
    assert bob.all(asOf="2019-01-01T00:00:00Z") == [], "one without a range holds from when it was said"


def test_what_was_wrong_was_never_true(bob):
    one = bob.stated("Bob owns a yacht.", validFrom="2020-01-01T00:00:00Z")
    with tenant(bob.bucket):
        facts = Fact.objects.of(bob.bucket).filter(pk=one["id"])
        retire_facts(bob.bucket, facts, why=Fact.Retired.CONTRADICTED, actor="t", now=timezone.now())
    assert bob.all(asOf="2022-01-01T00:00:00Z") == []


def test_a_forgotten_statement_is_refused_until_a_person_revives_it(bob):
    from facts.models import Tombstone

    with tenant(bob.bucket):
        Tombstone.objects.create(
            workspace_id=bob.bucket.workspace_id,
            bucket_id=bob.bucket.id,
            fingerprint=keyed_fingerprint("Bob fears moths."),
            created_at=timezone.now(),
        )
    refused = bob.state("bob fears MOTHS")
    assert (refused.status_code, refused.json()["code"]) == (409, "forgotten")
    other = bob.stated()
    assert bob.patch(other["id"], statement="Bob fears moths.").json()["code"] == "forgotten"
    assert bob.all(q="moths") == []
    assert bob.state("Bob fears moths.", revive=True).status_code == 201
    assert bob.state("Bob fears moths.").status_code == 200


def test_expired_facts_leave_recall_at_once_and_the_list_with_upkeep(bob):
    soon = (timezone.now() + timedelta(hours=1)).isoformat()
    one = bob.stated("Bob parks on level four.", expiresAt=soon)
    assert [row["text"] for row in bob.search("Where does Bob park?")] == ["Bob parks on level four."]
    with tenant(bob.bucket):
        Fact.objects.of(bob.bucket).update(expires_at=timezone.now() - timedelta(minutes=1))
    assert bob.search("Where does Bob park?") == []
    retire_expired(timezone.now())
    assert bob.all() == []
    [gone] = bob.all(includeRetired=True)
    assert (gone["id"], gone["retiredWhy"]) == (one["id"], "expired")


def test_others_facts_do_not_exist(acme, umbra):
    bob, alice = Api(acme), Api(acme, "alice")
    one = bob.stated()
    unknown = alice.client.get(f"{alice.facts}/{one['id'] + 1000}")
    theirs = alice.client.get(f"{alice.facts}/{one['id']}")
    assert unknown.status_code == theirs.status_code == 404
    same = str(unknown.json()).replace(str(one["id"] + 1000), "N")
    assert same == str(theirs.json()).replace(str(one["id"]), "N")
    assert alice.patch(one["id"], category="x").status_code == 404
    assert alice.client.get(f"{alice.facts}/{one['id']}/history").status_code == 404
    assert alice.all() == alice.all(q="grey cats") == alice.all(includeRetired=True) == []
    mallory = Api(umbra, "mallory")
    assert mallory.client.get(f"{mallory.facts}/{one['id']}").status_code == 404


def test_viewers_state_their_own_facts_and_read_shared_ones(acme):
    bob, vera = Api(acme), Api(acme, "vera")
    shared = bob.stated("The office opens at eight.", bucket="shared")
    assert shared["scope"] == "TEAM"
    assert vera.state("Vera has a bicycle.").status_code == 201
    assert vera.state("The office opens at nine.", bucket="shared").status_code == 403
    assert vera.patch(shared["id"], category="x", bucket="shared").status_code == 403
    assert vera.patch(shared["id"], category="x").status_code == 422
    assert {row["scope"] for row in vera.all()} == {"PERSONAL", "TEAM"}
    assert [row["id"] for row in vera.all(bucket="shared")] == [shared["id"]]


def test_lists_are_filtered_paged_and_ask_the_same_whatever_they_hold(bob):
    bob.stated("Bob owns item nought.")
    bob.all()
    with CaptureQueriesContext(connection) as for_one:
        bob.all()
    for n in range(11):
        bob.stated(f"Bob owns item {n + 1} of the collection.", category="odd" if n % 2 else "even")
    with CaptureQueriesContext(connection) as for_twelve:
        assert len(bob.all()) == 12
    assert len(for_twelve) == len(for_one)
    assert len(bob.all(category="odd")) == 5
    pages = [bob.client.get(bob.facts, {"pageSize": 5, "page": n}).json() for n in (1, 2, 3)]
    assert [(page["count"], len(page["results"]), bool(page["next"])) for page in pages] == [
        (12, 5, True),
        (12, 5, True),
        (12, 2, False),
    ]
    ids = [row["id"] for page in pages for row in page["results"]]
    assert ids == sorted(set(ids), reverse=True)
    assert bob.client.get(bob.facts, {"page": 9}).status_code == 404


def test_a_list_longer_than_is_counted_goes_on(bob, monkeypatch):
    for n in range(7):
        bob.stated(f"Bob owns item {n} of the collection.")
    for module in ("facts.queries", "facts.api.paging"):
        monkeypatch.setattr(f"{module}.MOST_COUNTED", 3)
    pages = [bob.client.get(bob.facts, {"pageSize": 2, "page": n}).json() for n in (1, 2, 3, 4)]
    assert [page["count"] for page in pages] == [3] * 4
    assert [len(page["results"]) for page in pages] == [2, 2, 2, 1]
    assert [bool(page["next"]) for page in pages] == [True, True, True, False]
    assert bob.client.get(bob.facts, {"pageSize": 2, "page": 5}).status_code == 404


def test_trust_is_shown_decayed(bob):
    one = bob.stated(confidence=0.8)
    assert one["trust"] == pytest.approx(0.8, abs=0.01)
    with tenant(bob.bucket):
        Fact.objects.of(bob.bucket).update(confirmed_at=timezone.now() - timedelta(days=60))
    [shown] = bob.all()
    assert shown["trust"] == pytest.approx(0.4, abs=0.01)


def test_a_moment_that_is_none_is_refused(bob):
    assert bob.client.get(bob.facts, {"asOf": "yesterday"}).status_code == 400
    assert bob.client.get(bob.facts, {"misspelt": "1"}).status_code == 400
