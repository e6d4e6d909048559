"""Health turns red when work waits or nobody works, and numbers are told to those who may know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import OperationalError
from django.test import Client
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.parser import text_string_to_metric_families

from tests.factories import World
from workspaces import outbox
from workspaces.api import operations
from workspaces.models import Heartbeat, ModelUsage
from workspaces.services.tokens import issue_token
from workspaces.tenancy import tenant, workspace

ELSEWHERE = {"REMOTE_ADDR": "203.0.113.9"}


@pytest.fixture(autouse=True)
def topic(monkeypatch) -> str:
    monkeypatch.setattr(outbox, "_TOPICS", {})
    outbox.register("test.due", family="test", handle=lambda delivery: None)
    outbox.register("test.idle", family="test", handle=lambda delivery: None)
    return "test.due"


@pytest.fixture
def worker(db) -> None:
    Heartbeat.objects.create(process="worker@here:1", kind="worker", at=timezone.now())


def wait_since(acme: World, topic: str, *, seconds: float) -> None:
    with tenant(acme.team):
        outbox.emit(acme.team, topic, due_at=timezone.now() - timedelta(seconds=seconds))


def numbers(text: str) -> dict[tuple[str, str], float]:
    return {
        (sample.name, ",".join(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_live_asks_no_database(client: Client):
    assert client.get("/health/live").json() == {"status": "ok"}


def test_ready_is_green_when_work_is_done(client: Client, worker, acme: World):
    answer = client.get("/health/ready")
    body = answer.json()
    assert answer.status_code == 200
    assert body["worker"].pop("lastSeenSeconds") < operations.WORKER_LIMIT_S
    assert body == {
        "status": "ok",
        "database": "ok",
        "outbox": {"oldestSeconds": 0.0, "limitSeconds": 60, "parked": 0},
        "worker": {"limitSeconds": 30},
        "reasons": [],
    }


@pytest.mark.usefixtures("worker")
@pytest.mark.parametrize(("seconds", "status"), [(40, 200), (62, 503)])
def test_ready_turns_red_when_work_waits_too_long(
    client: Client, acme: World, topic: str, seconds: int, status: int
):
    wait_since(acme, topic, seconds=seconds)
    answer = client.get("/health/ready")
    assert answer.status_code == status
    assert answer.json()["outbox"]["oldestSeconds"] >= seconds
    assert bool(answer.json()["reasons"]) == (status == 503)


def test_ready_turns_red_without_a_worker(client: Client, db):
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["No worker has ever been seen."]


@pytest.mark.parametrize(("kind", "age"), [("worker", 31), ("embedder", 0)])
def test_ready_turns_red_when_no_worker_was_seen_lately(client: Client, db, kind: str, age: int):
    Heartbeat.objects.create(process="one", kind=kind, at=timezone.now() - timedelta(seconds=age))
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert len(answer.json()["reasons"]) == 1


def test_ready_says_so_when_the_database_is_away(client: Client, monkeypatch):
    def away(*, now):
        raise OperationalError("connection refused")

    monkeypatch.setattr(outbox, "depth", away)
    answer = client.get("/health/ready")
    assert answer.status_code == 503
    assert answer.json()["database"] == "away"
    assert answer.json()["outbox"]["oldestSeconds"] is None


def test_metrics_tell_every_topic_also_idle_ones(client: Client, acme: World, topic: str):
    wait_since(acme, topic, seconds=5)
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/plain")
    told = numbers(answer.content.decode())
    assert told["mate_outbox_depth", "test.due"] == 1
    assert told["mate_outbox_depth", "test.idle"] == 0
    assert told["mate_outbox_oldest_seconds", ""] >= 5
    assert told["mate_outbox_parked", ""] == 0


def test_metrics_count_the_tokens_of_today_by_model(acme: World, umbra: World):
    noon = datetime(2026, 5, 4, 12, tzinfo=UTC)
    rows = [(acme, noon, 10, 1), (umbra, noon, 20, 2), (acme, noon - timedelta(days=1), 1000, 1000)]
    for world, at, sent, received in rows:
        with tenant(world.team):
            ModelUsage.objects.create(
                workspace_id=world.workspace.pk,
                bucket_id=world.team.id,
                at=at,
                purpose="reply",
                model="openai:tiny",
                input_tokens=sent,
                output_tokens=received,
            )
    samples = [sample for family in operations._token_metrics(noon) for sample in family.samples]
    assert {(one.labels["direction"], one.value) for one in samples} == {("input", 30), ("output", 3)}


def test_an_app_above_adds_its_own_numbers(client: Client, db, monkeypatch):
    monkeypatch.setattr(operations, "_SOURCES", [])

    @operations.add_collector
    def turns(now: datetime):
        yield GaugeMetricFamily("mate_turns_open", "Turns that are being answered.", 3)

    operations.add_collector(turns)
    assert numbers(client.get("/metrics").content.decode())["mate_turns_open", ""] == 3


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"])
def test_metrics_need_no_token_on_this_machine(client: Client, db, address: str):
    assert client.get("/metrics", REMOTE_ADDR=address).status_code == 200


@pytest.mark.parametrize(
    "where",
    [
        ELSEWHERE,
        {"REMOTE_ADDR": "::ffff:203.0.113.9"},
        {"REMOTE_ADDR": ""},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_X_FORWARDED_FOR": "203.0.113.9"},
        {"REMOTE_ADDR": "127.0.0.1", "HTTP_FORWARDED": "for=203.0.113.9"},
    ],
)
def test_metrics_from_elsewhere_need_a_token(client: Client, db, where: dict):
    answer = client.get("/metrics", **where)
    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")
    assert answer["WWW-Authenticate"] == "Bearer"


def test_metrics_from_elsewhere_are_told_to_an_administrators_token_only(client: Client, acme: World):
    def status(secret: str) -> int:
        return client.get("/metrics", HTTP_AUTHORIZATION=f"Bearer {secret}", **ELSEWHERE).status_code

    with workspace(acme.workspace.pk):
        _, plain = issue_token(
            acme.workspace.pk, user_id=acme.alice.user.pk, name="plain", grants=["read"], actor="system"
        )
    assert status(acme.alice.token) == 200
    assert status(acme.bob.token) == 403
    assert status(plain) == 403
    assert status("mm_nobody") == 401
    assert client.get(f"/metrics?token={acme.alice.token}", **ELSEWHERE).status_code == 401


def test_metrics_say_so_when_the_database_is_away(client: Client, monkeypatch):
    def away(*, now):
        raise OperationalError("connection refused")

    monkeypatch.setattr(outbox, "depth", away)
    answer = client.get("/metrics")
    assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")


@pytest.mark.parametrize("path", ["/health/live", "/health/ready", "/metrics"])
def test_operations_only_read(client: Client, path: str):
    assert client.post(path).status_code == 405


def test_a_scrape_costs_few_queries(client: Client, acme: World, django_assert_max_num_queries):
    with django_assert_max_num_queries(18):
        client.get("/metrics")
