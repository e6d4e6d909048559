"""The values of settings in force, and where each came from.

Read anew for every turn: one query over the few overrides, so that a change holds on the next turn in every
process, without a cache to invalidate.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection

from workspaces.logic.registry import SETTINGS, Setting, Value
from workspaces.models import GLOBAL_WORKSPACE_ID


@dataclass(frozen=True, slots=True)
class InForce:
    """A value and its origin: `default`, `environment`, `global`, `workspace` or `agent`."""

    setting: Setting
    value: Value
    origin: str


class Effective:
    """All settings in force somewhere. Typed reads by full key; a wrong key or type is a fault of ours.

    `layers` are the overrides by origin (`global`, `workspace`, `agent`), by key; each is read when asked for: a
    turn needs a few of them.
    """

    def __init__(self, layers: Mapping[str, Mapping[str, object]]) -> None:
        self._layers = layers

    def all(self) -> list[InForce]:
        """Every setting, in the registry's order."""
        return [_in_force(setting, self._layers) for setting in SETTINGS.values()]

    def _value(self, key: str) -> Value:
        return _in_force(SETTINGS[key], self._layers).value

    def flag(self, key: str) -> bool:
        """A boolean setting."""
        value = self._value(key)
        assert isinstance(value, bool), key  # noqa: S101 - the registry guarantees it
        return value

    def count(self, key: str) -> int:
        """A whole number."""
        value = self._value(key)
        assert isinstance(value, int), key  # noqa: S101
        return value

    def ratio(self, key: str) -> float:
        """A real number."""
        value = self._value(key)
        assert isinstance(value, float), key  # noqa: S101
        return value

    def text(self, key: str) -> str:
        """A text or a cron expression."""
        value = self._value(key)
        assert isinstance(value, str), key  # noqa: S101
        return value


def effective(workspace_id: int, agent_id: int | None = None) -> Effective:
    """The settings in force for an agent, or for a workspace. One query; inside a tenant's transaction."""
    with connection.cursor() as cursor:
        # In plain SQL: every request asks, and putting the query together took longer than the query.
        cursor.execute(_OVERRIDES, [[GLOBAL_WORKSPACE_ID, workspace_id], agent_id])
        rows = cursor.fetchall()
    return layered(
        (row_workspace, agent, key, json.loads(value)) for row_workspace, agent, key, value in rows
    )


def layered(rows: Iterable[Sequence[Any]]) -> Effective:
    """The settings that these overrides make: (workspace, agent or None, key, value) each."""
    layers: dict[str, dict[str, object]] = {"global": {}, "workspace": {}, "agent": {}}
    for row_workspace, row_agent, key, value in rows:
        if row_agent is not None:
            layers["agent"][key] = value
        elif row_workspace == GLOBAL_WORKSPACE_ID:
            layers["global"][key] = value
        else:
            layers["workspace"][key] = value
    return Effective(layers)


_OVERRIDES: Final = """
SELECT workspace_id, agent_id, key, value::text FROM workspaces_settingoverride
WHERE (workspace_id = ANY(%s) AND agent_id IS NULL) OR agent_id = %s
"""


def _in_force(setting: Setting, layers: Mapping[str, Mapping[str, object]]) -> InForce:
    for origin in ("agent", "workspace", "global"):
        if setting.key in layers.get(origin, {}):
            return InForce(setting, setting.parse(layers[origin][setting.key]), origin)
    if setting.env_name in os.environ:
        return InForce(setting, setting.parse(os.environ[setting.env_name]), "environment")
    return InForce(setting, setting.default, "default")
