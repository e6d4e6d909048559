"""From a request to a bucket: tokens, sessions, agents, people."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from tests.factories import ALL_GRANTS, Person, World
from workspaces.access import (
    Principal,
    hash_token,
    open_agent,
    open_for_job,
    open_personal,
    open_shared,
    owner_key_of,
    principal_of_token,
    principal_of_user,
    require,
)
from workspaces.errors import BadInput, Forbidden, NotFound, Unauthenticated
from workspaces.logic.roles import GRANTS_OF_ROLE
from workspaces.models import GLOBAL_BUCKET_ID, Agent, Bucket, Member, PersonalAccessToken
from workspaces.services.agents import create_agent
from workspaces.services.overrides import Editor, Place, set_override
from workspaces.services.tenants import add_member, change_role, remove_member
from workspaces.services.tokens import issue_token, revoke_token
from workspaces.tenancy import Door, door, workspace
from workspaces.types import Grant, Role, Scope

MEDIATOR = "mate.memory.lifecycle-mediator-enabled"


def token_of(world: World, person: Person, **options: Any) -> str:
    """A new token of a person; all grants unless told."""
    with door(Door.OPERATOR):
        _, secret = issue_token(
            world.workspace.pk,
            user_id=person.user.pk,
            name="test",
            actor="system",
            **({"grants": ALL_GRANTS} | options),
        )
    return secret


def caller(secret: str, *, now: datetime | None = None) -> Principal:
    return principal_of_token(secret, address="192.0.2.7", now=now or timezone.now())


def row_of(secret: str) -> PersonalAccessToken:
    with door(Door.OPERATOR):
        return PersonalAccessToken.unscoped.get(sha256=hash_token(secret))


def second_agent(world: World) -> int:
    with door(Door.OPERATOR):
        agent, _ = create_agent(world.workspace.pk, name="Second", actor="system")
    return agent.pk


def isolate(world: World, value: bool) -> None:
    with door(Door.OPERATOR):
        set_override(Place(world.workspace.pk), MEDIATOR, value, by=Editor(world.alice.user.pk, "system"))


# --- tokens -----------------------------------------------------------------------------------------------


def test_a_token_stands_for_its_user_in_its_workspace(acme: World):
    found = caller(acme.bob.token)
    assert (found.workspace_id, found.user_id, found.role) == (
        acme.workspace.pk,
        acme.bob.user.pk,
        Role.MEMBER,
    )
    assert found.actor == f"token:{found.token_id}"
    assert found.address == "192.0.2.7"
    assert found.agent_ids is None


def test_the_secret_of_a_token_is_nowhere_kept(acme: World):
    kept = row_of(acme.bob.token)
    assert acme.bob.token.startswith(kept.prefix)
    assert len(kept.prefix) < 12
    assert acme.bob.token not in str(vars(kept))
    assert kept.sha256 == hash_token(acme.bob.token)


@pytest.mark.parametrize("secret", ["", "mm_", "mm_" + "a" * 43, "\u2603", "\x00", "x" * 100_000])
def test_an_unknown_secret_is_refused(acme: World, secret: str):
    with pytest.raises(Unauthenticated):
        caller(secret)


def test_a_token_expires_to_the_moment(acme: World):
    expiry = timezone.now() + timedelta(hours=1)
    secret = token_of(acme, acme.bob, expires_at=expiry)
    assert caller(secret, now=expiry - timedelta(microseconds=1))
    with pytest.raises(Unauthenticated):
        caller(secret, now=expiry)


def test_a_revoked_token_stops_at_once(acme: World):
    with workspace(acme.workspace.pk):
        revoke_token(acme.workspace.pk, row_of(acme.bob.token).pk, actor="system")
    with pytest.raises(Unauthenticated):
        caller(acme.bob.token)
    assert acme.bob.client().get("/api/v1/agents").status_code == 401


def test_unknown_expired_and_revoked_look_the_same(acme: World):
    expired = token_of(acme, acme.bob, expires_at=timezone.now() + timedelta(seconds=1))
    revoked = token_of(acme, acme.bob)
    with workspace(acme.workspace.pk):
        revoke_token(acme.workspace.pk, row_of(revoked).pk, actor="system")
    told = set()
    for secret in ("mm_unknown", expired, revoked):
        with pytest.raises(Unauthenticated) as refused:
            caller(secret, now=timezone.now() + timedelta(hours=1))
        told.add((refused.value.code, refused.value.message))
    assert len(told) == 1


def test_the_token_of_an_inactive_user_stops(acme: World):
    acme.bob.user.is_active = False
    acme.bob.user.save()
    with pytest.raises(Unauthenticated):
        caller(acme.bob.token)


def test_the_token_of_a_removed_member_stops(acme: World):
    with workspace(acme.workspace.pk):
        remove_member(acme.workspace.pk, user_id=acme.bob.user.pk, by=Role.ADMIN, actor="system")
    with pytest.raises(Unauthenticated):
        caller(acme.bob.token)
    assert acme.bob.client().get("/api/v1/agents").status_code == 401


def test_the_last_use_of_a_token_is_written_at_most_once_a_minute(acme: World):
    start = timezone.now()
    moments = [0, 1, 59, 61, 90, 120, 121, 122]
    written = []
    for seconds in moments:
        caller(acme.bob.token, now=start + timedelta(seconds=seconds))
        last_used_at = row_of(acme.bob.token).last_used_at
        assert last_used_at is not None
        written.append((last_used_at - start).total_seconds())
    assert written == [0, 0, 0, 61, 61, 61, 61, 122]


def test_knowing_a_token_again_writes_nothing(acme: World):
    now = timezone.now()
    caller(acme.bob.token, now=now)
    with CaptureQueriesContext(connection) as asked:
        caller(acme.bob.token, now=now + timedelta(seconds=5))
    assert not [one["sql"] for one in asked if one["sql"].startswith(("UPDATE", "INSERT", "DELETE"))]


@pytest.mark.parametrize("role", list(Role))
def test_a_token_never_does_more_than_its_user(acme: World, role: Role):
    name = {Role.VIEWER: "vera", Role.MEMBER: "bob", Role.ADMIN: "alice", Role.OWNER: "olivia"}[role]
    person = acme.people[name]
    held = caller(person.token)
    assert held.role == role
    # Speaking for end users is what an integration's token is made for, whatever its user's role.
    assert held.grants - {Grant.ON_BEHALF} <= GRANTS_OF_ROLE[role]


def test_a_token_has_the_grants_it_was_given_and_no_others(acme: World):
    assert caller(token_of(acme, acme.olivia, grants=["read"])).grants == {Grant.READ}


def test_a_token_shrinks_with_its_users_role(acme: World):
    before = caller(acme.alice.token)
    assert Grant.ADMIN in before.grants
    with workspace(acme.workspace.pk):
        change_role(
            acme.workspace.pk, user_id=acme.alice.user.pk, role=Role.VIEWER, by=Role.OWNER, actor="system"
        )
    after = caller(acme.alice.token)
    assert after.role == Role.VIEWER
    assert not after.grants & {Grant.ADMIN, Grant.AGENTS, Grant.JOBS}


def test_a_token_makes_no_tokens(acme: World):
    body = {"name": "more", "grants": ["read"]}
    answer = acme.olivia.client().post("/api/v1/tokens", body)
    assert (answer.status_code, answer.json()["code"]) == (403, "session_needed")


# --- the agents of a token --------------------------------------------------------------------------------


def test_a_token_with_a_list_knows_the_agents_of_its_list_only(acme: World):
    other = second_agent(acme)
    held = caller(token_of(acme, acme.bob, agent_ids=[other]))
    assert open_agent(held, other).id == other
    with pytest.raises(NotFound):
        open_agent(held, acme.agent_id)


def test_an_agent_outside_the_list_looks_like_one_that_does_not_exist(acme: World):
    held = caller(token_of(acme, acme.bob, agent_ids=[second_agent(acme)]))
    told = []
    for agent_id in (acme.agent_id, 999_999):
        with pytest.raises(NotFound) as refused:
            open_agent(held, agent_id)
        told.append((refused.value.code, refused.value.message.replace(str(agent_id), "N")))
    assert told[0] == told[1]


def test_the_default_agent_outside_the_list_is_not_there(acme: World):
    held = caller(token_of(acme, acme.bob, agent_ids=[second_agent(acme)]))
    with pytest.raises(NotFound):
        open_agent(held, None)


def test_an_agent_of_another_workspace_does_not_exist(acme: World, umbra: World):
    for opens in (
        lambda held: open_agent(held, acme.agent_id),
        lambda held: open_personal(held, acme.agent_id, end_user_id=None, writes=True),
        lambda held: open_shared(held, acme.agent_id, writes=True),
    ):
        with pytest.raises(NotFound):
            opens(caller(umbra.mallory.token))


def test_a_disabled_agent_is_read_and_does_no_work(acme: World):
    with workspace(acme.workspace.pk):
        Agent.objects.of_workspace(acme.workspace.pk).filter(pk=acme.agent_id).update(enabled=False)
    held = caller(acme.bob.token)
    assert not open_agent(held, acme.agent_id).enabled
    with pytest.raises(Forbidden) as refused:
        open_personal(held, acme.agent_id, end_user_id=None, writes=True, works=True)
    assert refused.value.code == "agent_disabled"


def test_the_shared_bucket_is_found_among_those_of_many_people(acme: World):
    for number in range(5):
        acme.personal(f"api:{number}")
    with door(Door.OPERATOR):
        # Puts the shared bucket's row last, where a query that leaves the choice to Postgres finds it last.
        for shift in (1000, -1000):
            Bucket.unscoped.filter(agent_id=acme.agent_id, owner=None).update(id=F("id") + shift)
    held = caller(acme.bob.token)
    assert open_agent(held, acme.agent_id).team == acme.team
    assert open_agent(held, None).team == acme.team


# --- people -----------------------------------------------------------------------------------------------


def test_without_an_end_user_the_caller_is_meant(acme: World):
    opened = open_personal(caller(acme.vera.token), acme.agent_id, end_user_id=None, writes=True)
    assert opened.owner_key == acme.vera.owner_key
    assert opened.own is not None
    assert opened.bucket == opened.own
    assert opened.own.scope == Scope.PERSONAL


def test_naming_an_end_user_needs_the_grant_for_it(acme: World):
    held = caller(token_of(acme, acme.bob, grants=["chat", "read", "write"]))
    with pytest.raises(Forbidden, match="on_behalf"):
        open_personal(held, acme.agent_id, end_user_id="nora", writes=True)


def test_an_end_users_key_is_theirs_alone(acme: World):
    assert owner_key_of(caller(acme.bob.token), "nora") == "api:nora"
    assert owner_key_of(caller(acme.bob.token), acme.vera.owner_key) == f"api:{acme.vera.owner_key}"
    assert owner_key_of(caller(acme.bob.token), "system") == "api:system"


def test_a_namespace_keeps_an_integrations_people_apart(acme: World):
    shop = caller(token_of(acme, acme.bob, namespace="shop"))
    opened = open_personal(shop, acme.agent_id, end_user_id="nora", writes=True)
    assert opened.owner_key == "api:shop/nora"
    plain = open_personal(caller(acme.bob.token), acme.agent_id, end_user_id="nora", writes=True)
    assert plain.own is not None
    assert opened.own is not None
    assert opened.own.id not in plain.reach.buckets
    assert plain.own.id not in opened.reach.buckets


@pytest.mark.parametrize("end_user_id", ["", "x" * 129, "a\x00b", "a\nb", "\x7f", " "])
def test_a_bad_end_user_id_is_refused_everywhere(acme: World, end_user_id: str):
    client = acme.bob.client()
    with pytest.raises(BadInput):
        owner_key_of(caller(acme.bob.token), end_user_id)
    body = {"agentId": acme.agent_id, "message": "Hello", "endUserId": end_user_id}
    assert client.post("/api/v1/chat", body).status_code == 400
    listed = client.get(f"/api/v1/memory/{acme.agent_id}/conversations", {"endUserId": end_user_id})
    assert listed.status_code == 400


@pytest.mark.parametrize("end_user_id", [0, 17, 1.5, True, None, ["nora"], {"id": "nora"}])
def test_an_end_user_id_that_is_no_text_is_refused(acme: World, end_user_id: object):
    body = {"agentId": acme.agent_id, "message": "Hello", "endUserId": end_user_id}
    answer = acme.bob.client().post("/api/v1/chat", body)
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "endUserId"


def test_a_reader_makes_no_person(acme: World):
    opened = open_personal(caller(acme.bob.token), acme.agent_id, end_user_id="nobody", writes=False)
    assert opened.own is None
    assert opened.bucket is None
    assert opened.reach.buckets == (acme.team.id, GLOBAL_BUCKET_ID)
    assert opened.reach.writes == ()
    for read in (opened.personal, opened.writable):
        with pytest.raises(NotFound):
            read()


def test_a_person_reaches_their_own_the_shared_and_the_global_bucket(acme: World):
    vera = acme.personal(acme.vera.owner_key)
    opened = open_personal(caller(acme.bob.token), acme.agent_id, end_user_id=None, writes=True)
    own = opened.personal()
    assert set(opened.reach.buckets) == {own.id, acme.team.id, GLOBAL_BUCKET_ID}
    assert opened.reach.writes == (own.id,)
    assert vera.id not in opened.reach.buckets


def test_two_agents_remember_the_same_person_apart(acme: World):
    held, other = caller(acme.bob.token), second_agent(acme)
    here = open_personal(held, acme.agent_id, end_user_id="nora", writes=True)
    there = open_personal(held, other, end_user_id="nora", writes=True)
    assert here.personal().id not in there.reach.buckets
    assert here.owner_key == there.owner_key


def test_with_isolation_off_memory_goes_to_the_shared_bucket_and_conversations_stay(acme: World):
    held = caller(acme.bob.token)
    before = open_personal(held, acme.agent_id, end_user_id="nora", writes=True)
    isolate(acme, False)
    after = open_personal(held, acme.agent_id, end_user_id="nora", writes=True)
    assert after.writable() == acme.team
    assert after.personal() == before.personal()
    assert set(after.reach.writes) == {after.personal().id, acme.team.id}
    isolate(acme, True)
    again = open_personal(held, acme.agent_id, end_user_id="nora", writes=True)
    assert again.writable() == before.personal()


def test_with_isolation_off_a_chat_still_finds_its_conversation(acme: World):
    client = acme.bob.client()
    body = {"agentId": acme.agent_id, "endUserId": "nora", "message": "Hello there"}
    first = client.post("/api/v1/chat", body).json()
    isolate(acme, False)
    answer = client.post("/api/v1/chat", {**body, "conversationId": first["conversationId"]})
    assert answer.status_code == 200
    other = client.post(
        "/api/v1/chat", {**body, "endUserId": "sven", "conversationId": first["conversationId"]}
    )
    assert other.status_code == 404


def test_shared_memory_is_read_by_a_viewer_and_written_by_a_member(acme: World):
    read = open_shared(caller(acme.vera.token), acme.agent_id, writes=False)
    assert read.bucket == acme.team
    assert read.reach.writes == ()
    with pytest.raises(Forbidden) as refused:
        open_shared(caller(acme.vera.token), acme.agent_id, writes=True)
    assert refused.value.code == "role_needed"
    written = open_shared(caller(acme.bob.token), acme.agent_id, writes=True)
    assert written.reach.writes == (acme.team.id,)
    with pytest.raises(NotFound):
        written.personal()


def test_a_job_reaches_what_its_bucket_may_read(acme: World):
    vera, bob = acme.personal(acme.vera.owner_key), acme.personal(acme.bob.owner_key)
    bucket, reach = open_for_job(vera.id)
    assert bucket == vera
    assert set(reach.buckets) == {vera.id, acme.team.id, GLOBAL_BUCKET_ID}
    assert reach.writes == (vera.id,)
    assert bob.id not in reach.buckets
    assert open_for_job(acme.team.id)[1].buckets == (acme.team.id, GLOBAL_BUCKET_ID)


# --- sessions ---------------------------------------------------------------------------------------------


def test_a_session_stands_for_the_only_workspace_of_its_user(acme: World):
    found = principal_of_user(acme.bob.user, workspace_id=None, address="")
    assert (found.workspace_id, found.role, found.token_id) == (acme.workspace.pk, Role.MEMBER, None)
    assert found.actor == f"user:{acme.bob.user.pk}"
    assert found.grants == GRANTS_OF_ROLE[Role.MEMBER]


def test_a_user_of_several_workspaces_names_one(acme: World, umbra: World):
    with door(Door.OPERATOR):
        add_member(umbra.workspace.pk, user=acme.bob.user, role=Role.VIEWER, actor="system")
    with pytest.raises(BadInput, match="You belong to 2 workspaces"):
        principal_of_user(acme.bob.user, workspace_id=None, address="")
    roles = {
        made: principal_of_user(acme.bob.user, workspace_id=made, address="").role
        for made in (acme.workspace.pk, umbra.workspace.pk)
    }
    assert roles == {acme.workspace.pk: Role.MEMBER, umbra.workspace.pk: Role.VIEWER}


def test_a_token_of_a_user_of_two_workspaces_has_the_role_of_its_own(acme: World, umbra: World):
    with door(Door.OPERATOR):
        add_member(umbra.workspace.pk, user=acme.vera.user, role=Role.OWNER, actor="system")
    assert caller(acme.vera.token).role == Role.VIEWER


def test_a_workspace_that_is_not_ones_own_does_not_exist(acme: World, umbra: World):
    for number in (umbra.workspace.pk, 1, 999_999):
        with pytest.raises(NotFound):
            principal_of_user(acme.alice.user, workspace_id=number, address="")


def test_a_user_without_a_workspace_is_told_so(acme: World):
    with door(Door.OPERATOR):
        Member.unscoped.filter(user=acme.bob.user).delete()
    with pytest.raises(BadInput, match="You belong to 0 workspaces"):
        principal_of_user(acme.bob.user, workspace_id=None, address="")


# --- needs ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held", list(Role))
@pytest.mark.parametrize("needed", list(Role))
def test_a_higher_role_does_all_that_a_lower_one_does(acme: World, held: Role, needed: Role):
    principal = Principal(workspace_id=1, user_id=1, role=held, grants=GRANTS_OF_ROLE[held], actor="user:1")
    if held >= needed:
        require(principal, role=needed)
        return
    with pytest.raises(Forbidden, match=needed.name.lower()):
        require(principal, role=needed)


def test_roles_hold_more_grants_the_higher_they_are():
    ordered = [GRANTS_OF_ROLE[role] for role in sorted(Role)]
    assert all(lower <= higher for lower, higher in pairwise(ordered))
