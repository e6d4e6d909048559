"""The fixed cast: Alice (workspace admin), Bob (member), Vera (viewer); Mallory owns another workspace."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django.contrib.auth.models import User
from django.utils import timezone
from rest_framework.test import APIClient

from facts.models import (
    Contradiction,
    Evidence,
    Fact,
    FactRevision,
    Feedback,
    ProjectedSection,
    Receipt,
    Tombstone,
)
from memory.models import Entry, EntryRevision
from workspaces.models import File, Workspace
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


def fill_knowledge(bucket: BucketRef, words: str) -> None:
    """A row of every table of facts and entries, in that bucket, which has a file. Inside `tenant(…)`."""
    now = timezone.now()
    own = {"workspace_id": bucket.workspace_id, "bucket_id": bucket.id}
    a, b = (
        Fact.objects.create(
            **own,
            statement=f"{words} {n}",
            fingerprint=f"{n:032}",
            confidence=0.5,
            trust=0.5,
            confirmed_at=now,
            learned_at=now,
            updated_at=now,
        )
        for n in (1, 2)
    )
    Evidence.objects.create(
        **own, fact=a, kind="message", root="message:1", quote=words, at=now, created_at=now
    )
    FactRevision.objects.create(**own, fact=a, number=1, op="add", actor="job:extract", at=now)
    Contradiction.objects.create(**own, a=a, b=b, judged_by="rules", found_at=now)
    Feedback.objects.create(**own, item=f"fact:{a.pk}", voter="user:1", helpful=True, at=now)
    file = File.objects.of(bucket).first()
    ProjectedSection.objects.create(**own, file=file, digest="0" * 32, at=now)
    receipt = Receipt.objects.create(**own, actor="user:1", by="fact", at=now)
    Tombstone.objects.create(**own, fingerprint="0" * 32, receipt=receipt, created_at=now)
    entry = Entry.objects.create(
        **own, type="user", key="drink", content=words, author_kind="person", created_at=now, updated_at=now
    )
    EntryRevision.objects.create(
        **own,
        entry=entry,
        number=1,
        op="put",
        content=words,
        author_kind="person",
        actor="user:1",
        created_at=now,
    )
