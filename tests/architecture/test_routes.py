"""Who may do what over HTTP: every route × method × caller, complete by introspection.

A new route fails here until it stands in `ROUTES`; the README's table is made from the same `needs`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from rest_framework.test import APIClient
from rest_framework.views import APIView

from facts.models import Contradiction
from facts.services.learn import learn
from facts.types import Claim, Source, SourceKind
from tests import factories
from tests.architecture.tables import API, METHODS, addresses, routes
from tests.factories import ALL_GRANTS, Person, World, client_of
from tests.stubs.plugins import Sample, joined
from workspaces import tenancy
from workspaces.api.base import Endpoint, Needs
from workspaces.logic.roles import GRANTS_OF_ROLE
from workspaces.models import Owner, Run
from workspaces.services.files import Author, write_file
from workspaces.services.plugins import Actor, save_plugin
from workspaces.services.tenants import add_member
from workspaces.services.tokens import issue_token
from workspaces.tenancy import Door, door, tenant, workspace
from workspaces.types import AuthorKind, BucketRef, Grant, Role

READ = (Role.VIEWER, Grant.READ)
WRITE = (Role.VIEWER, Grant.WRITE)
WRITE_SHARED = (Role.MEMBER, Grant.WRITE)
CHAT = (Role.VIEWER, Grant.CHAT)
MANAGE_AGENTS = (Role.ADMIN, Grant.AGENTS)
ADMINISTER = (Role.ADMIN, Grant.ADMIN)

FILES = "/agents/{agentId}/workspace/files"
ROUTES: Mapping[tuple[str, str], tuple[Role, Grant]] = {
    ("GET", "/agents"): READ,
    ("POST", "/agents"): MANAGE_AGENTS,
    ("GET", "/agents/{agentId}"): READ,
    ("PATCH", "/agents/{agentId}"): MANAGE_AGENTS,
    ("DELETE", "/agents/{agentId}"): MANAGE_AGENTS,
    ("GET", "/agents/{agentId}/schedules"): ADMINISTER,
    ("GET", "/agents/{agentId}/schedules/{job}"): ADMINISTER,
    ("PATCH", "/agents/{agentId}/schedules/{job}"): ADMINISTER,
    ("GET", FILES): READ,
    ("GET", FILES + "/{name}"): READ,
    ("PUT", FILES + "/{name}"): WRITE,
    ("DELETE", FILES + "/{name}"): WRITE,
    ("GET", FILES + "/{name}/diff"): READ,
    ("POST", FILES + "/{name}/restore"): WRITE,
    ("GET", FILES + "/{name}/revisions"): READ,
    ("GET", FILES + "/{name}/revisions/{number}"): READ,
    ("GET", "/agents/{agentId}/workspace/memory/search"): READ,
    ("POST", "/agents/{agentId}/workspace/memory/search"): READ,
    ("POST", "/agents/{agentId}/workspace/memory/write"): WRITE_SHARED,
    ("GET", "/agents/{agentId}/workspace/prompt-files"): READ,
    ("PUT", "/agents/{agentId}/workspace/prompt-files"): WRITE_SHARED,
    ("GET", "/audit"): ADMINISTER,
    ("POST", "/chat"): CHAT,
    ("POST", "/chat/stream"): CHAT,
    ("GET", "/members"): READ,
    ("POST", "/members"): ADMINISTER,
    ("GET", "/members/{userId}"): READ,
    ("PATCH", "/members/{userId}"): ADMINISTER,
    ("DELETE", "/members/{userId}"): ADMINISTER,
    ("POST", "/memory/{agentId}/context"): READ,
    ("POST", "/memory/{agentId}/search"): READ,
    ("GET", "/memory/{agentId}/conversations"): READ,
    ("GET", "/memory/{agentId}/conversations/{conversationId}"): READ,
    ("DELETE", "/memory/{agentId}/conversations/{conversationId}"): WRITE,
    ("GET", "/memory/{agentId}/contradictions"): READ,
    ("POST", "/memory/{agentId}/contradictions/{contradictionId}/resolve"): WRITE,
    ("POST", "/memory/{agentId}/contradictions/{contradictionId}/undo"): WRITE,
    ("GET", "/memory/{agentId}/facts"): READ,
    ("POST", "/memory/{agentId}/facts"): WRITE,
    ("GET", "/memory/{agentId}/facts/{factId}"): READ,
    ("PATCH", "/memory/{agentId}/facts/{factId}"): WRITE,
    ("POST", "/memory/{agentId}/facts/{factId}/feedback"): WRITE,
    ("GET", "/memory/{agentId}/facts/{factId}/history"): READ,
    ("POST", "/memory/{agentId}/feedback"): WRITE,
    ("GET", "/memory/{agentId}/entries"): READ,
    ("POST", "/memory/{agentId}/entries"): WRITE,
    ("GET", "/memory/{agentId}/entries/{entryId}"): READ,
    ("PUT", "/memory/{agentId}/entries/{entryId}"): WRITE,
    ("PATCH", "/memory/{agentId}/entries/{entryId}"): WRITE,
    ("DELETE", "/memory/{agentId}/entries/{entryId}"): WRITE,
    ("GET", "/memory/{agentId}/entries/{entryId}/history"): READ,
    ("GET", "/memory/{agentId}/runs"): READ,
    ("GET", "/memory/{agentId}/runs/{runId}"): READ,
    ("POST", "/memory/{agentId}/structured-consolidation"): (Role.MEMBER, Grant.JOBS),
    ("POST", "/memory/{agentId}/summarize/{conversationId}"): (Role.MEMBER, Grant.JOBS),
    ("POST", "/memory/{agentId}/turns"): WRITE,
    ("GET", "/owners"): ADMINISTER,
    ("GET", "/owners/{ownerId}"): ADMINISTER,
    ("PATCH", "/owners/{ownerId}"): ADMINISTER,
    ("GET", "/plugins"): ADMINISTER,
    ("GET", "/plugins/{kind}"): ADMINISTER,
    ("PUT", "/plugins/{kind}"): ADMINISTER,
    ("POST", "/plugins/{kind}/check"): ADMINISTER,
    ("GET", "/settings"): (Role.MEMBER, Grant.READ),
    ("PUT", "/settings"): ADMINISTER,
    ("DELETE", "/settings/{key}"): ADMINISTER,
    ("GET", "/tokens"): READ,
    ("POST", "/tokens"): READ,
    ("DELETE", "/tokens/{tokenId}"): READ,
    ("GET", "/usage"): ADMINISTER,
    ("GET", "/workspaces"): READ,
}
SESSION_ONLY = {("POST", "/tokens")}
"""What no token may do, whatever it holds."""
OPEN = {"/", "/admin/", "/api/schema/", "/api/docs/", "/health/live", "/health/ready", "/metrics"}
"""Addresses outside the API: each knows for itself whom it answers."""

BODIES: Mapping[tuple[str, str], dict[str, Any]] = {
    ("POST", "/agents"): {"name": "Second"},
    ("PATCH", "/agents/{agentId}"): {"description": "Answers."},
    ("PATCH", "/agents/{agentId}/schedules/{job}"): {"timezone": "Europe/Berlin"},
    ("PUT", FILES + "/{name}"): {"content": "# Mine\n"},
    ("POST", FILES + "/{name}/restore"): {"revision": 1},
    ("POST", "/agents/{agentId}/workspace/memory/search"): {"query": "mine"},
    ("POST", "/agents/{agentId}/workspace/memory/write"): {
        "filename": "MEMORY.md",
        "strategy": "append",
        "content": "Noted.",
    },
    ("PUT", "/agents/{agentId}/workspace/prompt-files"): {"files": [{"name": "AGENTS.md", "enabled": True}]},
    ("POST", "/chat"): {"agentId": "{agentId}", "message": "Hello there"},
    ("POST", "/chat/stream"): {"agentId": "{agentId}", "message": "Hello there"},
    ("POST", "/members"): {"username": "newcomer", "role": "viewer"},
    ("PATCH", "/members/{userId}"): {"role": "viewer"},
    ("POST", "/memory/{agentId}/context"): {"query": "tea"},
    ("POST", "/memory/{agentId}/contradictions/{contradictionId}/resolve"): {"decision": "ignore"},
    ("POST", "/memory/{agentId}/contradictions/{contradictionId}/undo"): {},
    ("POST", "/memory/{agentId}/facts"): {"statement": "Tea is had at four."},
    ("PATCH", "/memory/{agentId}/facts/{factId}"): {"category": "habits"},
    ("POST", "/memory/{agentId}/facts/{factId}/feedback"): {"helpful": True},
    ("POST", "/memory/{agentId}/feedback"): {"recallId": "fact:{factId}", "helpful": True},
    ("POST", "/memory/{agentId}/entries"): {"type": "user", "key": "tea", "content": "Likes green tea."},
    ("PUT", "/memory/{agentId}/entries/{entryId}"): {"content": "Keeps two of them."},
    ("PATCH", "/memory/{agentId}/entries/{entryId}"): {"content": "Keeps three of them."},
    ("POST", "/memory/{agentId}/search"): {"query": "tea"},
    ("POST", "/memory/{agentId}/structured-consolidation"): {},
    ("POST", "/memory/{agentId}/summarize/{conversationId}"): {},
    ("POST", "/memory/{agentId}/turns"): {
        "conversationId": "c2",
        "messages": [{"role": "user", "content": "I like tea."}],
    },
    ("PATCH", "/owners/{ownerId}"): {"name": "Somebody"},
    ("PUT", "/plugins/{kind}"): {"enabled": True, "config": {}},
    ("POST", "/plugins/{kind}/check"): {},
    ("PUT", "/settings"): {"key": "mate.memory.cooldown-minutes", "value": 7, "agentId": "{agentId}"},
    ("POST", "/tokens"): {"name": "more", "grants": ["read"]},
}
"""A body that would be accepted; a body's `{agentId}` and `{factId}` are filled in as in a path."""
QUERIES = {
    ("GET", "/agents/{agentId}/workspace/memory/search"): "?query=mine",
    ("POST", "/memory/{agentId}/structured-consolidation"): "?wait=0",
    ("POST", "/memory/{agentId}/summarize/{conversationId}"): "?wait=0",
    ("DELETE", "/settings/{key}"): "?agentId={agentId}",
}
NOT_THEIRS = {"agentId", "contradictionId", "entryId", "factId", "ownerId", "runId", "tokenId", "userId"}
"""Arguments that name a row of the workspace, which does not exist for anybody outside it."""
SECRETS = ("-acme", "Acme", "zephyr")
"""Words that only Alice's workspace holds."""

