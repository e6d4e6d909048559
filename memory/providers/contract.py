"""What a provider promises, as a check that its author can run: `check_plugin(Wiki, config)` gives what is wrong.

Each fault is a sentence; an empty list is a provider that keeps its promises. The hooks are really called, so
give it a test server, or a stand-in of it; `sync_turn` is called with a made-up turn where `writes` is given.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from django.db import connection
from pydantic import BaseModel, ValidationError

from memory.logic.picking import MOST_ITEMS, pick
from memory.providers.base import Asked, GivesTools, Prefetches, ProviderTool, SyncsTurns, TellsSystem
from memory.providers.plugged import MAX_SYSTEM_BLOCK, MOST_TOOLS, usable_tools
from memory.types import RecallItem, SaidMessage, SaidTurn
from workspaces.services.plugins import faults_of_kind
from workspaces.settings import Effective
from workspaces.types import BucketRef, Reach, Scope

TIMEOUT_S: Final = 10.0
"""Seconds that one call may take here; in a turn it has far less."""
QUERIES: Final = (
    "What must I not eat?",
    "我对什么过敏？",
    "",
    " \n\t ",
    "'; DROP TABLE pages; -- %00 ../../etc/passwd <b>&amp;</b>",
    "word " * 4000,
)
"""What people send: questions, nothing, and what was never meant for a search box."""
HOOKS: Final[Mapping[str, type]] = {
    "prefetch": Prefetches,
    "system_prompt_block": TellsSystem,
    "sync_turn": SyncsTurns,
    "tools": GivesTools,
}
"""Every hook that is ever called."""

_OWN: Final = BucketRef(1, 1, Scope.PERSONAL, agent_id=1, owner_key="api:contract")


def sample_asked(query: str = QUERIES[0]) -> Asked:
    """A question of a made-up person, with the settings as they are shipped. Its buckets hold nothing."""
    settings = Effective({})
    return Asked(own=_OWN, reach=Reach(1, (_OWN.id,)), query=query, settings=settings)


def check_plugin(kind: Any, config: BaseModel, *, writes: bool = False) -> list[str]:
    """What is wrong with a plugin's class, and with the provider that it makes of this configuration."""
    faults = faults_of_kind(kind)
    if faults:
        return faults
    faults += [
        f"`Config.{name}` needs a description: it is what its form says"
        for name, field in kind.Config.model_fields.items()
        if not field.description
    ]
    try:
        kind.Config.model_validate(config.model_dump(by_alias=True))
    except ValidationError as bad:
        faults.append(
            f"a configuration that is stored must be taken again: {bad.errors(include_input=False)}"
        )
    found = _call(lambda: kind.check(config), "check", faults)
    if found is not None and (not isinstance(found, str) or not found.strip()):
        faults.append("`check` must say what it found, in a sentence")
    provider = _call(lambda: kind.make(config), "make", faults)
    if provider is None:
        return faults
    if getattr(provider, "name", None) != kind.kind:
        faults.append(f"the provider's `name` must be the kind {kind.kind!r}")
    return faults + check_provider(provider, writes=writes)


def check_provider(
    provider: Any, asked: Callable[[str], Asked] = sample_asked, *, writes: bool = False
) -> list[str]:
    """What is wrong with a provider; `asked` makes the question of a text, where the made-up one will not do."""
    faults: list[str] = []
    if not isinstance(getattr(provider, "name", None), str) or not provider.name:
        faults.append("`name` must be a text")
    has = [name for name, hook in HOOKS.items() if isinstance(provider, hook)]
    if not has:
        faults.append(f"it has none of the hooks {', '.join(HOOKS)}")
    depth = len(connection.savepoint_ids)
    if "prefetch" in has:
        _check_prefetch(provider, asked, faults)
    if "system_prompt_block" in has:
        _check_block(provider, faults)
    if "tools" in has:
        _check_tools(provider, faults)
    if "sync_turn" in has and writes:
        for _ in range(2):
            _call(lambda: provider.sync_turn(_OWN, _TURN), "sync_turn (twice, as after a failure)", faults)
    if len(connection.savepoint_ids) != depth:
        faults.append("it leaves a transaction open")
    return faults


def _check_prefetch(provider: Any, asked: Callable[[str], Asked], faults: list[str]) -> None:
    for query in QUERIES:
        what = f"prefetch({query[:20]!r})"
        answer = _call(partial(_prefetched, provider, asked, query), what, faults)
        if answer is None:
            continue
        picked = pick(answer, provider=provider.name, max_chars=10**9)
        if picked.malformed:
            faults.append(
                f"{what}: {picked.malformed} items are no RecallItem with id, text and finite score"
            )
        if len(answer) > MOST_ITEMS:
            faults.append(f"{what}: {len(answer)} items; more than {MOST_ITEMS} are never looked at")
        items = [one for one in answer if isinstance(one, RecallItem)]
        scores = [one.score for one in items if isinstance(one.score, int | float)]
        if scores != sorted(scores, reverse=True):
            faults.append(f"{what}: the best item must come first")
        if len({str(one.id) for one in items}) != len(items):
            faults.append(f"{what}: two items have one id")
    _check_at_once(partial(_prefetched, provider, asked, QUERIES[0]), faults)


def _prefetched(provider: Any, asked: Callable[[str], Asked], query: str) -> list[Any]:
    return list(provider.prefetch(asked(query)))


def _check_at_once(work: Callable[[], object], faults: list[str]) -> None:
    """Two threads at once, each with its own connection, as turns of two people are."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - it is told
            errors.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT_S)
    if any(thread.is_alive() for thread in threads):
        faults.append(f"prefetch, twice at once: no answer within {TIMEOUT_S:g} s")
    faults += [f"prefetch, twice at once: {type(one).__name__}: {one}" for one in errors]


def _check_block(provider: Any, faults: list[str]) -> None:
    first = _call(provider.system_prompt_block, "system_prompt_block", faults)
    again = _call(provider.system_prompt_block, "system_prompt_block", faults)
    if not isinstance(first, str) or len(first) > MAX_SYSTEM_BLOCK:
        faults.append(f"system_prompt_block must be a text of at most {MAX_SYSTEM_BLOCK} characters")
    elif first != again:
        faults.append("system_prompt_block must be the same text each time")


def _check_tools(provider: Any, faults: list[str]) -> None:
    tools = _call(provider.tools, "tools", faults)
    if not isinstance(tools, list | tuple):
        faults.append("tools must be a list")
        return
    usable = usable_tools(provider.name, tools)
    if len(usable) != len(tools):
        wanted = f"at most {MOST_TOOLS}, each a ProviderTool with a short name of its own, a description and"
        faults.append(f"tools: {wanted} the JSON schema of an object")
    for tool in usable:
        answer = _call(partial(_answer, tool), f"tool {tool.name} without arguments", faults)
        if answer is not None and not isinstance(answer, str):
            faults.append(f"tool {tool.name} must answer what JSON holds")


def _answer(tool: ProviderTool) -> str:
    return json.dumps(tool.call(sample_asked(), {}))


def _call(work: Callable[[], Any], what: str, faults: list[str]) -> Any:
    """What it gives; None with a fault told when it raises."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 - it is told
        faults.append(f"{what}: {type(error).__name__}: {error}")
        return None


_TURN: Final = SaidTurn(
    key="message:1",
    conversation="contract",
    messages=(
        SaidMessage(1, "user", "I eat no peanuts.", "", datetime(2026, 1, 1, tzinfo=UTC)),
        SaidMessage(2, "assistant", "I will remember that.", "", datetime(2026, 1, 1, tzinfo=UTC)),
    ),
)
