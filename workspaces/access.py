"""The only doors from a request to a bucket.

A request becomes a `Principal` (who calls, in which workspace, with which role and grants), a principal
opens an agent, and an opened agent yields a bucket to write and a reach to read. Missing and forbidden look
the same: what the caller may not know of does not exist.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.contrib.auth.models import User
from django.db.models import Q

from workspaces.errors import BadInput, Forbidden, NotFound, Unauthenticated
from workspaces.logic.owners import api_key_of, user_key_of
from workspaces.logic.roles import GRANTS_OF_ROLE
from workspaces.models import GLOBAL_BUCKET_ID, Bucket, Member, PersonalAccessToken
from workspaces.services.owners import bucket_for_owner
from workspaces.settings import effective
from workspaces.tenancy import Door, door, workspace
from workspaces.types import BucketRef, Grant, Reach, Role, Scope

TOUCH_EVERY: Final = timedelta(minutes=1)
"""How often a token's last use is written at most (contract §2)."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling. `agent_ids` None means all agents; `actor` is how traces name the caller."""

    workspace_id: int
    user_id: int
    role: Role
    grants: frozenset[Grant]
    actor: str
    token_id: int | None = None
    agent_ids: frozenset[int] | None = None
    namespace: str = ""
    address: str = ""

    def has_role(self, least: Role) -> bool:
        """Whether the caller's role is at least that."""
        return self.role >= least


@dataclass(frozen=True, slots=True)
class AgentRef:
    """An agent as a value."""

    id: int
    workspace_id: int
    name: str
    system_prompt: str
    model: str
    enabled: bool
    team: BucketRef


@dataclass(frozen=True, slots=True)
class Opened:
    """What a caller may touch: the agent, the bucket that is written, the reach that is read.

    `own` is the person's own bucket, which holds their conversations; `bucket` is where memory of them is
    written: the same, or the shared one while isolation is switched off. Both are None when a reader names a
    person of whom nothing is known yet.
    """

    principal: Principal
    agent: AgentRef
    owner_key: str
    own: BucketRef | None
    bucket: BucketRef | None
    reach: Reach

    def personal(self) -> BucketRef:
        """The person's own bucket, where their conversations are."""
        if self.own is None:
            raise NotFound("not_found", "Nothing is known of this person.")
        return self.own

    def writable(self) -> BucketRef:
        """The bucket to write; it was made when it was opened for writing."""
        if self.bucket is None:
            raise NotFound("not_found", "Nothing is known of this person.")
        return self.bucket


def hash_token(secret: str) -> str:
    """SHA-256 of a token in hex, as it is stored."""
    return hashlib.sha256(secret.encode()).hexdigest()


def principal_of_token(secret: str, *, address: str, now: datetime) -> Principal:
    """The caller that a token stands for; raises `Unauthenticated`. One transaction, at most one write a minute."""
    with door(Door.AUTHENTICATE):
        token = (
            PersonalAccessToken.unscoped.filter(
                sha256=hash_token(secret), revoked_at=None, user__is_active=True
            )
            .filter(Q(expires_at=None) | Q(expires_at__gt=now))
            .first()
        )
        if token is None:
            raise Unauthenticated("bad_token", "The token is unknown, expired or revoked.")
        role = _role_in(token.workspace_id, token.user_id)
        if token.last_used_at is None or token.last_used_at < now - TOUCH_EVERY:
            PersonalAccessToken.unscoped.filter(pk=token.pk).update(last_used_at=now)
    if role is None:
        raise Unauthenticated("bad_token", "The token's user is no longer a member of the workspace.")
    grants = frozenset(Grant(grant) for grant in token.grants) & GRANTS_OF_ROLE[role] | (
        # Speaking for end users is what an integration's token is issued for: it needs no admin for a user.
        {Grant.ON_BEHALF} & frozenset(Grant(grant) for grant in token.grants)
        if role >= Role.MEMBER
        else frozenset()
    )
    return Principal(
        workspace_id=token.workspace_id,
        user_id=token.user_id,
        role=role,
        grants=grants,
        actor=f"token:{token.pk}",
        token_id=token.pk,
        agent_ids=None if token.agent_ids is None else frozenset(token.agent_ids),
        namespace=token.namespace,
        address=address,
    )


def principal_of_user(user: User, *, workspace_id: int | None, address: str) -> Principal:
    """The caller of a session. Without a workspace named, the one they belong to, if it is only one."""
    with door(Door.AUTHENTICATE):
        rows = list(
            Member.unscoped.filter(user_id=user.pk).order_by("pk").values_list("workspace_id", "role")
        )
    roles = dict(rows)
    if workspace_id is None:
        if len(roles) != 1:
            raise BadInput(
                "workspace_needed",
                f"You belong to {len(roles)} workspaces; name one in the header X-Workspace-Id.",
            )
        workspace_id = next(iter(roles))
    if workspace_id not in roles:
        raise NotFound("not_found", "There is no such workspace.")
    role = Role(roles[workspace_id])
    return Principal(
        workspace_id=workspace_id,
        user_id=user.pk,
        role=role,
        grants=GRANTS_OF_ROLE[role],
        actor=f"user:{user.pk}",
        address=address,
    )


