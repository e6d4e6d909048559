"""Asking all providers for a turn; one that breaks costs its own answer, never the turn.

Plugins are asked in threads of their own as soon as the turn begins, each under its deadline; meanwhile the turn's
search runs, and the product's own providers, which are its legs, answer in the caller's thread. Then the plugins
that still work are waited for, within the total budget and without a database connection in hand.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import structlog
from django.utils import timezone

from memory.logic.picking import Picked, pick
from memory.providers.base import Asked, Prefetches
from memory.providers.breaker import (
    Circuit,
    Rules,
    claim_probe,
    give_back,
    read_circuits,
    record_failure,
    record_success,
)
from memory.providers.plugged import Made, Plugged, plugged_in, reason_of, tell_failure
from memory.providers.registry import OWN, OwnProvider
from memory.types import OutsideTool, ProviderAnswer
from recall.types import Found
from workspaces.services.calls import Call, DeadlineError
from workspaces.settings import Effective
from workspaces.tenancy import release_connection, workspace

log = structlog.get_logger(__name__)

DISABLED: Final = "disabled"
CIRCUIT_OPEN: Final = "circuit_open"
NOT_INSTALLED: Final = "not_installed"
BUSY: Final = "busy"
DEADLINE: Final = "deadline"
BUDGET: Final = "budget"


@dataclass(frozen=True, slots=True)
class InForce:
    """A plugin in force in the turn's workspace, with its breaker as it was read."""

    plugged: Plugged
    circuit: Circuit


def plugins_in_force(workspace_id: int) -> list[InForce]:
    """The plugins of a workspace. Inside its transaction; one query without plugins, two with."""
    found = plugged_in(workspace_id)
    circuits = read_circuits(workspace_id, {one.kind: one.since for one in found})
    return [InForce(one, circuits[one.kind]) for one in found]


@dataclass(frozen=True, slots=True)
class Gathered:
    """What became of every provider, what plugins say in the system prompt, and the tools that they give."""

    answers: tuple[ProviderAnswer, ...]
    blocks: tuple[str, ...] = ()
    tools: tuple[OutsideTool, ...] = ()


@dataclass(slots=True)
class _Outstanding:
    """A plugin that is asked, or was not: `call` is None for one that is skipped."""

    plugged: Plugged
    circuit: Circuit
    call: Call[Picked] | None
    reason: str = ""
    answer: ProviderAnswer | None = field(default=None, init=False)


