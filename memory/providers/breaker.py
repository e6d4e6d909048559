"""The circuit breaker of a workspace's provider: rows of Postgres, so that it is one for all processes.

Closed: asked. After some failures in a row: open, not asked for a while. Then one probe may go, in all
processes: whoever moves `open_until` on from the value that all have read. A good probe closes the breaker.
A healthy provider has no row and writes none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection

from memory.models import ProviderBreaker
from workspaces.settings import Effective
from workspaces.tenancy import workspace

PROBE_LEASE: Final = timedelta(seconds=60)
"""How long a probe is waited for, at least, before another may go: its process may have died."""


@dataclass(frozen=True, slots=True)
class Rules:
    """When a breaker opens, and for how long."""

    threshold: int
    cooldown: timedelta

    @classmethod
    def of(cls, settings: Effective) -> Rules:
        """Those of the settings in force."""
        return cls(
            settings.count("mate.memory.provider-circuit-failure-threshold"),
            timedelta(seconds=settings.count("mate.memory.provider-circuit-cooldown-seconds")),
        )


@dataclass(frozen=True, slots=True)
class Circuit:
    """A breaker as it was read. `open_until` of a probe is the end of its own lease."""

    workspace_id: int
    provider: str
    since: datetime
    failures: int = 0
    open_until: datetime | None = None
    is_probe: bool = False

    def is_open(self, now: datetime) -> bool:
        """Whether nobody may ask now."""
        return self.open_until is not None and self.open_until > now


def read_circuits(workspace_id: int, since: Mapping[str, datetime]) -> dict[str, Circuit]:
    """The breakers of these providers, each with when it was set up: an earlier breaker is of another
    configuration, and no longer holds. Inside the workspace's transaction; one query, none without providers."""
    circuits = {name: Circuit(workspace_id, name, moment) for name, moment in since.items()}
    if circuits:
        for row in ProviderBreaker.objects.of_workspace(workspace_id).filter(provider__in=circuits):
            if row.changed_at >= since[row.provider]:
                circuits[row.provider] = Circuit(
                    workspace_id, row.provider, since[row.provider], row.failures, row.open_until
                )
    return circuits


def claim_probe(circuit: Circuit, rules: Rules, *, now: datetime) -> Circuit | None:
    """The circuit as its one probe holds it; None when another was faster. A transaction of its own."""
    lease = now + max(rules.cooldown, PROBE_LEASE)
    with workspace(circuit.workspace_id):
        won = (
            ProviderBreaker.objects.of_workspace(circuit.workspace_id)
            .filter(provider=circuit.provider, open_until=circuit.open_until)
            .update(open_until=lease, changed_at=now)
        )
    if not won:
        return None
    return Circuit(
        circuit.workspace_id, circuit.provider, circuit.since, circuit.failures, lease, is_probe=True
    )


def record_success(circuit: Circuit) -> None:
    """Closes the breaker after a good probe, or forgets the failures that were no row yet. In the caller's
    transaction; a healthy provider writes nothing. One who was asked before it opened does not close it."""
    if circuit.is_probe or circuit.failures:
        rows = ProviderBreaker.objects.of_workspace(circuit.workspace_id).filter(provider=circuit.provider)
        rows.filter(open_until=circuit.open_until if circuit.is_probe else None).delete()


def record_failure(circuit: Circuit, rules: Rules, *, now: datetime) -> None:
    """Counts a failure, and opens the breaker at the threshold; a failed probe opens it anew. In the caller's
    transaction. A failure of one who was asked before it opened does not keep it open longer."""
    until = now + rules.cooldown
    if circuit.is_probe:
        _move_on(circuit, until, now=now, failures=circuit.failures + 1)
        return
    with connection.cursor() as cursor:
        cursor.execute(
            _COUNT,
            {
                "workspace": circuit.workspace_id,
                "provider": circuit.provider,
                "threshold": rules.threshold,
                "until": until,
                "now": now,
                "since": circuit.since,
            },
        )


def give_back(circuit: Circuit, *, now: datetime) -> None:
    """Ends a probe that showed nothing, since it had no time or no thread: the next turn may probe."""
    if circuit.is_probe:
        _move_on(circuit, now, now=now, failures=circuit.failures)


def _move_on(circuit: Circuit, until: datetime, *, now: datetime, failures: int) -> None:
    rows = ProviderBreaker.objects.of_workspace(circuit.workspace_id).filter(
        provider=circuit.provider, open_until=circuit.open_until
    )
    rows.update(open_until=until, failures=failures, changed_at=now)


_COUNT: Final = """
INSERT INTO memory_providerbreaker AS b (workspace_id, provider, failures, open_until, changed_at)
VALUES (%(workspace)s, %(provider)s, 1, CASE WHEN %(threshold)s <= 1 THEN %(until)s::timestamptz END, %(now)s)
ON CONFLICT (workspace_id, provider) DO UPDATE SET
  failures = CASE WHEN b.changed_at < %(since)s THEN 1 ELSE b.failures + 1 END,
  open_until = CASE
    WHEN b.changed_at >= %(since)s AND b.open_until IS NOT NULL THEN b.open_until
    WHEN (CASE WHEN b.changed_at < %(since)s THEN 1 ELSE b.failures + 1 END) >= %(threshold)s
      THEN %(until)s::timestamptz
  END,
  changed_at = %(now)s
"""
