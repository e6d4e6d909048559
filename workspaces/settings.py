"""The values of settings in force, and where each came from.

Read anew for every turn: one query over the few overrides, so that a change holds on the next turn in every
process, without a cache to invalidate.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from django.db.models import Q

from workspaces.logic.registry import SETTINGS, Setting, Value
from workspaces.models import GLOBAL_WORKSPACE_ID, SettingOverride


@dataclass(frozen=True, slots=True)
class InForce:
    """A value and its origin: `default`, `environment`, `global`, `workspace` or `agent`."""

    setting: Setting
    value: Value
    origin: str


class Effective:
    """All settings in force somewhere. Typed reads by full key; a wrong key or type is a fault of ours."""

    def __init__(self, values: Mapping[str, InForce]) -> None:
        self._values = values

    def all(self) -> list[InForce]:
        """Every setting, in the registry's order."""
        return list(self._values.values())

    def flag(self, key: str) -> bool:
        """A boolean setting."""
        value = self._values[key].value
        assert isinstance(value, bool), key  # noqa: S101 - the registry guarantees it
        return value

    def count(self, key: str) -> int:
        """A whole number."""
        value = self._values[key].value
        assert isinstance(value, int), key  # noqa: S101
        return value

    def ratio(self, key: str) -> float:
        """A real number."""
        value = self._values[key].value
        assert isinstance(value, float), key  # noqa: S101
        return value

    def text(self, key: str) -> str:
        """A text or a cron expression."""
        value = self._values[key].value
        assert isinstance(value, str), key  # noqa: S101
        return value


def effective(workspace_id: int, agent_id: int | None = None) -> Effective:
    """The settings in force for an agent, or for a workspace. One query; inside a tenant's transaction."""
    rows = SettingOverride.unscoped.filter(
        Q(workspace_id=GLOBAL_WORKSPACE_ID)
        | Q(workspace_id=workspace_id, agent_id=None)
        | Q(agent_id=agent_id)
        if agent_id is not None
        else Q(workspace_id__in={GLOBAL_WORKSPACE_ID, workspace_id}, agent_id=None)
    ).values_list("workspace_id", "agent_id", "key", "value")
    layers: dict[str, dict[str, object]] = {"global": {}, "workspace": {}, "agent": {}}
    # The agent may be NULL, which the stubs do not know.
    for row_workspace, row_agent, key, value in cast("Iterable[tuple[int, int | None, str, object]]", rows):
        if row_agent is not None:
            layers["agent"][key] = value
        elif row_workspace == GLOBAL_WORKSPACE_ID:
            layers["global"][key] = value
        else:
            layers["workspace"][key] = value
    return Effective({key: _in_force(setting, layers) for key, setting in SETTINGS.items()})


def _in_force(setting: Setting, layers: dict[str, dict[str, object]]) -> InForce:
    for origin in ("agent", "workspace", "global"):
        if setting.key in layers[origin]:
            return InForce(setting, setting.parse(layers[origin][setting.key]), origin)
    if setting.env_name in os.environ:
        return InForce(setting, setting.parse(os.environ[setting.env_name]), "environment")
    return InForce(setting, setting.default, "default")