each_route = pytest.mark.parametrize("route", ROUTES, ids=" ".join)


@dataclass
class Cast:
    """Both worlds and the arguments with which every path leads somewhere in Alice's."""

    acme: World
    umbra: World
    arguments: dict[str, object]
    clients: dict[str, APIClient] = field(default_factory=dict)
    """One for each caller: to make one costs more than to ask."""

    def by_token(self, secret: str | None) -> APIClient:
        """A client with that token, or with nothing."""
        client = self.clients.setdefault("", client_of(None))
        client.credentials(**({"HTTP_AUTHORIZATION": f"Bearer {secret}"} if secret else {}))
        return client

    def by_session(self, person: Person) -> APIClient:
        """A client in which that person has logged in."""
        if person.token not in self.clients:
            self.clients[person.token] = APIClient(raise_request_exception=False)
            self.clients[person.token].force_login(person.user)
        return self.clients[person.token]

    def call(self, client: APIClient, route: tuple[str, str], *, method: str = "", query: str = "") -> Any:
        """The answer to that route, sent with path arguments and a body that would be accepted."""
        address = API + route[1] + (query or QUERIES.get(route, ""))
        for name, value in self.arguments.items():
            address = address.replace("{" + name + "}", str(value))
        body = {name: self._filled(value) for name, value in BODIES.get(route, {}).items()}
        verb = method or route[0]
        if verb in {"GET", "HEAD", "OPTIONS"}:
            return getattr(client, verb.lower())(address)
        return getattr(client, verb.lower())(address, body if route in BODIES else None)

    def _filled(self, value: object) -> object:
        if value == "{agentId}":
            return self.arguments["agentId"]
        return value.replace("{factId}", str(self.arguments["factId"])) if isinstance(value, str) else value


