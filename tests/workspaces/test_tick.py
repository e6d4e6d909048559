"""The tick: what is due is queued once, whatever clocks, beats and machines do."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from tests import factories
from workspaces import outbox
from workspaces.access import open_for_job
from workspaces.logic.zones import jitter_of
from workspaces.models import OutboxMessage, Schedule
from workspaces.services import schedules
from workspaces.services import tick as ticking
from workspaces.services.agents import change_agent, create_agent
from workspaces.services.overrides import Editor, Place, set_override
from workspaces.services.schedules import Job, join_job
from workspaces.services.tick import tick
from workspaces.tenancy import Door, door, workspace

NIGHTLY = Job("test-nightly", "test.nightly", "mate.memory.emergence-cron", "mate.memory.emergence-enabled")
HALF_HOURLY = Job(
    "test-often",
    "test.often",
    "mate.memory.fact.projection-rebuild-cron",
    "mate.memory.fact.projection-enabled",
)
EVENING = datetime(2026, 3, 2, 20, tzinfo=UTC)
MORNING = datetime(2026, 3, 3, 4, tzinfo=UTC)
DAY = timedelta(days=1)


def _finish(delivery):
    with delivery.finishing(open_for_job(delivery.bucket_id)[1]):
        pass


@pytest.fixture
def joined(monkeypatch):
    """Two jobs of this test's own, and their topics."""
    monkeypatch.setattr(schedules, "_JOBS", {})
    monkeypatch.setattr(outbox, "_TOPICS", dict(outbox._TOPICS))
    for job in (NIGHTLY, HALF_HOURLY):
        join_job(job)
        outbox.register(job.topic, family=job.topic, handle=_finish)


@pytest.fixture
def home(joined, acme):
    tick(now=EVENING)
    return acme


def queued(topic: str = NIGHTLY.topic) -> list[OutboxMessage]:
    with door(Door.OPERATOR):
        return list(OutboxMessage.unscoped.filter(topic=topic).order_by("pk"))


def nights(topic: str = NIGHTLY.topic) -> list[str]:
    return [message.payload["night"] for message in queued(topic)]


def test_a_night_is_queued_when_it_is_due_and_not_before(home):
    due = datetime(2026, 3, 3, 3, tzinfo=UTC) + jitter_of(home.agent_id)
    tick(now=due - timedelta(seconds=1))
    assert nights() == []
    tick(now=due)
    assert nights() == ["2026-03-03"]
    assert queued()[0].bucket_id == home.team.id
    assert queued()[0].payload["dueAt"] == "2026-03-03T03:00:00+00:00"


def test_a_hundred_ticks_at_one_time_queue_one_run(home):
    for _ in range(100):
        tick(now=MORNING)
    assert len(queued()) == 1
    assert queued()[0].generation == 1


def test_nights_missed_in_a_downtime_are_made_up_for_once(home):
    tick(now=MORNING + 3 * DAY)
    assert nights() == ["2026-03-06"]
    tick(now=MORNING + 3 * DAY + timedelta(minutes=1))
    assert nights() == ["2026-03-06"]
    tick(now=MORNING + 4 * DAY)
    assert nights() == ["2026-03-06", "2026-03-07"]


def test_a_clock_that_steps_back_queues_nothing_twice(home):
    tick(now=MORNING)
    tick(now=MORNING - timedelta(hours=3))
    with workspace(home.workspace.pk):
        # Even where the row is planned anew, by a clock that reads before what was queued.
        set_override(
            Place(home.workspace.pk),
            NIGHTLY.cron_key,
            "5 3 * * *",
            by=Editor(home.alice.user.pk, "user:alice"),
        )
        set_override(
            Place(home.workspace.pk),
            NIGHTLY.cron_key,
            "0 3 * * *",
            by=Editor(home.alice.user.pk, "user:alice"),
        )
    tick(now=MORNING - timedelta(hours=3))
    tick(now=MORNING)
    assert nights() == ["2026-03-03"]
    assert queued()[0].generation == 1


def test_a_run_every_half_hour_waits_for_none_of_its_own(home):
    for half_hours in range(1, 5):
        tick(now=EVENING + timedelta(minutes=30 * half_hours + 15))
    assert len(queued(HALF_HOURLY.topic)) == 1
    assert queued(HALF_HOURLY.topic)[0].generation == 4


def test_what_a_setting_or_an_agent_has_switched_off_passes_without_a_run(home):
    with workspace(home.workspace.pk):
        by = Editor(home.alice.user.pk, "user:alice")
        set_override(Place(home.workspace.pk), NIGHTLY.enabled_key, raw=False, by=by)
    tick(now=MORNING)
    assert nights() == []
    assert len(queued(HALF_HOURLY.topic)) == 1
    with workspace(home.workspace.pk):
        set_override(Place(home.workspace.pk), NIGHTLY.enabled_key, raw=True, by=by)
        change_agent(home.workspace.pk, home.agent_id, enabled=False, actor="system")
    tick(now=MORNING + DAY)
    assert nights() == []
    with workspace(home.workspace.pk):
        change_agent(home.workspace.pk, home.agent_id, enabled=True, actor="system")
    tick(now=MORNING + 2 * DAY)
    assert nights() == ["2026-03-05"]


def test_a_row_of_a_job_that_is_no_more_is_left_alone(home, monkeypatch):
    monkeypatch.setattr(schedules, "_JOBS", {HALF_HOURLY.name: HALF_HOURLY})
    tick(now=MORNING)
    assert nights() == []
    assert len(queued(HALF_HOURLY.topic)) == 1


def test_one_tick_takes_a_bounded_number_of_rows_and_the_next_goes_on(home, monkeypatch):
    with door(Door.OPERATOR):
        for number in range(6):
            create_agent(home.workspace.pk, name=f"Agent {number}", actor="system")
    tick(now=EVENING)
    monkeypatch.setattr(ticking, "BATCH", 2)
    monkeypatch.setattr(ticking, "MAX_BATCHES", 2)
    for _ in range(4):
        tick(now=MORNING)
    assert nights() == ["2026-03-03"] * 7
    assert len({message.bucket_id for message in queued()}) == 7


def test_ticks_of_several_beats_at_one_moment_queue_each_night_once(committed, joined):
    acme = factories.acme()
    with door(Door.OPERATOR):
        for number in range(30):
            create_agent(acme.workspace.pk, name=f"Agent {number}", actor="system")
    tick(now=EVENING)
    start = threading.Barrier(4)
    ended: list[int] = []

    def beat() -> None:
        start.wait()
        ended.append(tick(now=MORNING))
        connection.close()

    beats = [threading.Thread(target=beat) for _ in range(4)]
    for one in beats:
        one.start()
    for one in beats:
        one.join()
    assert sum(ended) == 62
    assert len(queued()) == 31
    assert {message.generation for message in queued()} == {1}
    with door(Door.OPERATOR):
        assert not Schedule.unscoped.filter(next_due_at__lte=MORNING).exists()
