"""Whether the product lives, whether it works, and its numbers. No log-in; no tenant's text."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import structlog
from django.db import Error as DatabaseError
from django.db.models import Max, Sum
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.utils import timezone
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from workspaces import outbox
from workspaces.access import principal_of_token, require
from workspaces.errors import DomainError, Forbidden, Unauthenticated
from workspaces.models import Heartbeat, ModelUsage
from workspaces.tenancy import Door, door
from workspaces.types import Grant, Role

log = structlog.get_logger(__name__)

OUTBOX_LIMIT_S: Final = 60
"""Seconds after which waiting work turns `/health/ready` red."""
WORKER_LIMIT_S: Final = 30
"""Seconds without a worker's heartbeat after which it turns red; workers beat every five."""

# --- health -----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Readiness:
    """What `/health/ready` says; None where the database could not be asked."""

    database: str = "ok"
    oldest_s: float | None = None
    parked: int | None = None
    last_seen_s: float | None = None
    reasons: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        """The body, in the wire's names."""
        return {
            "status": "unavailable" if self.reasons else "ok",
            "database": self.database,
            "outbox": {"oldestSeconds": self.oldest_s, "limitSeconds": OUTBOX_LIMIT_S, "parked": self.parked},
            "worker": {"lastSeenSeconds": self.last_seen_s, "limitSeconds": WORKER_LIMIT_S},
            "reasons": self.reasons,
        }


@require_safe
def live(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """This process answers. Asks nothing else."""
    return _json({"status": "ok"})


@require_safe
def ready(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Whether work is done: 200, or 503 with every reason."""
    found = readiness(now=timezone.now())
    return _json(found.as_json(), status=503 if found.reasons else 200)


def readiness(*, now: datetime) -> Readiness:
    """Asks the database, the outbox and the workers' heartbeats. Never raises for a database that is away."""
    found = Readiness()
    try:
        depth = outbox.depth(now=now)
        seen = Heartbeat.objects.filter(kind="worker").aggregate(at=Max("at"))["at"]
    except DatabaseError as error:
        log.warning("health.database_away", reason=str(error))
        found.database = "away"
        found.reasons.append("The database does not answer.")
        return found
    found.oldest_s, found.parked = round(depth.oldest_seconds, 1), depth.parked
    if depth.oldest_seconds > OUTBOX_LIMIT_S:
        waited = f"{depth.oldest_seconds:.0f} s"
        found.reasons.append(f"Work has been waiting for {waited}; the limit is {OUTBOX_LIMIT_S} s.")
    if seen is None:
        found.reasons.append("No worker has ever been seen.")
        return found
    found.last_seen_s = round(max(0.0, (now - seen).total_seconds()), 1)
    if found.last_seen_s > WORKER_LIMIT_S:
        away = f"{found.last_seen_s:.0f} s"
        found.reasons.append(f"No worker has been seen for {away}; the limit is {WORKER_LIMIT_S} s.")
    return found


# --- metrics ----------------------------------------------------------------------------------------------

Source = Callable[[datetime], Iterable[Metric]]
"""Makes metrics as of a moment. Called for each scrape; opens `door(Door.METRICS)` itself."""

_SOURCES: list[Source] = []


def add_collector(source: Source) -> Source:
    """Adds a source of metrics of an app above; joined at start. Returns it, so that it can decorate."""
    if source not in _SOURCES:
        _SOURCES.append(source)
    return source


@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Prometheus' text format; without a token only from this machine."""
    try:
        if not _is_from_here(request):
            _check_token(request)
        # A registry of the request's own: the numbers are the database's, not this process's.
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Snapshot(timezone.now()))
        text = generate_latest(registry)
    except DomainError as error:
        return _refused(error)
    except DatabaseError as error:
        log.warning("metrics.database_away", reason=str(error))
        return _json(
            {"status": 503, "code": "database_unavailable", "detail": "The database is away."}, status=503
        )
    return HttpResponse(text, content_type=CONTENT_TYPE_LATEST, headers={"Cache-Control": "no-store"})


class _Snapshot(Collector):
    """All metrics as of one moment."""

    def __init__(self, now: datetime) -> None:
        self._now = now

    def describe(self) -> Iterable[Metric]:
        """Nothing: to register is no scrape."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """The outbox, model tokens, then what other apps add."""
        yield from _outbox_metrics(self._now)
        yield from _token_metrics(self._now)
        for source in _SOURCES:
            yield from source(self._now)


def _outbox_metrics(now: datetime) -> Iterator[Metric]:
    depth = outbox.depth(now=now)
    due = GaugeMetricFamily("mate_outbox_depth", "Messages that are due.", labels=["topic"])
    for topic, count in sorted(depth.due.items()):
        due.add_metric([topic], count)
    yield due
    yield GaugeMetricFamily(
        "mate_outbox_oldest_seconds", "How long the oldest due lane has been waiting.", depth.oldest_seconds
    )
    yield GaugeMetricFamily("mate_outbox_parked", "Messages that were given up.", depth.parked)


def _token_metrics(now: datetime) -> Iterator[Metric]:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    with door(Door.METRICS):
        rows = list(
            ModelUsage.unscoped.filter(at__gte=midnight)
            .values_list("model")
            .annotate(sent=Sum("input_tokens"), received=Sum("output_tokens"))
            .order_by("model")
        )
    # From midnight, so that a scrape reads one day and not a year; Prometheus takes the drop for a restart.
    tokens = CounterMetricFamily(
        "mate_model_tokens", "Tokens of models since midnight UTC.", labels=["model", "direction"]
    )
    for model, sent, received in rows:
        tokens.add_metric([model, "input"], sent)
        tokens.add_metric([model, "output"], received)
    yield tokens


def _is_from_here(request: HttpRequest) -> bool:
    """Whether the client itself is on this machine; one that came through a proxy is not."""
    if "HTTP_X_FORWARDED_FOR" in request.META or "HTTP_FORWARDED" in request.META:
        return False
    try:
        address = ipaddress.ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


def _check_token(request: HttpRequest) -> None:
    scheme, _, secret = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Unauthenticated("not_authenticated", "From another machine, send `Authorization: Bearer mm_…`.")
    caller = principal_of_token(
        secret.strip(), address=request.META.get("REMOTE_ADDR", ""), now=timezone.now()
    )
    require(caller, role=Role.ADMIN, grant=Grant.ADMIN)


def _refused(error: DomainError) -> HttpResponse:
    status = 403 if isinstance(error, Forbidden) else 401
    answer = _json({"status": status, "code": error.code, "detail": error.message}, status=status)
    if status == 401:
        answer["WWW-Authenticate"] = "Bearer"
    return answer


def _json(body: dict[str, Any], *, status: int = 200) -> JsonResponse:
    kind = "application/json" if "detail" not in body else "application/problem+json"
    return JsonResponse(body, status=status, content_type=kind, headers={"Cache-Control": "no-store"})


urlpatterns = [
    path("health/live", live, name="live"),
    path("health/ready", ready, name="ready"),
    path("metrics", metrics, name="metrics"),
]
