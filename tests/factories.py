"""The fixed cast: Alice (workspace admin), Bob (member), Vera (viewer); Mallory owns another workspace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django.contrib.auth.models import User
from rest_framework.test import APIClient

from workspaces.models import Workspace
from workspaces.services.agents import create_agent
from workspaces.services.owners import make_bucket
from workspaces.services.tenants import add_member, create_workspace
from workspaces.services.tokens import issue_token
from workspaces.tenancy import Door, door, workspace
from workspaces.types import BucketRef, Grant, Role, Scope

ALL_GRANTS = tuple(grant.value for grant in Grant)


@dataclass
class Person:
    """A user with a role, and a token with all grants."""

    user: User
    role: Role
    token: str
    workspace_id: int

    def client(self) -> APIClient:
        """A client that calls with this person's token."""
        return client_of(self.token)

    @property
    def owner_key(self) -> str:
        return f"user:{self.user.pk}"


@dataclass
class World:
    """One workspace with its people and its agent."""

    workspace: Workspace
    agent_id: int
    team: BucketRef
    people: dict[str, Person] = field(default_factory=dict)

    def __getattr__(self, name: str) -> Person:
        try:
            person: Person = self.__dict__["people"][name]
        except KeyError as missing:
            raise AttributeError(name) from missing
        return person

    def personal(self, owner_key: str) -> BucketRef:
        """The bucket of a person with the agent, made if new."""
        with workspace(self.workspace.pk):
            made = make_bucket(self.team, owner_key)
        return replace(self.team, id=made, scope=Scope.PERSONAL, owner_key=owner_key)


def client_of(token: str | None) -> APIClient:
    """An HTTP client with a token, or with nothing."""
    client = APIClient(raise_request_exception=False)
    if token:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def make_world(slug: str, cast: dict[str, Role], *, language: str = "en", zone: str = "UTC") -> World:
    """A workspace, its agent (the default one), and its people with tokens."""
    with door(Door.OPERATOR):
        made = create_workspace(name=slug.title(), slug=slug, language=language, zone=zone)
        agent, team = create_agent(made.pk, name="Mate", is_default=True, actor="system")
        world = World(workspace=made, agent_id=agent.pk, team=team)
        for name, role in cast.items():
            user = User.objects.create_user(f"{name}-{slug}", password="a long password")
            add_member(made.pk, user=user, role=role, actor="system")
            _, secret = issue_token(made.pk, user_id=user.pk, name=name, grants=ALL_GRANTS, actor="system")
            world.people[name] = Person(user, role, secret, made.pk)
    return world


def acme() -> World:
    """The workspace of Alice, Bob and Vera; Olivia is its workspace owner."""
    return make_world(
        "acme", {"olivia": Role.OWNER, "alice": Role.ADMIN, "bob": Role.MEMBER, "vera": Role.VIEWER}
    )


def umbra() -> World:
    """The other workspace, where Mallory may do everything."""
    return make_world("umbra", {"mallory": Role.OWNER})
