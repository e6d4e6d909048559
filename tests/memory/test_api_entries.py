"""Entries over HTTP, and as files."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory.models import Entry, EntryRevision
from tests.factories import World
from tests.memory.test_extract import override
from workspaces.models import AuditEvent
from workspaces.tenancy import tenant


class Api:
    """One person's calls."""

    def __init__(self, world: World, who: str = "bob") -> None:
        self.client = world.people[who].client()
        self.entries = f"/api/v1/memory/{world.agent_id}/entries"
        self.files = f"/api/v1/agents/{world.agent_id}/workspace/files"

    def put(self, key="coffee", content="Prefers dark roast.", *, kind="user", **more):
        body = {"type": kind, "key": key, "content": content, **more}
        return self.client.post(self.entries, body, format="json")

    def all(self, **query):
        return self.client.get(self.entries, query).json()["results"]

    def file(self, name="structured/user.md", **query):
        return self.client.get(f"{self.files}/{name}", query)

    def write(self, content, name="structured/user.md", **more):
        return self.client.put(f"{self.files}/{name}", {"content": content, **more}, format="json")


@pytest.fixture
def bob(acme) -> Api:
    return Api(acme)


def test_an_entry_is_made_read_changed_and_deleted_with_its_history(bob):
    made = bob.put()
    assert made.status_code == 201, made.json()
    one = made.json()
    assert (one["revision"], one["scope"], one["quarantined"]) == (1, "PERSONAL", False)
    assert bob.put(content="Prefers light roast.").status_code == 200
    url = f"{bob.entries}/{one['id']}"
    patched = bob.client.patch(
        url, {"content": "Tea.", "baseRevision": 2, "reason": "changed"}, format="json"
    )
    assert patched.json()["revision"] == 3
    replaced = bob.client.put(url, {"content": "Water."}, format="json")
    assert replaced.json()["content"] == bob.client.get(url).json()["content"] == "Water."
    assert bob.client.delete(url).status_code == 204
    assert bob.client.get(url).status_code == 404
    assert bob.all() == []
    history = bob.client.get(f"{url}/history").json()["results"]
    assert [(row["op"], row["content"]) for row in history] == [
        ("delete", ""), ("put", "Water."), ("put", "Tea."), ("put", "Prefers light roast."),
        ("put", "Prefers dark roast."),
    ]  # fmt: skip
    assert history[2]["reason"] == "changed"
    again = bob.put()
    assert (again.status_code, again.json()["id"], again.json()["revision"]) == (201, one["id"], 6)


def test_a_stale_base_is_told_with_what_stands_there(bob):
    one = bob.put().json()
    bob.put(content="Tea.")
    url = f"{bob.entries}/{one['id']}"
    for stale in (
        bob.client.patch(url, {"content": "x y z", "baseRevision": 1}, format="json"),
        bob.client.delete(f"{url}?baseRevision=1"),
        bob.put(content="x y z", baseRevision=0),
    ):
        assert stale.status_code == 409, stale.content
        assert (stale.json()["code"], stale.json()["currentRevision"], stale.json()["content"]) == (
            "stale_revision", 2, "Tea.",
        )  # fmt: skip


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"key": "Coffee Kind"}, "bad_key"),
        ({"content": " \n "}, None),
        ({"content": "x" * 8193}, "content_too_long"),
        ({"kind": "other"}, None),
    ],
)
def test_a_bad_entry_is_refused_and_told_what_is_wrong(bob, body, code):
    answer = bob.put(**body)
    assert answer.status_code == 400
    assert code is None or answer.json()["code"] == code
    if code == "bad_key":
        assert "'coffee_kind' would be right" in answer.json()["detail"]
    assert bob.all() == []


def test_keys_are_exact_and_never_parts_of_each_other(bob):
    bob.put("lang", "Speaks Dutch at home.")
    bob.put("language", "Reads French well.")
    lang = next(row for row in bob.all() if row["key"] == "lang")
    bob.client.delete(f"{bob.entries}/{lang['id']}")
    assert [row["key"] for row in bob.all()] == ["language"]


