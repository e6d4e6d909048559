"""Overrides of settings: for everyone, for a workspace, or for one agent. In force on the next turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.contrib.auth.models import User
from django.utils import timezone

from workspaces.errors import BadInput, Forbidden, NotFound
from workspaces.logic.registry import Value, setting_named
from workspaces.models import GLOBAL_WORKSPACE_ID, Agent, SettingOverride
from workspaces.services.audit import record_audit
from workspaces.services.schedules import plan_anew

MAX_TEXT: Final = 2000
"""Characters that the text of a setting may have."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an override holds: in a workspace, or for one agent of it."""

    workspace_id: int
    agent_id: int | None = None

    @property
    def origin(self) -> str:
        """What a value from here is called: `global`, `workspace` or `agent`."""
        if self.agent_id is not None:
            return "agent"
        return "global" if self.workspace_id == GLOBAL_WORKSPACE_ID else "workspace"


EVERYWHERE: Final = Place(GLOBAL_WORKSPACE_ID)
"""The whole installation; only global administrators change it, through the operator's door."""


@dataclass(frozen=True, slots=True)
class Editor:
    """Who changes a setting; `user_id` is the person behind a token."""

    user_id: int
    actor: str
    address: str = ""


def set_override(place: Place, key: str, raw: object, *, by: Editor) -> Value:
    """Sets a value and returns it as parsed. Inside `workspace(…)` or the operator's door.

    Raises `BadInput` for an unknown key or a value out of bounds, `Forbidden` for a global one by someone who
    is no global administrator, `NotFound` for an agent of another workspace. The same value is no change.
    """
    setting = setting_named(key)
    value = setting.parse(raw)
    if isinstance(value, str) and (len(value) > MAX_TEXT or not value.isprintable()):
        raise BadInput("bad_setting", f"{key}: at most {MAX_TEXT} printable characters are allowed.", key=key)
    _check_place(place, by)
    row, is_new = SettingOverride.unscoped.select_for_update().get_or_create(
        workspace_id=place.workspace_id,
        agent_id=place.agent_id,  # type: ignore[misc] # NULL is a value here
        key=key,
        defaults={"value": value, "updated_by_id": by.user_id, "updated_at": timezone.now()},
    )
    old = None if is_new else row.value
    if not is_new:
        if old == value and type(old) is type(value):
            return value
        row.value, row.updated_by_id, row.updated_at = value, by.user_id, timezone.now()
        row.save(update_fields=["value", "updated_by", "updated_at"])
    _record(place, key, by, action="setting.changed", old=old, new=value)
    return value


def clear_override(place: Place, key: str, *, by: Editor) -> None:
    """Takes an override away, so that what stands behind it holds again. Without one, nothing happens.

    Where and what it raises: as `set_override`.
    """
    setting_named(key)
    _check_place(place, by)
    rows = SettingOverride.unscoped.filter(workspace_id=place.workspace_id, key=key)
    rows = rows.filter(agent=None) if place.agent_id is None else rows.filter(agent_id=place.agent_id)
    row = rows.select_for_update().first()
    if row is None:
        return
    row.delete()
    _record(place, key, by, action="setting.reset", old=row.value, new=None)


def _check_place(place: Place, by: Editor) -> None:
    if place.workspace_id == GLOBAL_WORKSPACE_ID:
        if not User.objects.filter(pk=by.user_id, is_superuser=True, is_active=True).exists():
            raise Forbidden("operator_needed", "Only a global administrator changes what holds everywhere.")
        if place.agent_id is not None:
            raise NotFound("agent_not_found", "There is no agent for everyone.")
    elif place.agent_id is not None:
        agents = Agent.objects.of_workspace(place.workspace_id).filter(pk=place.agent_id)
        if not agents.exists():
            raise NotFound("agent_not_found", f"There is no agent {place.agent_id} in this workspace.")


def _record(place: Place, key: str, by: Editor, *, action: str, old: Value | None, new: Value | None) -> None:
    if setting_named(key).kind == "cron":
        plan_anew(
            None if place.workspace_id == GLOBAL_WORKSPACE_ID else place.workspace_id,
            cron_key=key,
            agent_id=place.agent_id,
        )
    record_audit(
        place.workspace_id,
        actor=by.actor,
        action=action,
        target=f"setting:{key}" if place.agent_id is None else f"agent:{place.agent_id}/setting:{key}",
        address=by.address,
        detail={"scope": place.origin, "from": old, "to": new},
    )
