"""Plugins that provide memory, as this process has made them of their configurations.

Which are in force is read anew for every turn; what was made of a configuration is kept until another is saved.
"""

from __future__ import annotations

import json
import os
import re
import threading
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

import structlog

from memory.providers.base import Asked, GivesTools, Provider, ProviderTool, SyncsTurns, TellsSystem
from memory.types import OutsideTool
from workspaces.errors import DomainError
from workspaces.logic.texts import storable
from workspaces.models import Plugin
from workspaces.services.calls import Call, call_within
from workspaces.services.plugins import config_of, enabled_plugins, plugin_kind, plugin_kinds, without_secrets

log = structlog.get_logger(__name__)

WORKERS: Final = 8
"""Threads that one plugin of a workspace may have at work in a process; those that hang count."""
TOOL_TIMEOUT_S: Final = 30.0
MAX_SYSTEM_BLOCK: Final = 2000
"""Characters that a plugin may add to the system prompt."""
MOST_TOOLS: Final = 16
_MOST_KEPT: Final = 1000
"""Configurations that a process keeps something of."""
_TOOL_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,39}")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Made:
    """A provider, with what it says once: its block of the system prompt, and its tools."""

    provider: Provider
    timeout_s: float | None
    block: str
    tools: tuple[ProviderTool, ...]


@dataclass(slots=True)
class Plugged:
    """A plugin in one configuration. What it makes, and each call of it, belongs to that workspace alone."""

    row: Plugin
    slots: threading.BoundedSemaphore = field(default_factory=lambda: threading.BoundedSemaphore(WORKERS))
    _made: Made | None = None

    @property
    def kind(self) -> str:
        """Its name."""
        return self.row.kind

    @property
    def since(self) -> datetime:
        """When this configuration was saved."""
        return self.row.updated_at

    @property
    def may_sync(self) -> bool:
        """Whether it keeps turns elsewhere, as far as is known: until it is made, it may."""
        return self._made is None or isinstance(self._made.provider, SyncsTurns)

    @property
    def is_installed(self) -> bool:
        """Whether its class joined at this process's start."""
        return any(kind.kind == self.kind for kind in plugin_kinds())

    @property
    def made(self) -> Made | None:
        """What was made so far."""
        return self._made

    def make(self) -> Made:
        """What the configuration makes; the first call does it. Code of the plugin's: only inside a `Call`."""
        if self._made is None:
            provider = plugin_kind(self.kind).make(config_of(self.row))
            block = provider.system_prompt_block() if isinstance(provider, TellsSystem) else ""
            asked_ms = getattr(provider, "timeout_ms", None)
            self._made = Made(
                provider,
                asked_ms / 1000 if isinstance(asked_ms, int | float) and asked_ms > 0 else None,
                storable(block[:MAX_SYSTEM_BLOCK]).strip() if isinstance(block, str) else "",
                usable_tools(self.kind, provider.tools() if isinstance(provider, GivesTools) else ()),
            )
        return self._made

    def call(self, work: Callable[[Made], T], *, limit_s: float | None = None) -> Call[T]:
        """A call of the plugin that has yet to start. Its own wish for a shorter deadline is not looked at."""
        return Call(lambda: work(self.make()), name=f"plugin-{self.kind}", limit_s=limit_s, slots=self.slots)

    def within(self, seconds: float, work: Callable[[Made], T]) -> T:
        """What `work` gives within so long; raises `DeadlineError`, `BusyError`, or what the plugin raises."""
        return call_within(seconds, lambda: work(self.make()), name=f"plugin-{self.kind}", slots=self.slots)

    def outside_tools(self, asked: Asked, *, max_chars: int) -> tuple[OutsideTool, ...]:
        """Its tools for one turn, as far as it was made. Names begin with the plugin's own."""
        made = self._made
        return tuple(self._tool(tool, asked, max_chars) for tool in made.tools) if made else ()

    def _tool(self, tool: ProviderTool, asked: Asked, max_chars: int) -> OutsideTool:
        def work(_: Made, arguments: Mapping[str, Any]) -> str:
            answer = json.dumps(tool.call(asked, arguments), ensure_ascii=False, default=str)
            return storable(answer if len(answer) <= max_chars else answer[:max_chars] + " … (cut)")

        def call(arguments: Mapping[str, Any]) -> Any:
            try:
                return self.within(TOOL_TIMEOUT_S, lambda made: work(made, arguments))
            except Exception as error:  # noqa: BLE001 - told to the model, which can act on it
                tell_failure(self, error, during=f"tool {tool.name}")
                return {"error": True, "message": f"The tool failed: {reason_of(error)}."}

        return OutsideTool(f"{self.kind}_{tool.name}", tool.description[:2000], tool.parameters, call)


def reason_of(error: Exception) -> str:
    """Why something failed, as anybody may read it: never the error's own words, which may quote secrets."""
    return error.code if isinstance(error, DomainError) else type(error).__name__


def tell_failure(plugged: Plugged, error: Exception, *, during: str) -> None:
    """Tells the operator's log where a plugin failed and as what; its words without the secrets it was given."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    log.warning(
        "provider.failed",
        provider=plugged.kind,
        workspace=plugged.row.workspace_id,
        during=during,
        error=type(error).__name__,
        at=where,
    )


def failure_of(plugged: Plugged, error: Exception) -> str:
    """What is kept with a plugin's work that failed, for the operator: its words, without its secrets."""
    told = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    try:
        return without_secrets(plugged.row, told)
    except DomainError:
        return reason_of(error)


def usable_tools(kind: str, tools: object) -> tuple[ProviderTool, ...]:
    """The tools that a model can be given: each with a name of its own, and parameters that are an object's schema."""
    usable: dict[str, ProviderTool] = {}
    for tool in list(tools)[:MOST_TOOLS] if isinstance(tools, list | tuple) else []:
        if (
            isinstance(tool, ProviderTool)
            and isinstance(tool.name, str)
            and _TOOL_NAME.fullmatch(tool.name)
            and tool.name not in usable
            and isinstance(tool.description, str)
            and _is_schema(tool.parameters)
        ):
            usable[tool.name] = tool
        else:
            log.warning("provider.tool_unusable", provider=kind, tool=str(getattr(tool, "name", tool))[:80])
    return tuple(usable.values())


def _is_schema(parameters: object) -> bool:
    if not isinstance(parameters, dict) or parameters.get("type") != "object":
        return False
    try:
        json.dumps(parameters, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


# --- which there are --------------------------------------------------------------------------------------

_kept: dict[int, Plugged] = {}


def plugged_in(workspace_id: int) -> list[Plugged]:
    """The plugins in force in a workspace. Inside its transaction; one query, no code of theirs."""
    return [_plugged(row) for row in enabled_plugins(workspace_id)]


def plugged(workspace_id: int, kind: str) -> Plugged | None:
    """The plugin of that name, if it is in force. As `plugged_in`."""
    return next((one for one in plugged_in(workspace_id) if one.kind == kind), None)


def _plugged(row: Plugin) -> Plugged:
    known = _kept.get(row.pk)
    if known is None or known.row.updated_at != row.updated_at:
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        known = _kept[row.pk] = Plugged(row)
    return known


def forget_made() -> None:
    """Forgets what was made of configurations; it is made again when it is asked for."""
    _kept.clear()


# A forked child has the parent's slots, but none of the threads that would give them back.
os.register_at_fork(after_in_child=forget_made)