class Asking:
    """The providers of one turn, from the moment that plugins are asked until all answers are in."""

    def __init__(self, asked: Asked, in_force: Iterable[InForce]) -> None:
        """Starts the plugins. Outside any transaction; of those that a probe is due for, claims it."""
        self._asked = asked
        self._rules = Rules.of(asked.settings)
        self._max_chars = asked.settings.count("mate.memory.provider-block-max-chars")
        self._disabled = disabled_providers(asked.settings)
        budget_ms = asked.settings.count("mate.memory.provider-prefetch-total-budget-ms")
        self._until = time.monotonic() + budget_ms / 1000 if budget_ms else None
        self._plugins = [self._begin(one) for one in in_force]

    def gather(self, found: tuple[Found, ...]) -> Gathered:
        """All answers, the own providers' first: what is there when the budget is spent. Outside any transaction."""
        asked = replace(self._asked, found=found)
        own = [self._own(provider, asked) for provider in OWN]
        if any(one.call is not None for one in self._plugins):
            release_connection()
        for one in self._plugins:
            if one.call is not None:
                one.call.wait(self._until)
            one.answer = self._told(one)
        self._record()
        in_use = [one for one in self._plugins if one.call is not None]
        return Gathered(
            answers=(*own, *(one.answer for one in self._plugins if one.answer is not None)),
            blocks=tuple(
                made.block
                for one in in_use
                if one.answer
                and one.answer.status == "answered"
                and (made := one.plugged.made)
                and made.block
            ),
            tools=tuple(
                tool
                for one in in_use
                for tool in one.plugged.outside_tools(self._asked, max_chars=self._max_chars)
            ),
        )

    # --- parts --------------------------------------------------------------------------------------------

    def _own(self, provider: OwnProvider, asked: Asked) -> ProviderAnswer:
        if provider.name in self._disabled:
            return ProviderAnswer(provider.name, "skipped", 0, reason=DISABLED)
        call = Call(lambda: tuple(provider.prefetch(asked)), name=provider.name)
        call.here()
        ms = round(call.took_s * 1000)
        if call.error is not None:
            log.warning("provider.failed", provider=provider.name, exc_info=call.error)
            return ProviderAnswer(provider.name, "failed", ms, reason=reason_of(call.error))
        return ProviderAnswer(provider.name, "answered", ms, items=call.result())

    def _begin(self, one: InForce) -> _Outstanding:
        plugged, circuit, now = one.plugged, one.circuit, timezone.now()
        if plugged.kind in self._disabled:
            return _Outstanding(plugged, circuit, None, DISABLED)
        if not plugged.is_installed:
            return _Outstanding(plugged, circuit, None, NOT_INSTALLED)
        if circuit.is_open(now):
            return _Outstanding(plugged, circuit, None, CIRCUIT_OPEN)
        if circuit.open_until is not None:
            probe = claim_probe(circuit, self._rules, now=now)
            if probe is None:
                return _Outstanding(plugged, circuit, None, CIRCUIT_OPEN)
            circuit = probe
        call = self._call(plugged)
        return _Outstanding(plugged, circuit, call if call.start() else None, BUSY)

    def _call(self, plugged: Plugged) -> Call[Picked]:
        limit_ms = self._asked.settings.count("mate.memory.provider-prefetch-timeout-ms")

        def work(made: Made) -> Picked:
            if made.timeout_s is not None:
                call.limit(made.timeout_s)
            if not isinstance(made.provider, Prefetches):
                return Picked()
            answer = made.provider.prefetch(self._asked)
            return pick(answer, provider=plugged.kind, max_chars=self._max_chars)

        call = plugged.call(work, limit_s=limit_ms / 1000 if limit_ms else None)
        return call

    def _told(self, one: _Outstanding) -> ProviderAnswer:
        name, call = one.plugged.kind, one.call
        if call is None:
            return ProviderAnswer(name, "skipped", 0, reason=one.reason)
        ms = round(call.took_s * 1000)
        try:
            picked = call.result()
        except DeadlineError:
            # Who had all of its own time has failed; who was only cut short by the turn's has not.
            return ProviderAnswer(name, "late", ms, reason=DEADLINE if call.is_overdue else BUDGET)
        except Exception as error:  # noqa: BLE001 - the provider chain's one door: told in the answer
            tell_failure(one.plugged, error, during="prefetch")
            return ProviderAnswer(name, "failed", ms, reason=reason_of(error))
        return ProviderAnswer(
            name, "answered", ms, items=picked.items, reason=picked.told(max_chars=self._max_chars)
        )

    def _record(self) -> None:
        """Moves the breakers that have to move; opens no transaction where none has."""
        now = timezone.now()
        changed = [one for one in self._plugins if _changes(one)]
        if not changed:
            return
        with workspace(self._asked.reach.workspace_id):
            # By name, as every turn does it: two turns at once must not wait for each other.
            for one in sorted(changed, key=lambda each: each.plugged.kind):
                status = one.answer.status if one.answer else "skipped"
                if status == "answered":
                    record_success(one.circuit)
                elif _has_failed(one):
                    record_failure(one.circuit, self._rules, now=now)
                else:
                    give_back(one.circuit, now=now)


def disabled_providers(settings: Effective) -> set[str]:
    """The providers that are switched off, by name."""
    return {name.strip() for name in settings.text("mate.memory.disabled-providers").split(",")}


def _changes(one: _Outstanding) -> bool:
    if one.circuit.is_probe or _has_failed(one):
        return True
    return one.answer is not None and one.answer.status == "answered" and one.circuit.failures > 0


def _has_failed(one: _Outstanding) -> bool:
    answer = one.answer
    return answer is not None and (
        answer.status == "failed" or (answer.status == "late" and answer.reason == DEADLINE)
    )