@pytest.fixture(scope="module")
def _made(django_db_setup: None, django_db_blocker) -> Iterator[Cast]:
    with django_db_blocker.unblock(), undone(), joined(Sample):
        acme, umbra = factories.acme(), factories.umbra()
        for world in (acme, umbra):
            save_plugin(world.workspace.pk, Sample.kind, config={}, enabled=False, by=Actor("system"))
        User.objects.create_user("newcomer")
        for person in acme.people.values():
            _speak(acme, person)
        made = Cast(acme, umbra, _arguments(acme))
        for person in (*acme.people.values(), umbra.mallory):
            made.by_session(person)
        yield made


@pytest.fixture
def cast(_made: Cast, django_db_blocker) -> Iterator[Cast]:
    """Made once for the module; what a test changes is taken back."""
    with django_db_blocker.unblock(), undone():
        yield _made


@contextmanager
def undone() -> Iterator[None]:
    """Takes back what is done inside, which finds itself in no transaction of its own."""
    outer = tenancy.WATER_MARK
    with transaction.atomic():
        tenancy.WATER_MARK = tenancy.transaction_depth()
        try:
            yield
        finally:
            tenancy.WATER_MARK = outer
            transaction.set_rollback(True)


def _speak(world: World, person: Person) -> None:
    """A conversation and a file of their own."""
    said = [{"role": "user", "content": "I keep a zephyr in the cellar."}]
    address = f"{API}/memory/{world.agent_id}/turns"
    answer = person.client().post(address, {"conversationId": "c1", "messages": said})
    assert answer.status_code == 201
    with tenant(world.personal(person.owner_key)):
        write_file(
            world.personal(person.owner_key),
            "PROFILE.md",
            "# A zephyr is mine\n",
            author=Author(AuthorKind.PERSON, f"user:{person.user.pk}"),
        )


