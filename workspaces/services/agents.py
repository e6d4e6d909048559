"""Agents: born with their files, changed, taken away."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from django.db import IntegrityError, transaction
from django.utils import timezone

from integrations.clients.models.names import check_model_name
from recall.services.index import remove_bucket
from workspaces.errors import BadInput, Conflict, NotFound, Unprocessable
from workspaces.logic.names import BORN_ORDER
from workspaces.models import Agent, Bucket
from workspaces.queries import language_of
from workspaces.services.audit import record_audit
from workspaces.services.files import Author, place_born_file
from workspaces.services.schedules import make_schedules
from workspaces.tenancy import Door, door, tenant, workspace
from workspaces.types import AuthorKind, BucketRef, Scope

_BORN: Final = Path(__file__).resolve().parent.parent / "born"


def create_agent(
    workspace_id: int,
    *,
    name: str,
    description: str = "",
    system_prompt: str = "",
    model: str = "",
    is_default: bool = False,
    user_id: int | None = None,
    actor: str,
    address: str = "",
) -> tuple[Agent, BucketRef]:
    """A new agent, its TEAM bucket and its four files, in the workspace's language, in one transaction.

    Opens its own transactions. Raises `Conflict` "agent_exists" for a name that is taken.
    """
    if not name.strip():
        raise BadInput("bad_name", "An agent needs a name.", field="name")
    _check_model(model)
    now = timezone.now()
    with transaction.atomic():
        with workspace(workspace_id):
            agent = _insert(
                Agent(
                    workspace_id=workspace_id,
                    name=name.strip(),
                    description=description,
                    system_prompt=system_prompt,
                    model=model,
                    is_default=is_default,
                    created_by_id=user_id,
                    created_at=now,
                )
            )
            bucket: Bucket = Bucket.objects.create(
                workspace_id=workspace_id, agent=agent, scope=Scope.TEAM.value, created_at=now
            )
            make_schedules(agent.pk)
            language = language_of(workspace_id)
            record_audit(
                workspace_id, actor=actor, action="agent.created", target=f"agent:{agent.pk}", address=address
            )
        team = BucketRef(id=bucket.pk, workspace_id=workspace_id, scope=Scope.TEAM, agent_id=agent.pk)
        author = Author(AuthorKind.SYSTEM, "system", reason="Born with the agent.", address=address)
        with tenant(team):
            for order, file_name in enumerate(BORN_ORDER):
                place_born_file(
                    team, file_name, born_text(language, file_name), sort_order=order, author=author
                )
    return agent, team


def change_agent(
    workspace_id: int, agent_id: int, *, actor: str, address: str = "", **values: str | bool
) -> Agent:
    """Changes the fields given: name, description, system_prompt, model, enabled, is_default.

    Inside `workspace(…)` or the operator's door.
    """
    agent: Agent | None = (
        Agent.objects.of_workspace(workspace_id).select_for_update().filter(pk=agent_id).first()
    )
    if agent is None:
        raise NotFound("agent_not_found", f"There is no agent {agent_id} in this workspace.")
    if not str(values.get("name", agent.name)).strip():
        raise BadInput("bad_name", "An agent needs a name.", field="name")
    if agent.is_default and values.get("is_default") is False:
        raise Unprocessable("default_agent", "A workspace keeps a default agent; name another instead.")
    if values.get("is_default"):
        Agent.objects.of_workspace(workspace_id).filter(is_default=True).exclude(pk=agent_id).update(
            is_default=False
        )
    _check_model(str(values.get("model", "")))
    for field, value in values.items():
        setattr(agent, field, value.strip() if field == "name" and isinstance(value, str) else value)
    try:
        with transaction.atomic():
            agent.save(update_fields=list(values))
    except IntegrityError as twin:
        raise _name_taken(agent.name) from twin
    record_audit(
        workspace_id,
        actor=actor,
        action="agent.changed",
        target=f"agent:{agent_id}",
        address=address,
        detail={"fields": sorted(values)},
    )
    return agent


def delete_agent(workspace_id: int, agent_id: int, *, confirm: str, actor: str, address: str = "") -> None:
    """Removes an agent and all that it remembers, of everybody; nothing of it can be brought back.

    `confirm` is its name, else `BadInput` "confirm_needed". The default agent goes last (`Unprocessable`).
    Opens the door of erasure.
    """
    with door(Door.ERASURE):
        agents = Agent.objects.of_workspace(workspace_id)
        agent: Agent | None = agents.select_for_update().filter(pk=agent_id).first()
        if agent is None:
            raise NotFound("agent_not_found", f"There is no agent {agent_id} in this workspace.")
        if confirm != agent.name:
            raise BadInput(
                "confirm_needed",
                f"This removes all that {agent.name!r} remembers, for good: confirm with its name."
                " To stop it, disable it.",
                field="confirm",
            )
        if agent.is_default and agents.exclude(pk=agent_id).exists():
            raise Unprocessable("default_agent", "Make another agent the default one first.")
        buckets = list(
            Bucket.objects.of_workspace(workspace_id).filter(agent=agent).values_list("pk", flat=True)
        )
        agent.delete()
        for bucket_id in buckets:
            remove_bucket(bucket_id)
        record_audit(
            workspace_id,
            actor=actor,
            action="agent.deleted",
            target=f"agent:{agent_id}",
            address=address,
            detail={"name": agent.name},
        )


def born_text(language: str, file_name: str) -> str:
    """What a file says when an agent is born, in that language (`en` or `zh`)."""
    return (_BORN / language / file_name).read_text("utf-8")


def _insert(agent: Agent) -> Agent:
    try:
        with transaction.atomic():
            if agent.is_default:
                Agent.objects.of_workspace(agent.workspace_id).filter(is_default=True).update(
                    is_default=False
                )
            agent.save(force_insert=True)
    except IntegrityError as twin:
        raise _name_taken(agent.name) from twin
    return agent


def _check_model(name: str) -> None:
    if not name:
        return
    try:
        check_model_name(name)
    except ValueError as bad:
        raise BadInput("bad_model", str(bad), field="model") from bad


def _name_taken(name: str) -> Conflict:
    return Conflict("agent_exists", f"An agent named {name!r} exists in this workspace.", field="name")
