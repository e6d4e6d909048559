"""Memory files over HTTP: who may, what is refused, and how it is told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext
from django.urls import include, path
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from rest_framework.test import APIClient

import config.api  # noqa: F401 - describes the token
from tests import factories
from tests.factories import World, client_of
from workspaces.models import GLOBAL_BUCKET_ID, GLOBAL_WORKSPACE_ID, File, Owner, SettingOverride
from workspaces.services.files import Author, append_to_file, write_file
from workspaces.services.tokens import issue_token
from workspaces.tenancy import Door, door, tenant, workspace
from workspaces.types import AuthorKind, BucketRef, Scope

MACHINE = Author(AuthorKind.MACHINE, "job:extract")
BAD_NAMES = [
    "../secret.md",
    "memory/../../x.md",
    "%2Fetc%2Fpasswd.md",
    "/etc/passwd.md",
    "a%5Cb.md",
    "UPPER.MD",
    "x.txt",
    "",
    "nul%00.md",
    "line%0Afeed.md",
    "PLAN.md/",
    "PLAN.md/revisions/first",
    "x" * 254 + ".md",
]


def at(world: World, rest: str) -> str:
    return f"/api/v1/agents/{world.agent_id}/workspace/{rest}"


def put(client: APIClient, world: World, name: str, content: str, **more: object):
    return client.put(at(world, f"files/{name}"), {"content": content, **more})


def session_of(person: factories.Person) -> APIClient:
    client = APIClient()
    client.force_login(person.user)
    return client


# --- whose file -------------------------------------------------------------------------------------------


def test_a_viewer_writes_and_reads_their_own_memory(acme: World):
    vera = acme.vera.client()
    made = put(vera, acme, "notes/PLAN.md", "计划\n", reason="Tried it.")
    assert made.status_code == 201, made.data
    assert made.data == {
        "name": "notes/PLAN.md",
        "scope": "PERSONAL",
        "revision": 1,
        "size": 7,
        "created": True,
        "changed": True,
        "warnings": [],
    }
    assert made["ETag"] == '"1"'
    read = vera.get(at(acme, "files/notes/PLAN.md"))
    assert read.status_code == 200
    assert read["ETag"] == '"1"'
    assert {
        key: read.data[key] for key in ("name", "scope", "content", "revision", "baseRevision", "enabled")
    } == {
        "name": "notes/PLAN.md",
        "scope": "PERSONAL",
        "content": "计划\n",
        "revision": 1,
        "baseRevision": 1,
        "enabled": False,
    }
    history = vera.get(at(acme, "files/notes/PLAN.md/revisions"))
    assert [(one["number"], one["authorKind"], one["reason"]) for one in history.data["results"]] == [
        (1, "program", "Tried it.")
    ]


def test_another_s_file_looks_like_no_file(acme: World, umbra: World):
    put(acme.vera.client(), acme, "SECRET.md", "Vera's own.\n")
    for rest in ("", "/revisions", "/revisions/1", "/diff"):
        address = at(acme, f"files/SECRET.md{rest}")
        theirs = acme.olivia.client().get(address)
        nobody_s = acme.olivia.client().get(address.replace("SECRET", "NOTHIN"))
        assert theirs.status_code == nobody_s.status_code == 404
        assert theirs.json() == {
            **nobody_s.json(),
            "detail": nobody_s.json()["detail"].replace("NOTHIN", "SECRET"),
        }
    assert acme.olivia.client().delete(at(acme, "files/SECRET.md")).status_code == 404
    assert acme.olivia.client().post(at(acme, "files/SECRET.md/restore"), {"revision": 1}).status_code == 404
    for name in ("AGENTS.md", "SECRET.md"):
        foreign = umbra.mallory.client().get(at(acme, f"files/{name}"))
        unknown = umbra.mallory.client().get(f"/api/v1/agents/99999999/workspace/files/{name}")
        assert foreign.status_code == 404
        assert foreign.json() == {
            **unknown.json(),
            "detail": f"There is no agent {acme.agent_id} in this workspace.",
        }


def test_lists_and_search_hold_nothing_of_another_owner(acme: World):
    put(acme.vera.client(), acme, "SECRET.md", "The zeppelin is hers.\n")
    bob = acme.bob.client()
    listed = bob.get(at(acme, "files"))
    assert listed.data["count"] == 4
    assert [row["name"] for row in listed.data["results"]] == [
        "AGENTS.md",
        "SOUL.md",
        "PROFILE.md",
        "MEMORY.md",
    ]
    found = bob.post(at(acme, "memory/search"), {"query": "zeppelin"})
    assert (found.data["results"], found.data["filesTotal"]) == ([], 4)


def test_a_read_falls_back_to_the_shared_file_and_a_write_never_copies_it(acme: World):
    vera = acme.vera.client()
    shared = vera.get(at(acme, "files/MEMORY.md"))
    assert (shared.data["scope"], shared.data["revision"], shared.data["baseRevision"]) == ("TEAM", 1, 0)
    assert shared["ETag"] == '"0"'
    made = vera.put(at(acme, "files/MEMORY.md"), {"content": "Mine.\n"}, headers={"If-Match": shared["ETag"]})
    assert (made.status_code, made.data["scope"]) == (201, "PERSONAL")
    assert vera.get(at(acme, "files/MEMORY.md")).data["content"] == "Mine.\n"
    assert vera.get(at(acme, "files/MEMORY.md?bucket=shared")).data["content"] == shared.data["content"]
    assert acme.bob.client().get(at(acme, "files/MEMORY.md")).data["content"] == shared.data["content"]
    # What the reader of the shared file had seen is no licence to overwrite the own one made meanwhile.
    late = vera.put(at(acme, "files/MEMORY.md"), {"content": "Late.\n"}, headers={"If-Match": shared["ETag"]})
    assert late.status_code == 409


def test_a_file_for_all_is_read_by_everyone_and_written_by_nobody_here(acme: World, umbra: World):
    everyone = BucketRef(id=GLOBAL_BUCKET_ID, workspace_id=GLOBAL_WORKSPACE_ID, scope=Scope.GLOBAL)
    with door(Door.OPERATOR):
        write_file(everyone, "RULES.md", "Be kind.\n", author=Author(AuthorKind.PERSON, "user:0"))
    for world, person in ((acme, "vera"), (umbra, "mallory")):
        client = world.people[person].client()
        read = client.get(at(world, "files/RULES.md"))
        assert (read.data["scope"], read.data["content"], read.data["baseRevision"]) == (
            "GLOBAL",
            "Be kind.\n",
            0,
        )
        assert client.get(at(world, "files/RULES.md?bucket=shared")).status_code == 404
        assert client.delete(at(world, "files/RULES.md")).status_code == 404
        assert put(client, world, "RULES.md", "Mine.\n").data["scope"] == "PERSONAL"
    with door(Door.OPERATOR):
        assert File.unscoped.get(bucket_id=GLOBAL_BUCKET_ID, name="RULES.md").content == "Be kind.\n"


@pytest.mark.parametrize(("person", "status"), [("vera", 403), ("bob", 201), ("alice", 201), ("olivia", 201)])
def test_shared_memory_is_written_by_members(acme: World, person: str, status: int):
    client = acme.people[person].client()
    assert put(client, acme, "TEAM.md", "We.\n", bucket="shared").status_code == status
    merge = {"filename": "LOG.md", "content": "x", "strategy": "append"}
    assert client.post(at(acme, "memory/write"), merge).status_code == status
    arranged = client.put(at(acme, "prompt-files"), {"files": [{"name": "SOUL.md", "enabled": False}]})
    assert arranged.status_code == (403 if status == 403 else 200)
    assert client.delete(at(acme, "files/PROFILE.md?bucket=shared")).status_code == (
        403 if status == 403 else 204
    )
    restore = client.post(at(acme, "files/AGENTS.md/restore"), {"revision": 1, "bucket": "shared"})
    assert restore.status_code == (403 if status == 403 else 200)


def switch_isolation_off(world: World) -> None:
    with workspace(world.workspace.pk):
        SettingOverride.objects.create(
            workspace_id=world.workspace.pk,
            key="mate.memory.lifecycle-mediator-enabled",
            value=False,
            updated_at=world.workspace.created_at,
        )


@pytest.mark.parametrize(("person", "status"), [("vera", 403), ("bob", 201)])
def test_with_isolation_off_a_write_is_shared_and_needs_a_member(acme: World, person: str, status: int):
    client = acme.people[person].client()
    put(client, acme, "OWN.md", "From before.\n")
    switch_isolation_off(acme)
    written = put(client, acme, "NEW.md", "x")
    assert written.status_code == status
    assert client.post(at(acme, "files/AGENTS.md/restore"), {"revision": 1}).status_code == (
        403 if status == 403 else 200
    )
    if status == 201:
        assert written.data["scope"] == "TEAM"
    assert client.get(at(acme, "files/OWN.md")).data["scope"] == "PERSONAL"


def test_with_isolation_off_a_delete_of_ones_own_file_leaves_the_shared_one(acme: World):
    client = acme.bob.client()
    put(client, acme, "NOTES.md", "# Shared\n", bucket="shared")
    put(client, acme, "NOTES.md", "# Mine\n")
    switch_isolation_off(acme)
    own = at(acme, "files/NOTES.md?bucket=personal")
    assert client.get(own).json()["content"] == "# Mine\n"
    assert client.delete(own).status_code == 204
    assert client.get(own).status_code == 404
    assert client.get(at(acme, "files/NOTES.md?bucket=shared")).json()["content"] == "# Shared\n"


def test_with_isolation_off_a_viewer_still_corrects_what_is_their_own(acme: World):
    """Also from the base that they were shown, and back again."""
    client = acme.vera.client()
    for text in ("# Mine\n", "# Mine, wrong\n"):
        put(client, acme, "NOTES.md", text)
    put(acme.bob.client(), acme, "NOTES.md", "# Shared\n", bucket="shared")
    switch_isolation_off(acme)
    base = client.get(at(acme, "files/NOTES.md?bucket=personal")).json()["baseRevision"]
    written = put(client, acme, "NOTES.md", "# Right\n", bucket="personal", baseRevision=base)
    assert (base, written.status_code, written.json()["scope"]) == (2, 200, "PERSONAL")
    restore = {"revision": 1, "bucket": "personal"}
    assert client.post(at(acme, "files/NOTES.md/restore"), restore).json()["content"] == "# Mine\n"
    assert client.get(at(acme, "files/NOTES.md?bucket=shared")).json()["content"] == "# Shared\n"


def test_with_isolation_off_one_s_own_memory_begins_when_it_is_named(acme: World):
    client = acme.vera.client()
    switch_isolation_off(acme)
    own = at(acme, "files/MEMORY.md?bucket=personal")
    assert client.delete(own).status_code == 404
    assert client.get(own).status_code == 404
    made = put(client, acme, "MEMORY.md", "# Mine\n", bucket="personal")
    assert (made.status_code, made.json()["scope"], made.json()["revision"]) == (201, "PERSONAL", 1)


def test_an_end_user_s_memory_needs_the_grant_and_is_its_own(acme: World):
    alice = acme.alice.client()
    assert put(alice, acme, "P.md", "Zoe.\n", endUserId="zoe").status_code == 201
    assert alice.get(at(acme, "files/P.md?endUserId=zoe")).data["content"] == "Zoe.\n"
    assert alice.get(at(acme, "files/P.md?endUserId=yan")).status_code == 404
    assert alice.get(at(acme, "files/P.md")).status_code == 404
    with workspace(acme.workspace.pk):
        _, secret = issue_token(
            acme.workspace.pk, user_id=acme.bob.user.pk, name="few", grants=["read", "write"], actor="system"
        )
    few = client_of(secret)
    assert few.get(at(acme, "files/P.md?endUserId=zoe")).status_code == 403
    assert put(few, acme, "P.md", "x", endUserId="zoe").status_code == 403


def test_a_read_makes_no_person(acme: World):
    alice = acme.alice.client()
    assert alice.get(at(acme, "files?endUserId=ghost")).data["count"] == 4
    gone = alice.delete(at(acme, "files/P.md?endUserId=ghost"))
    assert (gone.status_code, gone.json()["code"]) == (404, "file_not_found")
    with door(Door.OPERATOR):
        assert not Owner.unscoped.filter(key="api:ghost").exists()


def test_a_token_needs_the_grant_to_read_or_write(acme: World):
    with workspace(acme.workspace.pk):
        _, reads = issue_token(
            acme.workspace.pk, user_id=acme.bob.user.pk, name="r", grants=["read"], actor="system"
        )
        _, writes = issue_token(
            acme.workspace.pk, user_id=acme.bob.user.pk, name="w", grants=["write"], actor="system"
        )
    assert client_of(reads).get(at(acme, "files")).status_code == 200
    assert put(client_of(reads), acme, "P.md", "x").status_code == 403
    assert put(client_of(writes), acme, "P.md", "x").status_code == 201
    assert client_of(writes).get(at(acme, "files/P.md")).status_code == 403
    assert client_of(None).get(at(acme, "files")).status_code == 401


# --- conflicts and history --------------------------------------------------------------------------------


def test_a_stale_write_is_told_the_current_revision_and_the_diff(acme: World):
    bob = acme.bob.client()
    put(bob, acme, "PLAN.md", "one\ntwo\n")
    put(bob, acme, "PLAN.md", "one\nthree\n", baseRevision=1)
    for stale in (
        put(bob, acme, "PLAN.md", "x", baseRevision=1),
        bob.put(at(acme, "files/PLAN.md"), {"content": "x"}, headers={"If-Match": '"1"'}),
        bob.delete(at(acme, "files/PLAN.md?baseRevision=1")),
        bob.delete(at(acme, "files/PLAN.md"), headers={"If-Match": 'W/"1"'}),
        bob.post(at(acme, "files/PLAN.md/restore"), {"revision": 1, "baseRevision": 1}),
    ):
        assert stale.status_code == 409
        assert stale["Content-Type"] == "application/problem+json"
        problem = stale.json()
        assert (problem["code"], problem["currentRevision"]) == ("stale_revision", 2)
        assert "-two\n+three\n" in problem["diff"]
    assert bob.get(at(acme, "files/PLAN.md")).data["content"] == "one\nthree\n"


@pytest.mark.parametrize("header", ["1", "*", '"1", "2"', '"x"', '"99999999999"', '"2"'])
def test_an_if_match_that_is_no_revision_or_contradicts_the_body_is_refused(acme: World, header: str):
    sent = {"content": "x", "baseRevision": 1}
    answer = acme.bob.client().put(at(acme, "files/PLAN.md"), sent, headers={"If-Match": header})
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_if_match")


def test_history_diff_and_restore(acme: World):
    bob = acme.bob.client()
    put(bob, acme, "PLAN.md", "one\n")
    put(bob, acme, "PLAN.md", "two\n")
    assert bob.delete(at(acme, "files/PLAN.md")).status_code == 204
    assert bob.get(at(acme, "files/PLAN.md")).status_code == 404
    history = bob.get(at(acme, "files/PLAN.md/revisions?pageSize=2")).data
    assert history["count"] == 3
    assert [one["kind"] for one in history["results"]] == ["delete", "full"]
    assert bob.get(at(acme, "files/PLAN.md/revisions/1")).data["content"] == "one\n"
    diff = bob.get(at(acme, "files/PLAN.md/diff?from=1&to=2")).data
    assert (diff["from"], diff["to"]) == (1, 2)
    assert "-one\n+two\n" in diff["diff"]
    assert bob.get(at(acme, "files/PLAN.md/diff")).data["from"] == 2
    assert "+one\n" in bob.get(at(acme, "files/PLAN.md/diff?from=0&to=1")).data["diff"]
    restored = bob.post(at(acme, "files/PLAN.md/restore"), {"revision": 1})
    assert (restored.status_code, restored.data["revision"], restored.data["content"]) == (201, 4, "one\n")
    assert bob.get(at(acme, "files/PLAN.md")).data["content"] == "one\n"


def test_a_revision_that_was_built_of_appends_is_read_and_restored_whole(acme: World):
    own = acme.personal(acme.bob.owner_key)
    with tenant(own):
        append_to_file(own, "memory/2026-01-31.md", "- Tea.", author=MACHINE, title="# Day")
        append_to_file(own, "memory/2026-01-31.md", "- Coffee.", author=MACHINE)
    bob = acme.bob.client()
    put(bob, acme, "memory/2026-01-31.md", "gone\n")
    address = at(acme, "files/memory/2026-01-31.md")
    assert bob.get(f"{address}/revisions/2").data["content"] == "# Day\n\n- Tea.\n\n- Coffee.\n"
    bob.post(f"{address}/restore", {"revision": 2})
    assert bob.get(address).data["content"] == "# Day\n\n- Tea.\n\n- Coffee.\n"


@pytest.mark.parametrize(
    "rest", ["revisions/9", "revisions/99999999999999999999", "diff?from=9", "diff?to=9"]
)
def test_a_revision_that_never_was_is_not_found(acme: World, rest: str):
    put(acme.bob.client(), acme, "PLAN.md", "one\n")
    answer = acme.bob.client().get(at(acme, f"files/PLAN.md/{rest}"))
    assert (answer.status_code, answer.json()["code"]) == (404, "revision_not_found")


def test_what_a_person_saved_in_a_session_outlives_the_machine(acme: World):
    saved = put(session_of(acme.vera), acme, "MEMORY.md", "# M\n\n## Rules\n- Not before noon.\n")
    assert saved.status_code == 201
    own = acme.personal(acme.vera.owner_key)
    with tenant(own):
        write_file(own, "MEMORY.md", "# M\n\n## Rules\n- Whenever.\n\n## New\n- Seen.\n", author=MACHINE)
    content = acme.vera.client().get(at(acme, "files/MEMORY.md")).data["content"]
    assert "- Not before noon." in content
    assert "Whenever" not in content
    assert "- Seen." in content


def test_a_person_above_the_ceiling_is_warned(acme: World):
    answer = put(acme.bob.client(), acme, "PROFILE.md", "x" * 4001)
    assert answer.data["size"] == 4001
    assert "4000" in answer.data["warnings"][0]
    assert put(acme.bob.client(), acme, "OTHER.md", "x" * 4001).data["warnings"] == []


def test_two_clients_that_save_one_file_at_once(committed: None):
    world = factories.acme()
    put(world.bob.client(), world, "PLAN.md", "start\n")
    start = Barrier(2)

    def save(content: str) -> int:
        try:
            client = world.bob.client()
            start.wait(timeout=10)
            return int(put(client, world, "PLAN.md", content, baseRevision=1).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(save, ["left\n", "right\n"])) == [200, 409]
    assert world.bob.client().get(at(world, "files/PLAN.md")).data["revision"] == 2


# --- bad input --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BAD_NAMES)
def test_a_bad_name_is_told_as_such(acme: World, name: str):
    bob, address = acme.bob.client(), at(acme, f"files/{name}")
    for answer in (bob.get(address), bob.put(address, {"content": "x"}), bob.delete(address)):
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_file_name")
    written = bob.post(
        at(acme, "memory/write"), {"filename": "../x.md", "content": "x", "strategy": "append"}
    )
    assert written.json()["code"] == "bad_file_name"


@pytest.mark.parametrize("agent", ["0", "-1", "x", "1.5", "99999999999999999999", "１"])
def test_an_agent_that_is_no_number_is_not_found(acme: World, agent: str):
    answer = acme.bob.client().get(f"/api/v1/agents/{agent}/workspace/files")
    assert (answer.status_code, answer.json()["code"]) == (404, "agent_not_found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "content"),
        ({"content": 7}, "content"),
        ({"content": None}, "content"),
        ({"content": ["x"]}, "content"),
        ({"content": "nul \0"}, "content"),
        ({"content": "x", "contents": "y"}, "contents"),
        ({"content": "x", "baseRevision": "new"}, "baseRevision"),
        ({"content": "x", "baseRevision": -1}, "baseRevision"),
        ({"content": "x", "baseRevision": True}, "baseRevision"),
        ({"content": "x", "bucket": "global"}, "bucket"),
        ({"content": "x", "endUserId": 7}, "endUserId"),
        ({"content": "x", "endUserId": ""}, "endUserId"),
        ({"content": "x", "endUserId": "x" * 129}, "endUserId"),
        ({"content": "x", "reason": "r" * 301}, "reason"),
    ],
)
def test_a_wrong_body_is_refused_by_field(acme: World, body: dict, field: str):
    answer = acme.alice.client().put(at(acme, "files/PLAN.md"), body)
    assert answer.status_code == 400
    assert [one["field"] for one in answer.json()["errors"]] == [field]


def test_half_a_surrogate_pair_is_refused(acme: World):
    answer = acme.bob.client().put(
        at(acme, "files/PLAN.md"), '{"content": "\\ud83d"}', content_type="application/json"
    )
    assert answer.status_code == 400


def test_a_mebibyte_is_the_most_a_file_holds(acme: World):
    bob = acme.bob.client()
    assert put(bob, acme, "BIG.md", "x" * 1024 * 1024).status_code == 201
    answer = put(bob, acme, "BIG.md", "x" * (1024 * 1024 + 1))
    assert (answer.status_code, answer.json()["code"]) == (413, "file_too_large")


def test_an_unknown_query_parameter_is_refused(acme: World):
    assert acme.bob.client().get(at(acme, "files?prefx=memory/")).status_code == 400


# --- lists ------------------------------------------------------------------------------------------------


def test_a_list_is_filtered_paged_and_in_prompt_order(acme: World):
    bob = acme.bob.client()
    for day in (1, 2, 3):
        put(bob, acme, f"memory/2026-01-0{day}.md", "x")
    put(bob, acme, "PROFILE.md", "Bob.")
    rows = bob.get(at(acme, "files?prefix=memory/&pageSize=2")).data
    assert (rows["count"], [row["name"] for row in rows["results"]]) == (
        3,
        ["memory/2026-01-01.md", "memory/2026-01-02.md"],
    )
    assert "content" not in rows["results"][0]
    own = bob.get(at(acme, "files?bucket=personal")).data["results"]
    assert {row["scope"] for row in own} == {"PERSONAL"}
    shared = bob.get(at(acme, "files?bucket=shared")).data["results"]
    assert {row["scope"] for row in shared} == {"TEAM"}
    assert bob.get(at(acme, "files")).data["count"] == len(own) + len(shared)


def test_a_list_costs_the_same_with_many_files(acme: World, django_assert_num_queries):
    bob = acme.bob.client()
    put(bob, acme, "A.md", "x")
    bob.get(at(acme, "files"))
    with CaptureQueriesContext(connection) as queries:
        bob.get(at(acme, "files"))
    few = len(queries)
    own = acme.personal(acme.bob.owner_key)
    with tenant(own):
        for number in range(40):
            write_file(own, f"notes/{number}.md", "x" * 1000, author=MACHINE)
    with django_assert_num_queries(few) as many:
        assert len(bob.get(at(acme, "files")).data["results"]) == 45
    selects = [one["sql"] for one in many.captured_queries if '"workspaces_file"' in one["sql"]]
    assert len(selects) == 2
    assert not any('"workspaces_file"."content"' in sql for sql in selects)


def test_history_costs_the_same_with_many_revisions(acme: World, django_assert_num_queries):
    bob = acme.bob.client()
    put(bob, acme, "A.md", "0")
    with CaptureQueriesContext(connection) as queries:
        bob.get(at(acme, "files/A.md/revisions"))
    few = len(queries)
    for number in range(1, 10):
        put(bob, acme, "A.md", str(number))
    with django_assert_num_queries(few) as many:
        assert bob.get(at(acme, "files/A.md/revisions")).data["count"] == 10
    assert not any('"workspaces_revision"."content"' in one["sql"] for one in many.captured_queries)


# --- the prompt -------------------------------------------------------------------------------------------


def test_prompt_files_show_order_switches_and_cost(acme: World):
    bob = acme.bob.client()
    put(bob, acme, "TEAM.md", "x" * 400, bucket="shared")
    put(bob, acme, "memory/2026-01-01.md", "x", bucket="shared")
    before = bob.get(at(acme, "prompt-files")).data
    assert [(one["name"], one["enabled"]) for one in before["files"]] == [
        ("AGENTS.md", True),
        ("SOUL.md", True),
        ("PROFILE.md", True),
        ("MEMORY.md", True),
        ("TEAM.md", False),
    ]
    order = [{"name": "TEAM.md", "enabled": True}, {"name": "SOUL.md", "enabled": False}]
    after = bob.put(at(acme, "prompt-files"), {"files": order})
    assert after.status_code == 200
    assert [one["name"] for one in after.data["files"]] == [
        "TEAM.md",
        "AGENTS.md",
        "PROFILE.md",
        "MEMORY.md",
        "SOUL.md",
    ]
    team = after.data["files"][0]
    assert (team["size"], team["tokens"]) == (400, 104)
    assert after.data["tokens"] == pytest.approx(sum(one["tokens"] for one in after.data["files"]), abs=4)
    assert bob.get(at(acme, "prompt-files")).data == after.data


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"files": []}, 400),
        ({"files": [{"name": "SOUL.md"}]}, 400),
        ({"files": [{"name": "SOUL.md", "enabled": "yes"}]}, 400),
        ({"files": ["SOUL.md"]}, 400),
        ({"files": [{"name": "../SOUL.md", "enabled": True}]}, 400),
        ({"files": [{"name": "SOUL.md", "enabled": True}] * 2}, 400),
        ({"files": [{"name": "NONE.md", "enabled": True}]}, 404),
    ],
)
def test_a_wrong_order_changes_nothing(acme: World, body: dict, status: int):
    bob = acme.bob.client()
    before = bob.get(at(acme, "prompt-files")).data
    assert bob.put(at(acme, "prompt-files"), body).status_code == status
    assert bob.get(at(acme, "prompt-files")).data == before


# --- search -----------------------------------------------------------------------------------------------


def test_search_finds_lines_in_both_languages_own_before_shared(acme: World):
    bob = acme.bob.client()
    put(bob, acme, "NOTES.md", "# 笔记\n\n他喜欢喝乌龙茶。\n")
    put(bob, acme, "NOTES.md", "# Team\n\n他喜欢喝乌龙茶。\n", bucket="shared")
    put(bob, acme, "memory/2026-01-01.md", "We met in Ghent.\n")
    found = bob.post(at(acme, "memory/search"), {"query": "烏龍茶", "limit": 5}).data
    assert [(one["name"], one["scope"], one["line"]) for one in found["results"]] == [
        ("NOTES.md", "PERSONAL", 3),
        ("NOTES.md", "TEAM", 3),
    ]
    assert "[[乌龙茶]]" in found["results"][0]["snippet"]
    by_query = bob.get(at(acme, "memory/search?query=ghent&limit=1")).data
    assert [one["name"] for one in by_query["results"]] == ["memory/2026-01-01.md"]
    assert by_query["filesSearched"] == by_query["filesTotal"] == 7


def test_search_reads_fifty_files_at_most_and_the_best_of_them(acme: World):
    own = acme.personal(acme.bob.owner_key)
    with tenant(own):
        write_file(own, "notes/old.md", "The zeppelins and the harbour.\n", author=MACHINE)
        for number in range(70):
            write_file(own, f"notes/{number}.md", "The harbour.\n", author=MACHINE)
        File.objects.of(own).filter(name="notes/old.md").update(updated_at=acme.workspace.created_at)
    bob = acme.bob.client()
    with CaptureQueriesContext(connection) as queries:
        found = bob.post(at(acme, "memory/search"), {"query": "zeppelin harbour"}).data
    assert found["results"][0]["name"] == "notes/old.md"
    assert (found["filesSearched"], found["filesTotal"]) == (50, 75)
    assert sum('"workspaces_file"' in one["sql"] for one in queries) == 3


@pytest.mark.parametrize(
    "body", [{}, {"query": ""}, {"query": "  "}, {"query": "x" * 513}, {"query": "x", "limit": 0}]
)
def test_a_wrong_query_is_refused(acme: World, body: dict):
    assert acme.bob.client().post(at(acme, "memory/search"), body).status_code == 400


# --- write_memory -----------------------------------------------------------------------------------------


def test_write_memory_puts_content_into_the_shared_file(acme: World):
    bob = acme.bob.client()
    sent = {
        "filename": "STATUS.md",
        "content": "- state: green\n",
        "strategy": "upsert_kv",
        "heading": "Build",
    }
    first = bob.post(at(acme, "memory/write"), sent)
    assert (first.status_code, first.data["scope"]) == (201, "TEAM")
    second = bob.post(at(acme, "memory/write"), {**sent, "content": "state: red", "baseRevision": 1})
    assert second.data["content"] == "## Build\n- state: red\n"
    stale = bob.post(at(acme, "memory/write"), {**sent, "baseRevision": 1})
    assert stale.status_code == 409
    own = bob.post(at(acme, "memory/write"), {**sent, "bucket": "personal"})
    assert own.data["scope"] == "PERSONAL"
    wrong = bob.post(at(acme, "memory/write"), {**sent, "strategy": "sprinkle"})
    assert wrong.status_code == 400


def test_write_memory_sent_twice_with_one_key_is_done_once(acme: World):
    bob = acme.bob.client()
    sent = {"filename": "LOG.md", "content": "Shipped.", "strategy": "append"}
    answers = [
        bob.post(at(acme, "memory/write"), sent, headers={"Idempotency-Key": "release-7"}) for _ in range(2)
    ]
    assert [one.status_code for one in answers] == [201, 201]
    assert bob.get(at(acme, "files/LOG.md?bucket=shared")).data["content"] == "Shipped.\n"


# --- the description --------------------------------------------------------------------------------------


def test_the_schema_describes_every_method_without_a_warning():
    GENERATOR_STATS.reset()
    routes = [path("api/v1/", include("workspaces.api.urls_files"))]
    schema = SchemaGenerator(patterns=routes).get_schema(request=None, public=True)
    assert not GENERATOR_STATS._warn_cache, dict(GENERATOR_STATS._warn_cache)
    assert not GENERATOR_STATS._error_cache, dict(GENERATOR_STATS._error_cache)
    operations = [verb for item in schema["paths"].values() for verb in item.values()]
    assert len(operations) == 13
    assert all(operation["description"] for operation in operations)