def _torn(bucket: BucketRef) -> int:
    """A contradiction of two facts of that bucket."""
    now = timezone.now()
    claims = [
        Claim(text, (Source(SourceKind.API, f"api:{text}", now),))
        for text in ("Sings bass.", "Never sings bass.")
    ]
    facts = [one.fact_id for one in learn(bucket, claims, actor="test", now=now)]
    with tenant(bucket):
        row = Contradiction.objects.create(
            workspace_id=bucket.workspace_id,
            bucket_id=bucket.id,
            a_id=facts[0],
            b_id=facts[1],
            judged_by="rules",
            found_at=now,
        )
    return int(row.pk)


def _arguments(world: World) -> dict[str, object]:
    spare = User.objects.create_user("spare-acme")
    with door(Door.OPERATOR):
        add_member(world.workspace.pk, user=spare, role=Role.VIEWER, actor="system")
        token, _ = issue_token(
            world.workspace.pk, user_id=spare.pk, name="spare", grants=["read"], actor="system"
        )
        owner = Owner.unscoped.get(key=world.vera.owner_key, workspace_id=world.workspace.pk)
        run = Run.unscoped.create(
            workspace_id=world.workspace.pk,
            bucket_id=world.team.id,
            kind="extract",
            created_at=owner.created_at,
        )
    entry = world.olivia.client().post(
        f"{API}/memory/{world.agent_id}/entries",
        {"type": "user", "key": "pet", "content": "Keeps a zephyr at home."},
        format="json",
    )
    stated = world.olivia.client().post(
        f"{API}/memory/{world.agent_id}/facts", {"statement": "Olivia reads maps."}, format="json"
    )
    torn = _torn(world.personal(world.olivia.owner_key))
    return {
        "contradictionId": torn,
        "factId": stated.json()["id"],
        "agentId": world.agent_id,
        "entryId": entry.json()["id"],
        "name": "PROFILE.md",
        "number": 1,
        "job": "structured-consolidation",
        "conversationId": "c1",
        "runId": run.pk,
        "ownerId": owner.pk,
        "userId": spare.pk,
        "tokenId": token.pk,
        "key": "mate.memory.cooldown-minutes",
        "kind": Sample.kind,
    }