def _role_in(workspace_id: int, user_id: int) -> Role | None:
    found = (
        Member.unscoped.filter(workspace_id=workspace_id, user_id=user_id)
        .values_list("role", flat=True)
        .first()
    )
    return None if found is None else Role(found)


def require(principal: Principal, *, role: Role = Role.VIEWER, grant: Grant | None = None) -> None:
    """Raises `Forbidden` naming the role or grant that is missing."""
    if not principal.has_role(role):
        raise Forbidden(
            "role_needed", f"This needs the role {role.name.lower()}; yours is {principal.role.name.lower()}."
        )
    if grant is not None and grant not in principal.grants:
        raise Forbidden("grant_needed", f"This needs the grant {grant.value!r}.")


def open_agent(principal: Principal, agent_id: int | None, *, enabled_only: bool = False) -> AgentRef:
    """The agent of that id in the caller's workspace (None: the default one); raises `NotFound`.

    An agent of another workspace, or outside a token's list, does not exist. A disabled one is refused
    (`Forbidden` "agent_disabled") where it would have to work.
    """
    with workspace(principal.workspace_id):
        return _agent(principal, agent_id, enabled_only=enabled_only)


def _agent(principal: Principal, agent_id: int | None, *, enabled_only: bool) -> AgentRef:
    teams = Bucket.objects.of_workspace(principal.workspace_id).filter(scope=Scope.TEAM.value)
    teams = teams.filter(agent__is_default=True) if agent_id is None else teams.filter(agent_id=agent_id)
    team = teams.select_related("agent").first()
    if team is None or (principal.agent_ids is not None and team.agent_id not in principal.agent_ids):
        named = "default agent" if agent_id is None else f"agent {agent_id}"
        raise NotFound("agent_not_found", f"There is no {named} in this workspace.")
    agent = team.agent
    if enabled_only and not agent.enabled:
        raise Forbidden("agent_disabled", f"The agent {agent.name!r} is disabled.")
    return AgentRef(
        id=agent.pk,
        workspace_id=agent.workspace_id,
        name=agent.name,
        system_prompt=agent.system_prompt,
        model=agent.model,
        enabled=agent.enabled,
        team=BucketRef(id=team.pk, workspace_id=team.workspace_id, scope=Scope.TEAM, agent_id=agent.pk),
    )


def owner_key_of(principal: Principal, end_user_id: str | None) -> str:
    """The key of the person meant: the named end user, else the caller. Naming one needs `on_behalf`."""
    if end_user_id is None:
        return user_key_of(principal.user_id)
    require(principal, grant=Grant.ON_BEHALF)
    return api_key_of(end_user_id, namespace=principal.namespace)


def open_personal(
    principal: Principal, agent_id: int | None, *, end_user_id: str | None, writes: bool, works: bool = False
) -> Opened:
    """A person's own memory with an agent, and with it all that they may read.

    `writes` makes the bucket if it is new. `works` refuses a disabled agent. With
    `mate.memory.lifecycle-mediator-enabled` off, what is written goes to the shared bucket.
    """
    owner_key = owner_key_of(principal, end_user_id)
    with workspace(principal.workspace_id):
        agent = _agent(principal, agent_id, enabled_only=works)
        own = bucket_for_owner(agent.team, owner_key, make=writes)
        is_isolated = effective(principal.workspace_id, agent.id).flag(
            "mate.memory.lifecycle-mediator-enabled"
        )
    shared = (agent.team.id, GLOBAL_BUCKET_ID)
    target = own if is_isolated else agent.team
    writes_to = dict.fromkeys(bucket.id for bucket in (own, target) if bucket is not None)
    return Opened(
        principal=principal,
        agent=agent,
        owner_key=owner_key,
        own=own,
        bucket=target,
        reach=Reach(agent.workspace_id, (own.id, *shared) if own else shared, tuple(writes_to)),
    )


def open_shared(principal: Principal, agent_id: int | None, *, writes: bool) -> Opened:
    """An agent's TEAM memory; writing it needs the role member."""
    agent = open_agent(principal, agent_id)
    if writes:
        require(principal, role=Role.MEMBER)
    reach = Reach(agent.workspace_id, (agent.team.id, GLOBAL_BUCKET_ID), (agent.team.id,) if writes else ())
    return Opened(
        principal=principal, agent=agent, owner_key="system", own=None, bucket=agent.team, reach=reach
    )


def open_for_job(bucket_id: int) -> tuple[BucketRef, Reach]:
    """The bucket of a job and what the job may read: the bucket itself, the agent's shared one, the global one.

    Made from a row of the outbox, never from a request.
    """
    with door(Door.OUTBOX):
        bucket = Bucket.unscoped.select_related("owner").get(pk=bucket_id).ref()
        team = (
            Bucket.unscoped.filter(agent_id=bucket.agent_id, owner=None).values_list("pk", flat=True).first()
            if bucket.agent_id is not None
            else None
        )
    seen = dict.fromkeys(number for number in (bucket.id, team, GLOBAL_BUCKET_ID) if number is not None)
    return bucket, Reach(bucket.workspace_id, tuple(seen), (bucket.id,))
