"""Workspaces, agents, members, owners, tokens, usage and audit over HTTP."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from tests.factories import ALL_GRANTS, World, client_of
from workspaces.models import (
    Agent,
    AuditEvent,
    File,
    IdempotencyKey,
    ModelUsage,
    PersonalAccessToken,
    Revision,
)
from workspaces.services.files import Author, write_file
from workspaces.services.tenants import add_member
from workspaces.services.tokens import issue_token
from workspaces.tenancy import Door, door, tenant, workspace
from workspaces.types import AuthorKind, Role

API = "/api/v1/"


def session_of(user: User) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.force_login(user)
    return client


def token_of(world: World, name: str, *grants: str, **limits) -> APIClient:
    with workspace(world.workspace.pk):
        _, secret = issue_token(
            world.workspace.pk,
            user_id=world.people[name].user.pk,
            name="limited",
            grants=grants,
            actor="system",
            **limits,
        )
    return client_of(secret)


def actions_in(world: World) -> list[str]:
    with workspace(world.workspace.pk):
        return list(
            AuditEvent.objects.of_workspace(world.workspace.pk)
            .order_by("pk")
            .values_list("action", flat=True)
        )


# --- who may ----------------------------------------------------------------------------------------------

READERS = ("vera", "bob", "alice", "olivia")
ADMINS = ("alice", "olivia")
ROUTES = [
    ("get", "workspaces", READERS),
    ("get", "agents", READERS),
    ("get", "agents/{agent}", READERS),
    ("post", "agents", ADMINS),
    ("patch", "agents/{agent}", ADMINS),
    ("delete", "agents/{agent}", ADMINS),
    ("get", "members", READERS),
    ("get", "members/{user}", READERS),
    ("post", "members", ADMINS),
    ("patch", "members/{user}", ADMINS),
    ("delete", "members/{user}", ADMINS),
    ("get", "owners", ADMINS),
    ("get", "owners/1", ADMINS),
    ("patch", "owners/1", ADMINS),
    ("get", "tokens", READERS),
    ("delete", "tokens/999999", READERS),
    ("get", "usage", ADMINS),
    ("get", "audit", ADMINS),
]


@pytest.mark.parametrize(("verb", "path", "allowed"), ROUTES, ids=[f"{one[0]} {one[1]}" for one in ROUTES])
def test_only_roles_that_may_are_let_in(acme: World, verb: str, path: str, allowed: tuple[str, ...]):
    url = API + path.format(agent=acme.agent_id, user=acme.bob.user.pk)
    for name in READERS:
        # Fields that no body knows: who is let in is told that, and nothing is changed.
        body = None if verb == "get" else {"nonsense": 1}
        status = getattr(acme.people[name].client(), verb)(url, body).status_code
        if name in allowed:
            assert status in {200, 204, 400, 404}, name
        else:
            assert status == 403, name


@pytest.mark.parametrize(
    "path",
    ["workspaces", "agents", "members", "owners", "tokens", "settings", "usage", "audit"],
)
def test_nobody_is_let_in_without_a_log_in(db, path: str):
    assert client_of(None).get(API + path).status_code == 401


# --- workspaces -------------------------------------------------------------------------------------------


def test_a_session_learns_its_workspaces_before_it_names_one(acme: World, umbra: World):
    with workspace(umbra.workspace.pk):
        add_member(umbra.workspace.pk, user=acme.bob.user, role=Role.VIEWER, actor="system")
    body = session_of(acme.bob.user).get(API + "workspaces").json()
    assert [(row["slug"], row["role"]) for row in body["results"]] == [
        ("acme", "member"),
        ("umbra", "viewer"),
    ]


def test_a_token_knows_its_own_workspace_only(acme: World, umbra: World):
    with workspace(umbra.workspace.pk):
        add_member(umbra.workspace.pk, user=acme.bob.user, role=Role.VIEWER, actor="system")
    body = acme.bob.client().get(API + "workspaces").json()
    assert body["results"] == [
        {
            "id": acme.workspace.pk,
            "name": "Acme",
            "slug": "acme",
            "language": "en",
            "timezone": "UTC",
            "role": "member",
        }
    ]


# --- agents -----------------------------------------------------------------------------------------------


def test_an_agent_is_made_with_its_files_read_changed_and_removed(acme: World):
    client = acme.alice.client()
    made = client.post(API + "agents", {"name": "Ada", "systemPrompt": "Be brief."})
    assert made.status_code == 201
    number = made.json()["id"]
    assert made.json() == {
        "id": number,
        "name": "Ada",
        "description": "",
        "systemPrompt": "Be brief.",
        "model": "",
        "enabled": True,
        "isDefault": False,
        "createdAt": made.json()["createdAt"],
    }
    url = f"{API}agents/{number}"
    assert client.patch(url, {"enabled": False, "name": "Ada L."}).json()["name"] == "Ada L."
    assert client.get(url).json()["enabled"] is False
    with door(Door.OPERATOR):
        assert File.unscoped.filter(bucket__agent_id=number).count() == 4
    assert client.delete(url).json()["code"] == "confirm_needed"
    assert client.delete(f"{url}?confirm=Ada").json()["code"] == "confirm_needed"
    assert client.delete(f"{url}?confirm=Ada L.").status_code == 204
    assert client.get(url).status_code == 404
    with door(Door.OPERATOR):
        assert not Agent.unscoped.filter(pk=number).exists()
        assert not Revision.unscoped.filter(bucket__agent_id=number).exists()
        assert Revision.unscoped.filter(bucket__agent_id=acme.agent_id).count() == 4
    assert [one for one in actions_in(acme) if one.startswith("agent.")][-3:] == [
        "agent.created",
        "agent.changed",
        "agent.deleted",
    ]


def test_the_default_agent_moves_and_is_never_missing(acme: World):
    client = acme.alice.client()
    number = client.post(API + "agents", {"name": "Ada"}).json()["id"]
    first = f"{API}agents/{acme.agent_id}"
    assert client.patch(first, {"isDefault": False}).json()["code"] == "default_agent"
    assert client.delete(f"{first}?confirm=Mate").json()["code"] == "default_agent"
    assert client.patch(f"{API}agents/{number}", {"isDefault": True}).json()["isDefault"] is True
    assert client.get(first).json()["isDefault"] is False
    assert client.delete(f"{first}?confirm=Mate").status_code == 204


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"name": "Mate"}, 409, "agent_exists"),
        ({"name": "  "}, 400, "bad_name"),
        ({"name": ""}, 400, "invalid"),
        ({"name": 5}, 400, "invalid"),
        ({"name": "n" * 129}, 400, "invalid"),
        ({"name": "a\0b"}, 400, "invalid"),
        ({"name": "Ada", "colour": "red"}, 400, "invalid"),
        ({}, 400, "invalid"),
    ],
)
def test_a_wrong_agent_is_told(acme: World, body: dict, status: int, code: str):
    answer = acme.alice.client().post(API + "agents", body)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_an_agent_cannot_take_anothers_name_or_none(acme: World):
    client = acme.alice.client()
    number = client.post(API + "agents", {"name": "Ada"}).json()["id"]
    assert client.patch(f"{API}agents/{number}", {"name": "Mate"}).status_code == 409
    assert client.patch(f"{API}agents/{number}", {"name": " "}).status_code == 400


@pytest.mark.parametrize("verb", ["get", "patch", "delete"])
def test_a_foreign_agent_does_not_exist(acme: World, umbra: World, verb: str):
    url = f"{API}agents/{umbra.agent_id}" + ("?confirm=Mate" if verb == "delete" else "")
    assert getattr(acme.olivia.client(), verb)(url).status_code == 404
    with door(Door.OPERATOR):
        assert Agent.unscoped.filter(pk=umbra.agent_id).exists()


def test_a_token_for_some_agents_sees_no_others(acme: World):
    number = acme.alice.client().post(API + "agents", {"name": "Ada"}).json()["id"]
    limited = token_of(acme, "alice", "read", "agents", agent_ids=[number])
    assert [row["name"] for row in limited.get(API + "agents").json()["results"]] == ["Ada"]
    assert limited.get(f"{API}agents/{acme.agent_id}").status_code == 404
    assert limited.patch(f"{API}agents/{acme.agent_id}", {"enabled": False}).status_code == 404


# --- members ----------------------------------------------------------------------------------------------


def test_a_member_is_added_promoted_and_removed_and_their_token_stops(acme: World):
    client = acme.alice.client()
    carol = User.objects.create_user("carol", password="a long password")
    answer = client.post(API + "members", {"username": "carol", "role": "viewer"})
    assert (answer.status_code, answer.json()["role"]) == (201, "viewer")
    assert client.post(API + "members", {"username": "carol", "role": "viewer"}).status_code == 409
    url = f"{API}members/{carol.pk}"
    assert client.patch(url, {"role": "member"}).json()["role"] == "member"
    with workspace(acme.workspace.pk):
        _, secret = issue_token(
            acme.workspace.pk, user_id=carol.pk, name="hers", grants=["read"], actor="system"
        )
    hers = client_of(secret)
    assert "carol" in [row["username"] for row in hers.get(API + "members").json()["results"]]
    assert client.delete(url).status_code == 204
    assert hers.get(API + "members").status_code == 401
    assert client.get(url).status_code == 404
    assert [one for one in actions_in(acme) if one.startswith("member.")][-3:] == [
        "member.added",
        "member.role_changed",
        "member.removed",
    ]


def test_nobody_gives_or_takes_a_role_above_their_own(acme: World):
    client = acme.alice.client()
    User.objects.create_user("carol", password="a long password")
    for answer in (
        client.post(API + "members", {"username": "carol", "role": "owner"}),
        client.patch(f"{API}members/{acme.bob.user.pk}", {"role": "owner"}),
        client.patch(f"{API}members/{acme.olivia.user.pk}", {"role": "member"}),
        client.delete(f"{API}members/{acme.olivia.user.pk}"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (422, "role_above_yours")
    answer = acme.olivia.client().delete(f"{API}members/{acme.olivia.user.pk}")
    assert (answer.status_code, answer.json()["code"]) == (422, "last_owner")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"username": "nobody", "role": "member"}, 404),
        ({"username": "mallory-umbra", "role": "emperor"}, 400),
        ({"username": "mallory-umbra", "role": 3}, 400),
        ({"role": "member"}, 400),
    ],
)
def test_a_wrong_member_is_told(acme: World, umbra: World, body: dict, status: int):
    assert acme.alice.client().post(API + "members", body).status_code == status


def test_a_stranger_is_no_member_to_change(acme: World, umbra: World):
    url = f"{API}members/{umbra.mallory.user.pk}"
    client = acme.olivia.client()
    assert client.get(url).status_code == 404
    assert client.patch(url, {"role": "viewer"}).status_code == 404
    assert client.delete(url).status_code == 404


# --- owners -----------------------------------------------------------------------------------------------


def remember(world: World, owner_key: str) -> None:
    bucket = world.personal(owner_key)
    with tenant(bucket):
        write_file(bucket, "PROFILE.md", "Likes tea.\n", author=Author(AuthorKind.PERSON, "user:1"))


def test_owners_are_listed_with_what_there_is_and_never_what_it_says(acme: World):
    remember(acme, "api:erin")
    acme.personal("api:frank")
    answer = acme.alice.client().get(API + "owners")
    rows = answer.json()["results"]
    assert [(row["key"], row["agents"], row["files"]) for row in rows] == [
        ("api:erin", 1, 1),
        ("api:frank", 1, 0),
    ]
    assert rows[0]["lastActivityAt"] is not None
    assert rows[1]["lastActivityAt"] is None
    assert "tea" not in json.dumps(answer.json())
    assert acme.alice.client().get(API + "owners?q=RIN").json()["count"] == 1


def test_a_list_of_owners_costs_the_same_for_one_and_for_many(acme: World, django_assert_max_num_queries):
    for number in range(20):
        remember(acme, f"api:{number}")
    client = acme.alice.client()
    with django_assert_max_num_queries(23):
        assert client.get(API + "owners").json()["count"] == 20


def test_an_owner_is_named_and_gets_a_time_zone(acme: World):
    remember(acme, "api:erin")
    client = acme.alice.client()
    number = client.get(API + "owners").json()["results"][0]["id"]
    url = f"{API}owners/{number}"
    body = client.patch(url, {"name": "Erin", "timezone": "Asia/Shanghai"}).json()
    assert (body["name"], body["timezone"], body["files"]) == ("Erin", "Asia/Shanghai", 1)
    assert client.patch(url, {"timezone": ""}).json()["timezone"] == ""
    assert client.patch(url, {"timezone": "Mars/Olympus"}).json()["code"] == "bad_timezone"
    assert client.patch(url, {"key": "api:other"}).status_code == 400
    assert client.get(url).json()["name"] == "Erin"
    assert "owner.changed" in actions_in(acme)


def test_a_foreign_owner_does_not_exist(acme: World, umbra: World):
    remember(umbra, "api:erin")
    number = umbra.mallory.client().get(API + "owners").json()["results"][0]["id"]
    client = acme.olivia.client()
    assert client.get(API + "owners").json()["count"] == 0
    assert client.get(f"{API}owners/{number}").status_code == 404
    assert client.patch(f"{API}owners/{number}", {"name": "x"}).status_code == 404


# --- tokens -----------------------------------------------------------------------------------------------


def test_one_sees_ones_own_tokens_and_an_admin_all_but_no_secret(acme: World):
    mine = acme.bob.client().get(API + "tokens").json()
    assert [row["username"] for row in mine["results"]] == ["bob-acme"]
    everyones = acme.alice.client().get(API + "tokens").json()
    assert everyones["count"] == 4
    assert token_of(acme, "alice", "read").get(API + "tokens").json()["count"] == 2
    with door(Door.OPERATOR):
        hashes = PersonalAccessToken.unscoped.values_list("sha256", flat=True)
        told = json.dumps(everyones)
        assert not any(one in told for one in hashes)
    assert acme.bob.token not in told


def test_a_session_makes_a_token_that_works_and_is_told_once(acme: World):
    session = session_of(acme.bob.user)
    answer = session.post(API + "tokens", {"name": "laptop", "grants": ["chat", "read"]})
    assert answer.status_code == 201
    secret = answer.json()["token"]
    assert client_of(secret).get(API + "agents").status_code == 200
    assert secret not in json.dumps(session.get(API + "tokens").json())


def test_a_token_makes_no_tokens(acme: World):
    answer = acme.olivia.client().post(API + "tokens", {"name": "more", "grants": ["read"]})
    assert (answer.status_code, answer.json()["code"]) == (403, "session_needed")


@pytest.mark.parametrize("grant", ["on_behalf", "admin", "agents"])
def test_nobody_makes_a_token_that_may_more_than_they(acme: World, grant: str):
    body = {"name": "greedy", "grants": ["read", grant]}
    answer = session_of(acme.bob.user).post(API + "tokens", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "grant_needed")
    assert session_of(acme.alice.user).post(API + "tokens", body).status_code == 201


@pytest.mark.parametrize(
    "wrong",
    [
        {"grants": ["fly"]},
        {"grants": []},
        {"name": ""},
        {"name": "n" * 65},
        {"namespace": "a/b"},
        {"expiresAt": "2001-01-01T00:00:00Z"},
        {"expiresAt": "soon"},
        {"agents": [999_999]},
        {"agents": []},
        {"secret": "mm_mine"},
    ],
)
def test_a_wrong_token_is_told(acme: World, wrong: dict):
    answer = session_of(acme.bob.user).post(API + "tokens", {"name": "n", "grants": ["read"], **wrong})
    assert answer.status_code == 400


def test_a_repeated_request_makes_one_token_and_its_secret_is_kept_nowhere(acme: World):
    session, body = session_of(acme.bob.user), {"name": "laptop", "grants": ["read"]}
    first = session.post(API + "tokens", body, headers={"Idempotency-Key": "one"})
    again = session.post(API + "tokens", body, headers={"Idempotency-Key": "one"})
    assert (first.status_code, again.status_code) == (201, 201)
    assert again["Idempotency-Replayed"] == "true"
    assert again.json() == {**first.json(), "token": None}
    with door(Door.OPERATOR):
        assert PersonalAccessToken.unscoped.filter(name="laptop").count() == 1
        assert first.json()["token"] not in json.dumps(
            list(IdempotencyKey.unscoped.values_list("body", flat=True))
        )


def test_one_revokes_ones_own_token_and_an_admin_any(acme: World, umbra: World):
    def number(world: World, name: str) -> int:
        with door(Door.OPERATOR):
            return PersonalAccessToken.unscoped.get(user=world.people[name].user).pk

    assert acme.bob.client().delete(f"{API}tokens/{number(acme, 'vera')}").status_code == 404
    assert acme.alice.client().delete(f"{API}tokens/{number(umbra, 'mallory')}").status_code == 404
    assert acme.alice.client().delete(f"{API}tokens/{number(acme, 'vera')}").status_code == 204
    assert acme.vera.client().get(API + "agents").status_code == 401
    assert acme.bob.client().delete(f"{API}tokens/{number(acme, 'bob')}").status_code == 204
    assert acme.bob.client().get(API + "agents").status_code == 401
    assert actions_in(acme).count("token.revoked") == 2


# --- activity ---------------------------------------------------------------------------------------------


def used(world: World, at: datetime, *, model: str = "openai:tiny", error: str = "") -> None:
    with tenant(world.team):
        ModelUsage.objects.create(
            workspace_id=world.workspace.pk,
            bucket_id=world.team.id,
            at=at,
            purpose="reply",
            model=model,
            input_tokens=100,
            output_tokens=10,
            cost_usd="0.002500" if not error else None,
            error=error,
        )


def test_usage_is_summed_by_day_purpose_and_model(acme: World, umbra: World):
    day = datetime(2026, 5, 4, 12, tzinfo=UTC)
    for at in (day, day + timedelta(hours=1)):
        used(acme, at)
    used(acme, day, error="timeout")
    used(acme, day + timedelta(days=1), model="anthropic:small")
    used(umbra, day)
    client = acme.alice.client()
    body = client.get(API + "usage?from=2026-05-01T00:00:00Z&to=2026-06-01T00:00:00Z").json()
    assert body["count"] == 2
    assert body["results"][1] == {
        "day": "2026-05-04",
        "purpose": "reply",
        "model": "openai:tiny",
        "calls": 3,
        "failed": 1,
        "inputTokens": 300,
        "outputTokens": 30,
        "costUsd": 0.005,
    }
    assert client.get(API + "usage?from=2026-05-05T00:00:00Z&to=2026-05-06").json()["count"] == 1


def test_usage_tells_the_last_thirty_days_unless_asked(acme: World):
    used(acme, timezone.now() - timedelta(days=29))
    used(acme, timezone.now() - timedelta(days=31))
    assert acme.alice.client().get(API + "usage").json()["count"] == 1


def test_a_day_is_one_of_the_workspaces_time_zone(acme: World):
    with door(Door.OPERATOR):
        acme.workspace.timezone = "Asia/Shanghai"
        acme.workspace.save()
    used(acme, datetime(2026, 5, 4, 20, tzinfo=UTC))
    body = acme.alice.client().get(API + "usage?from=2026-05-01T00:00:00Z").json()
    assert body["results"][0]["day"] == "2026-05-05"


def test_the_audit_trail_is_filtered_and_stays_in_the_workspace(acme: World, umbra: World):
    client = acme.alice.client()
    client.post(API + "agents", {"name": "Ada"})
    rows = client.get(API + "audit?action=agent.created").json()["results"]
    assert [row["actor"].split(":")[0] for row in rows] == ["token", "system"]
    assert rows[0]["address"] == "127.0.0.1"
    actor = rows[0]["actor"]
    assert client.get(f"{API}audit?actor={actor}&action=agent").json()["count"] == 1
    assert client.get(API + "audit?action=age").json()["count"] == 0
    assert client.get(API + "audit?from=2999-01-01T00:00:00Z").json()["count"] == 0
    assert client.get(API + "audit?to=2001-01-01T00:00:00Z").json()["count"] == 0
    assert client.get(API + "audit?from=yesterday").status_code == 400
    with door(Door.OPERATOR):
        foreign = AuditEvent.unscoped.exclude(workspace=acme.workspace)
        assert foreign.exists()
        total = AuditEvent.unscoped.filter(workspace=acme.workspace).count()
    assert client.get(API + "audit?pageSize=200").json()["count"] == total


def test_lists_are_paged(acme: World):
    client = token_of(acme, "alice", *ALL_GRANTS)
    body = client.get(API + "members?pageSize=3&page=2").json()
    assert (body["count"], len(body["results"])) == (4, 1)
    assert body["previous"] is not None
    assert client.get(API + "members?page=9").status_code == 404