def names_a_row(route: tuple[str, str]) -> bool:
    """Whether a path argument names a row of a workspace."""
    return any("{" + name + "}" in route[1] for name in NOT_THEIRS)


def suffices(role: Role, needs: tuple[Role, Grant]) -> bool:
    """Whether a caller of that role, with a token of all grants, may: a token never does more than its user."""
    return role >= needs[0] and needs[1] in GRANTS_OF_ROLE[role]


def token_without(world: World, person: Person, grant: Grant) -> str:
    with workspace(world.workspace.pk):
        _, secret = issue_token(
            world.workspace.pk,
            user_id=person.user.pk,
            name="less",
            grants=[one for one in ALL_GRANTS if one != grant.value],
            actor="system",
        )
    return secret


# --- complete ---------------------------------------------------------------------------------------------


def test_every_route_stands_in_the_table_with_what_it_needs():
    assert {(one.method, one.path): (one.needs.role, one.needs.grant) for one in routes()} == ROUTES


def test_every_address_of_the_api_is_an_endpoint_that_says_what_it_needs():
    for address in addresses():
        if not address.path.startswith(API + "/"):
            continue
        view = address.view_class
        assert view is not None, address.path
        assert issubclass(view, Endpoint), address.path
        handled = {method for method in METHODS if hasattr(view, method.lower())}
        assert handled, address.path
        assert {method.upper() for method in view.needs} == handled, address.path
        assert all(isinstance(one, Needs) for one in view.needs.values()), address.path


def test_no_endpoint_says_for_itself_who_is_calling():
    for address in addresses():
        view = address.view_class
        if view is not None and issubclass(view, Endpoint):
            assert view.authentication_classes == Endpoint.authentication_classes, address.path
            assert view.permission_classes == APIView.permission_classes, address.path
            assert view.parser_classes == Endpoint.parser_classes, address.path


def test_what_is_open_is_named():
    assert {one.path for one in addresses() if not one.path.startswith(API + "/")} == OPEN


def test_every_body_and_query_belongs_to_a_route():
    assert set(BODIES) <= set(ROUTES)
    assert set(QUERIES) <= set(ROUTES)
    needing = {route for route in ROUTES if route[0] in {"POST", "PUT", "PATCH"}}
    assert needing <= set(BODIES), "Say what would be accepted."


# --- the matrix -------------------------------------------------------------------------------------------


@each_route
def test_nobody_without_a_token(cast: Cast, route: tuple[str, str]):
    for secret in (None, "mm_" + "a" * 43):
        response = cast.call(cast.by_token(secret), route)
        assert response.status_code == 401
        assert response["WWW-Authenticate"] == "Bearer"
        assert response["Content-Type"] == "application/problem+json"


@each_route
def test_a_token_in_the_query_is_none(cast: Cast, route: tuple[str, str]):
    for name in ("token", "access_token", "api_key", "apiKey", "Authorization", "key"):
        response = cast.call(cast.by_token(None), route, query=f"?{name}={cast.acme.olivia.token}")
        assert response.status_code == 401