def test_lists_are_filtered_paged_and_ask_the_same_whatever_their_length(bob):
    with CaptureQueriesContext(connection) as for_none:
        bob.all()
    for n in range(12):
        bob.put(f"k{n}", f"Number {n} is here.", kind="project" if n % 2 else "user")
    assert len(bob.all(type="project")) == 6
    page = bob.client.get(bob.entries, {"pageSize": 5, "page": 2}).json()
    assert (page["count"], len(page["results"])) == (12, 5)
    with CaptureQueriesContext(connection) as for_twelve:
        bob.all()
    assert len(for_twelve) <= len(for_none) + 1 <= 17


def test_secrets_are_stored_nowhere(acme, bob):
    key = "sk-ant-api03-" + "Ab1" * 30
    answer = bob.put(content=f"The key is {key} for the model.")
    assert answer.json()["notes"]
    assert key not in json.dumps(answer.json())
    with tenant(acme.personal(acme.bob.owner_key)):
        rows = [*Entry.unscoped.values_list("content"), *EntryRevision.unscoped.values_list("content")]
    assert rows
    assert key not in str(rows)


def test_nobody_sees_or_changes_anothers_entry(acme, umbra, bob):
    own = bob.put().json()
    shared = bob.put("team_rule", "Ship on Fridays only.", kind="feedback", bucket="shared").json()
    vera, mallory = Api(acme, "vera"), Api(umbra, "mallory")
    assert [row["key"] for row in vera.all()] == ["team_rule"]
    assert vera.client.get(f"{vera.entries}/{own['id']}").status_code == 404
    assert vera.client.get(f"{vera.entries}/{own['id']}/history").status_code == 404
    assert vera.client.delete(f"{vera.entries}/{own['id']}").status_code == 404
    elsewhere = vera.client.patch(f"{vera.entries}/{shared['id']}", {"content": "No rule."}, format="json")
    assert elsewhere.status_code == 422
    refused = vera.put(kind="feedback", bucket="shared")
    assert refused.status_code == 403
    assert vera.put("tea", "Likes green tea.").status_code == 201
    assert mallory.client.get(f"{bob.entries}/{own['id']}").status_code == 404
    assert mallory.client.get(f"{mallory.entries}/{own['id']}").status_code == 404


def test_reading_on_behalf_leaves_a_trace(acme, bob):
    bob.put(endUserId="nora")
    bob.all(endUserId="nora")
    with tenant(acme.team):
        assert AuditEvent.objects.of_workspace(acme.workspace.pk).filter(action="entry.read").count() == 1


# --- as files ---------------------------------------------------------------------------------------------


def test_entries_read_as_a_file_and_stand_in_lists_and_search(bob):
    bob.put(source="told in chat")
    bob.put("home", "Lives in Tromsø.\n## not a heading")
    file = bob.file()
    assert file.status_code == 200, file.content
    text = file.json()["content"]
    assert text.startswith("## coffee\n\nPrefers dark roast.\n\n> Source: told in chat | Updated: ")
    assert "\\## not a heading" in text
    assert (file.json()["revision"], file.headers["ETag"]) == (2, '"2"')
    names = [row["name"] for row in bob.client.get(bob.files).json()["results"]]
    assert names[-1] == "structured/user.md"
    paged = bob.client.get(bob.files, {"pageSize": 1, "page": len(names)}).json()
    assert [row["name"] for row in paged["results"]] == ["structured/user.md"]
    found = bob.client.get(f"{bob.files.removesuffix('/files')}/memory/search", {"query": "roast"}).json()
    assert [row["name"] for row in found["results"]] == ["structured/user.md"]


