"""One vote a person, on whatever was recalled; trust and ranking follow."""

from __future__ import annotations

import pytest

from facts.models import Feedback
from recall.models import Record
from tests.facts.test_api_facts import Api
from workspaces.tenancy import tenant


@pytest.fixture
def bob(acme) -> Api:
    return Api(acme)


def judge(api: Api, recall_id: str, helpful, **more):
    return api.client.post(
        f"{api.base}/feedback", {"recallId": recall_id, "helpful": helpful, **more}, format="json"
    )


def say(api: Api, *texts: str) -> None:
    messages = [{"role": "user", "content": text} for text in texts]
    body = {"conversationId": "talk", "messages": messages}
    assert api.client.post(f"{api.base}/turns", body, format="json").status_code == 201


def test_a_vote_moves_trust_is_changed_and_withdrawn_as_easily(bob):
    one = bob.stated(confidence=0.5)
    url = f"{bob.facts}/{one['id']}/feedback"
    trusts = []
    for helpful in (True, True, False, None):
        answer = bob.client.post(url, {"helpful": helpful}, format="json").json()
        trusts.append(round(answer["trust"], 2))
    assert trusts == [0.6, 0.6, 0.3, 0.5]
    assert bob.all()[0]["feedback"] == {"helpful": 0, "unhelpful": 0}
    with tenant(bob.bucket):
        assert not Feedback.objects.of(bob.bucket).exists()


def test_each_person_has_one_vote_on_what_is_shared(acme):
    bob, alice, vera = Api(acme), Api(acme, "alice"), Api(acme, "vera")
    one = bob.stated("The lift is out of order.", bucket="shared", confidence=0.5)
    for api in (bob, bob, alice):
        assert judge(api, f"fact:{one['id']}", helpful=False).status_code == 200
    assert judge(vera, f"fact:{one['id']}", helpful=True).status_code == 403
    [shown] = bob.all(bucket="shared")
    assert shown["feedback"] == {"helpful": 0, "unhelpful": 2}
    assert shown["trust"] == pytest.approx(0.1, abs=0.01)


def test_votes_change_what_is_found_first(bob):
    say(bob, "My train leaves from platform four.", "The train is blue like platform nine.")
    first, second = bob.search("Which platform does the train leave from?")[:2]
    assert first["trust"] is None
    assert judge(bob, first["id"], helpful=False).json()["trust"] == pytest.approx(0.3)
    for item, sign in ((first, -1), (second, 0)):
        found = bob.search("Which platform does the train leave from?", explain=True)
        why = next(row["why"] for row in found if row["id"] == item["id"])
        assert why.get("trust", 0) * sign >= 0
        assert bool(why.get("trust")) == bool(sign)
    judge(bob, first["id"], helpful=None)
    found = bob.search("Which platform does the train leave from?", explain=True)
    assert "trust" not in found[0]["why"]
    assert found[0]["id"] == first["id"]


def test_a_vote_on_a_line_of_a_file_stays_with_its_words(bob):
    files = f"/api/v1/agents/{bob.world.agent_id}/workspace/files"
    bob.client.put(
        f"{files}/notes.md", {"content": "# Keys\n\n- The spare key hangs by the stove.\n"}, format="json"
    )
    line = bob.search("Where is the spare key by the stove?", kinds=["file"])[0]
    assert judge(bob, line["id"], helpful=True).status_code == 200
    content = "# Keys\n\n- The shed has its own key.\n- The spare key hangs by the stove.\n"
    bob.client.put(f"{files}/notes.md", {"content": content}, format="json")
    trusted = Record.objects.filter(bucket_id=bob.bucket.id, kind="file", trust__isnull=False)
    assert [record.part for record in trusted] == [4]


@pytest.mark.parametrize(
    "recall_id",
    [
        "fact:999999",
        "message:999999",
        "file:1",
        "file:1:99999999999",
        "fact:1:2",
        "plugin/x",
        "message:-1",
        "fact:٣",
        "",
    ],
)
def test_what_is_not_there_cannot_be_judged(bob, recall_id):
    assert judge(bob, recall_id, helpful=True).status_code == (404 if recall_id else 400)


@pytest.mark.parametrize("helpful", ["yes", 1, "true"])
def test_a_vote_is_true_false_or_null(bob, helpful):
    one = bob.stated()
    assert judge(bob, f"fact:{one['id']}", helpful=helpful).status_code == 400


def test_others_items_cannot_be_judged(acme, umbra):
    bob = Api(acme)
    say(bob, "My locker is number thirty.")
    one = bob.stated()
    [found] = bob.search("Which locker?", kinds=["message"])
    for other in (Api(acme, "alice"), Api(umbra, "mallory")):
        for recall_id in (f"fact:{one['id']}", found["id"]):
            answer = judge(other, recall_id, helpful=False)
            assert (answer.status_code, answer.json()["code"]) == (404, "item_not_found")
    assert bob.all()[0]["feedback"] == {"helpful": 0, "unhelpful": 0}


def test_votes_outlive_a_new_index(bob):
    from memory.services.reindex import reindex_bucket

    say(bob, "My locker is number thirty.")
    [found] = bob.search("Which locker?", kinds=["message"])
    judge(bob, found["id"], helpful=True)
    reindex_bucket(bob.bucket.id)
    [record] = Record.objects.filter(bucket_id=bob.bucket.id, kind="message")
    assert record.trust == pytest.approx(0.6)