@each_route
def test_mallory_finds_nothing_of_alices(cast: Cast, route: tuple[str, str]):
    mallory = cast.umbra.mallory
    for client in (cast.by_token(mallory.token), cast.by_session(mallory)):
        with undone():
            response = cast.call(client, route)
        if "{agentId}" in str(BODIES.get(route, "")) + QUERIES.get(route, "") or names_a_row(route):
            assert response.status_code == 404, shown(response)
        elif route in SESSION_ONLY:
            assert response.status_code in {201, 403}
        else:
            assert response.status_code in {200, 201}, shown(response)
        assert [word for word in SECRETS if word in shown(response)] == []


@pytest.mark.parametrize("route", [one for one in ROUTES if names_a_row(one)], ids=" ".join)
def test_a_row_of_another_workspace_looks_like_one_that_never_was(cast: Cast, route: tuple[str, str]):
    client = cast.by_token(cast.umbra.mallory.token)
    told = []
    for factor in (1, 1_000_003):
        named = {name: int(str(cast.arguments[name])) * factor for name in NOT_THEIRS}
        response = Cast(cast.acme, cast.umbra, cast.arguments | named).call(client, route)
        text = shown(response)
        for number in sorted(map(str, named.values()), key=len, reverse=True):
            text = text.replace(f" {number}", " N")
        told.append((response.status_code, text))
    assert told[0] == told[1]


@each_route
@pytest.mark.parametrize("name", ["vera", "bob", "alice", "olivia"])
def test_a_member_may_what_their_role_allows(cast: Cast, route: tuple[str, str], name: str):
    person = cast.acme.people[name]
    for client in (cast.by_token(person.token), cast.by_session(person)):
        with undone():
            response = cast.call(client, route)
        is_barred = route in SESSION_ONLY and client is cast.clients[""]
        if suffices(person.role, ROUTES[route]) and not is_barred:
            assert response.status_code not in {401, 403, 405, 415}, shown(response)
            assert response.status_code < 500
        else:
            assert response.status_code == 403, shown(response)


@each_route
def test_what_the_workspace_owner_sends_is_done(cast: Cast, route: tuple[str, str]):
    """Otherwise a 400 or 404 before the check would hide a route that lets everybody in."""
    response = cast.call(cast.by_session(cast.acme.olivia), route)
    refused = {
        ("DELETE", "/agents/{agentId}"): 400,  # it wants the agent's name
        ("POST", "/memory/{agentId}/contradictions/{contradictionId}/undo"): 409,  # nothing is decided
    }
    assert response.status_code == refused.get(route, response.status_code)
    assert route in refused or response.status_code in {200, 201, 202, 204}, shown(response)


@each_route
def test_a_token_without_the_grant_may_not(cast: Cast, route: tuple[str, str]):
    secret = token_without(cast.acme, cast.acme.olivia, ROUTES[route][1])
    response = cast.call(cast.by_token(secret), route)
    assert response.status_code == 403
    assert response.json()["code"] == "grant_needed"


@each_route
def test_head_needs_what_get_needs_and_other_methods_are_refused(cast: Cast, route: tuple[str, str]):
    secret = token_without(cast.acme, cast.acme.olivia, ROUTES[route][1])
    served = {method for method, path in ROUTES if path == route[1]}
    if route[0] == "GET":
        assert cast.call(cast.by_token(None), route, method="HEAD").status_code == 401
        assert cast.call(cast.by_token(secret), route, method="HEAD").status_code == 403
        assert cast.call(cast.by_token(cast.acme.olivia.token), route, method="HEAD").status_code == 200
    for method in set(METHODS) - served:
        assert cast.call(cast.by_token(None), route, method=method).status_code == 401
        assert cast.call(cast.by_token(cast.acme.olivia.token), route, method=method).status_code == 405
    assert cast.call(cast.by_token(None), route, method="OPTIONS").status_code == 401
    assert cast.call(cast.by_token(secret), route, method="OPTIONS").status_code in {403, 405}


def shown(response: Any) -> str:
    return "" if response.streaming else str(response.content.decode())