def test_writing_the_file_makes_changes_and_deletes_entries(bob):
    bob.put("stays", "This one stays.")
    bob.put("goes", "This one goes.")
    bob.put("changes", "Old words here.")
    before = {row["key"]: row for row in bob.all()}
    text = bob.file().json()["content"].replace("Old words here.", "New words here.")
    start, end = text.index("## goes"), text.index("## changes")
    answer = bob.write(text[:start] + text[end:] + "\r\n## fresh\r\nBrand new.\r\n", baseRevision=3)
    assert answer.status_code == 200, answer.json()
    assert answer.json()["warnings"] == []
    after = {row["key"]: row for row in bob.all()}
    assert {key: row["content"] for key, row in after.items()} == {
        "stays": "This one stays.", "changes": "New words here.", "fresh": "Brand new.",
    }  # fmt: skip
    assert after["stays"] == before["stays"]
    assert answer.json()["revision"] == 6 == bob.file().json()["revision"]


def test_a_file_that_cannot_be_read_in_part_deletes_nothing_and_says_which_lines(bob):
    bob.put("kept", "This one was here.")
    answer = bob.write("lead\n## Bad Key\nx\n## good\nRight words.\n## good\ntwice\n## empty\n").json()
    assert sorted(row["key"] for row in bob.all()) == ["good", "kept"]
    assert [told.split(":")[0] for told in answer["warnings"][:4]] == ["Line 1", "Line 2", "Line 6", "Line 8"]
    assert "these stay: kept" in answer["warnings"][4]


def test_a_stale_file_is_refused_with_the_diff_since(bob):
    bob.put("a", "First words here.")
    bob.put("a", "Second words here.")
    stale = bob.write("## a\nThird.", baseRevision=1)
    assert (stale.status_code, stale.json()["currentRevision"]) == (409, 2)
    assert "-First words here." in stale.json()["diff"]
    assert "+Second words here." in stale.json()["diff"]
    assert bob.client.put(
        f"{bob.files}/structured/user.md", {"content": "## a\nThird."}, format="json", HTTP_IF_MATCH='"2"'
    ).json()["revision"] == 3  # fmt: skip


def test_the_file_can_be_deleted_and_has_no_revisions_of_its_own(bob):
    bob.put()
    assert bob.client.get(f"{bob.files}/structured/user.md/revisions").status_code == 422
    assert bob.client.delete(f"{bob.files}/structured/user.md").status_code == 204
    assert bob.all() == []
    assert bob.file().status_code == 404
    assert bob.client.delete(f"{bob.files}/structured/user.md").status_code == 404


def test_a_personal_file_is_read_before_the_shared_one(acme, bob):
    bob.put("rule", "The shared rule is here.", bucket="shared")
    assert "shared rule" in bob.file().json()["content"]
    assert bob.file().json()["baseRevision"] == 0
    bob.put("rule", "My own rule is here.")
    assert "own rule" in bob.file().json()["content"]
    assert "shared rule" in bob.file(bucket="shared").json()["content"]
    assert "own rule" not in Api(acme, "vera").file().json()["content"]


# --- the always-on block ----------------------------------------------------------------------------------


def context_of(world: World, who="bob") -> str:
    url = f"/api/v1/memory/{world.agent_id}/context"
    return world.people[who].client().post(url, {"query": "hello"}, format="json").json()["alwaysOn"]


def test_the_block_holds_own_and_shared_entries_and_changes_only_with_them(acme, bob):
    assert context_of(acme) == ""
    bob.put()
    bob.put("tone", "Be brief, please.", kind="feedback", bucket="shared")
    bob.put("launch", "Launch in May.", kind="project")
    block = context_of(acme)
    assert block == context_of(acme)
    assert "dark roast" in block
    assert "Be brief" in block
    assert "Launch" not in block
    assert "dark roast" not in context_of(acme, "vera")
    assert "Be brief" in context_of(acme, "vera")
    bob.put("tone", "Answer at length.", kind="feedback")
    assert "Be brief" not in context_of(acme)


def test_the_block_keeps_its_settings(acme, bob):
    for n in range(5):
        bob.put(f"k{n}", f"Number {n} is here.")
    override(acme, "system-block-max-entries-per-type", 2)
    assert "(3 older entries are not shown" in context_of(acme)
    override(acme, "system-block-max-entries-per-type", 0)
    override(acme, "system-block-max-chars", 0)
    assert context_of(acme).count("- **k") == 5
    assert len(bob.all()) == 5
