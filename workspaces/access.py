"""The only doors from a request to a bucket.

A request becomes a `Principal` (who calls, in which workspace, with which role and grants), a principal
opens an agent, and an opened agent yields a bucket to write and a reach to read. Missing and forbidden look
the same: what the caller may not know of does not exist.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from django.contrib.auth.models import User

from workspaces.errors import BadInput, Forbidden, NotFound, Unauthenticated
from workspaces.logic.owners import api_key_of, user_key_of
from workspaces.logic.roles import GRANTS_OF_ROLE
from workspaces.models import GLOBAL_BUCKET_ID, GLOBAL_WORKSPACE_ID, Bucket, Member, PersonalAccessToken
from workspaces.services.owners import make_bucket
from workspaces.settings import Effective, layered
from workspaces.tenancy import Door, door, read_as_workspace, read_through, workspace
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
    person of whom nothing is known yet. `called` is the person's name, empty if unknown. `settings` are those in
    force for the agent, which were read with it.
    """

    principal: Principal
    agent: AgentRef
    owner_key: str
    own: BucketRef | None
    bucket: BucketRef | None
    reach: Reach
    called: str = ""
    settings: Effective = field(default_factory=lambda: layered(()), compare=False)

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
    """The caller that a token stands for; raises `Unauthenticated`. One statement, and one write a minute at most."""
    rows = read_through(Door.AUTHENTICATE, _CALLER, [hash_token(secret), now])
    if not rows:
        raise Unauthenticated("bad_token", "The token is unknown, expired or revoked.")
    token = _Token(*rows[0])
    if token.last_used_at is None or token.last_used_at < now - TOUCH_EVERY:
        with door(Door.AUTHENTICATE):
            PersonalAccessToken.unscoped.filter(pk=token.id).update(last_used_at=now)
    if token.role is None:
        raise Unauthenticated("bad_token", "The token's user is no longer a member of the workspace.")
    role = Role(token.role)
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
        actor=f"token:{token.id}",
        token_id=token.id,
        agent_ids=None if token.agent_ids is None else frozenset(token.agent_ids),
        namespace=token.namespace,
        address=address,
    )


class _Token(NamedTuple):
    id: int
    workspace_id: int
    user_id: int
    grants: list[str]
    agent_ids: list[int] | None
    namespace: str
    last_used_at: datetime | None
    role: int | None


# In plain SQL, as what opens an agent: every request asks, and putting such queries together by the ORM took a
# third of a search's time.
_CALLER: Final = """
SELECT t.id, t.workspace_id, t.user_id, t.grants, t.agent_ids, t.namespace, t.last_used_at, m.role
FROM workspaces_personalaccesstoken t
JOIN auth_user u ON u.id = t.user_id AND u.is_active
LEFT JOIN workspaces_member m ON m.workspace_id = t.workspace_id AND m.user_id = t.user_id
WHERE t.sha256 = %s AND t.revoked_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > %s)
"""


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
    return _seen(principal, agent_id, owner_key="", enabled_only=enabled_only).agent


@dataclass(frozen=True, slots=True)
class _Seen:
    """An agent as one person meets it. `own` is None when there is no bucket of theirs yet."""

    agent: AgentRef
    own: int | None
    called: str
    settings: Effective


def _seen(principal: Principal, agent_id: int | None, *, owner_key: str, enabled_only: bool) -> _Seen:
    rows = read_as_workspace(
        principal.workspace_id,
        _AGENT_BY_ID if agent_id is not None else _DEFAULT_AGENT,
        [
            [GLOBAL_WORKSPACE_ID, principal.workspace_id],
            owner_key,
            principal.workspace_id,
            *([] if agent_id is None else [agent_id]),
        ],
    )
    if not rows or (principal.agent_ids is not None and rows[0][0] not in principal.agent_ids):
        named = "default agent" if agent_id is None else f"agent {agent_id}"
        raise NotFound("agent_not_found", f"There is no {named} in this workspace.")
    pk, name, system_prompt, model, enabled, team, own, called, overrides = rows[0]
    if enabled_only and not enabled:
        raise Forbidden("agent_disabled", f"The agent {name!r} is disabled.")
    workspace_id = principal.workspace_id
    agent = AgentRef(
        id=pk,
        workspace_id=workspace_id,
        name=name,
        system_prompt=system_prompt,
        model=model,
        enabled=enabled,
        team=BucketRef(id=team, workspace_id=workspace_id, scope=Scope.TEAM, agent_id=pk),
    )
    return _Seen(agent, own, called or "", layered(json.loads(overrides or "[]")))


_AGENT: Final = """
SELECT a.id, a.name, a.system_prompt, a.model, a.enabled, team.id, own.id, o.name,
  (SELECT json_agg(json_build_array(s.workspace_id, s.agent_id, s.key, s.value))::text
   FROM workspaces_settingoverride s
   WHERE (s.workspace_id = ANY(%s) AND s.agent_id IS NULL) OR s.agent_id = a.id)
FROM workspaces_bucket team
JOIN workspaces_agent a ON a.id = team.agent_id
LEFT JOIN workspaces_owner o ON o.workspace_id = team.workspace_id AND o.key = %s
LEFT JOIN workspaces_bucket own ON own.agent_id = a.id AND own.owner_id = o.id
WHERE team.workspace_id = %s AND team.scope = 'TEAM' AND
"""
_AGENT_BY_ID: Final = _AGENT + "a.id = %s"
_DEFAULT_AGENT: Final = _AGENT + "a.is_default"


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
    seen = _seen(principal, agent_id, owner_key=owner_key, enabled_only=works)
    agent, bucket_id = seen.agent, seen.own
    if bucket_id is None and writes:
        with workspace(principal.workspace_id):
            bucket_id = make_bucket(agent.team, owner_key)
    is_isolated = seen.settings.flag("mate.memory.lifecycle-mediator-enabled")
    own = None
    if bucket_id is not None:
        own = replace(agent.team, id=bucket_id, scope=Scope.PERSONAL, owner_key=owner_key)
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
        called=seen.called,
        settings=seen.settings,
    )


def open_shared(principal: Principal, agent_id: int | None, *, writes: bool) -> Opened:
    """An agent's TEAM memory; writing it needs the role member."""
    seen = _seen(principal, agent_id, owner_key="", enabled_only=False)
    agent = seen.agent
    if writes:
        require(principal, role=Role.MEMBER)
    reach = Reach(agent.workspace_id, (agent.team.id, GLOBAL_BUCKET_ID), (agent.team.id,) if writes else ())
    return Opened(
        principal=principal,
        agent=agent,
        owner_key="system",
        own=None,
        bucket=agent.team,
        reach=reach,
        settings=seen.settings,
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
