"""Schedules: who has which, what they go by, and how people change them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, transaction

from tests import factories
from workspaces.logic.cron import last_until, next_after, parse_cron
from workspaces.logic.zones import SPREAD_S, jitter_of
from workspaces.models import AuditEvent, Schedule
from workspaces.services import schedules
from workspaces.services.agents import create_agent
from workspaces.services.overrides import EVERYWHERE, Editor, Place, clear_override, set_override
from workspaces.services.schedules import Job, join_job, make_missing_schedules, review_schedules
from workspaces.services.tenants import change_workspace
from workspaces.services.tick import tick
from workspaces.tenancy import Door, door, workspace

CRON_KEY = "mate.memory.emergence-cron"
NIGHTLY = Job("test-nightly", "test.nightly", CRON_KEY, "mate.memory.emergence-enabled")
BERLIN, NEW_YORK = ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York")
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(cron: str, after: str, zone: ZoneInfo, times: int) -> list[str]:
    """The next times that it fires, as UTC texts."""
    found, moment = [], at(after)
    for _ in range(times):
        following = next_after(parse_cron(cron), moment, zone)
        assert following is not None
        moment = following
        found.append(f"{moment:%m-%d %H:%M}")
    return found


# --- the clock ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "cron", "after", "expected"),
    [
        # Europe: clocks go from 02:00 to 03:00 at 01:00 UTC on 29 March 2026, and back on 25 October.
        (BERLIN, "30 2 * * *", "2026-03-28T00:00", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        (BERLIN, "30 2 * * *", "2026-10-24T00:00", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
        (BERLIN, "0 0 3 * * ?", "2026-03-28T00:00", ["03-28 02:00", "03-29 01:00", "03-30 01:00"]),
        # America: from 02:00 to 03:00 at 07:00 UTC on 8 March 2026, and back at 06:00 UTC on 1 November.
        (NEW_YORK, "30 2 * * *", "2026-03-07T00:00", ["03-07 07:30", "03-08 07:00", "03-09 06:30"]),
        (NEW_YORK, "30 1 * * *", "2026-10-31T00:00", ["10-31 05:30", "11-01 05:30", "11-02 06:30"]),
        # What fires at every hour goes by elapsed time.
        (BERLIN, "*/30 * * * *", "2026-03-29T00:15", ["03-29 00:30", "03-29 01:00", "03-29 01:30"]),
        (BERLIN, "30 * * * *", "2026-10-24T23:45", ["10-25 00:30", "10-25 01:30", "10-25 02:30"]),
        # Several skipped times are one.
        (BERLIN, "0,20,40 2,3 * * *", "2026-03-28T23:59", ["03-29 01:00", "03-29 01:20", "03-29 01:40"]),
    ],
)
def test_a_skipped_time_fires_once_after_the_gap_and_a_doubled_one_once(zone, cron, after, expected):
    assert fires(cron, after, zone, 3) == expected


def test_a_day_that_a_zone_left_out_fires_at_the_start_of_the_next():
    # Samoa had no 30 December 2011.
    apia = ZoneInfo("Pacific/Apia")
    first = next_after(parse_cron("0 12 30 12 *"), at("2011-12-01"), apia)
    assert first is not None
    assert first.astimezone(apia) == datetime(2011, 12, 31, tzinfo=apia)


def test_restricted_days_are_either_and_an_impossible_date_is_never():
    assert fires("0 0 13 * 5", "2026-02-01", ZoneInfo("UTC"), 3) == [
        "02-06 00:00",
        "02-13 00:00",
        "02-20 00:00",
    ]
    assert fires("0 0 29 2 *", "2097-01-01", ZoneInfo("UTC"), 1) == ["02-29 00:00"]
    assert next_after(parse_cron("0 0 30 2 *"), NOON, ZoneInfo("UTC")) is None


def test_the_last_time_before_now_is_found_and_never_before_the_one_that_was_due():
    daily, utc = parse_cron("0 3 * * *"), ZoneInfo("UTC")
    since = at("2026-03-01T03:00")
    assert last_until(daily, at("2026-03-04T02:59"), utc, since=since) == at("2026-03-03T03:00")
    assert last_until(daily, at("2026-03-01T03:01"), utc, since=since) == since
    assert last_until(parse_cron("0 3 1 1 *"), NOON, utc, since=since) == since


def test_agents_are_spread_over_ten_minutes_each_always_at_its_own():
    shifts = [jitter_of(agent_id).total_seconds() for agent_id in range(1, 10_001)]
    assert all(0 <= shift < SPREAD_S for shift in shifts)
    by_minute = [sum(1 for shift in shifts if shift // 60 == minute) for minute in range(10)]
    assert max(by_minute) < 1100


# --- rows ---------------------------------------------------------------------------------------------------


@pytest.fixture
def nightly(monkeypatch):
    """A job of this test's own, as an app joins one."""
    monkeypatch.setattr(schedules, "_JOBS", {})
    join_job(NIGHTLY)
    return NIGHTLY


@dataclass
class Shown:
    next_due: datetime | None
    note: str
    by: str


def row_of(agent_id: int) -> Schedule:
    with door(Door.OPERATOR):
        return Schedule.unscoped.get(agent_id=agent_id, job=NIGHTLY.name)


def due(agent_id: int) -> datetime | None:
    """When it is due, without the agent's own shift."""
    row = row_of(agent_id)
    return row.next_due_at and row.next_due_at - jitter_of(agent_id)


def write(agent_id: int, **values) -> None:
    """What a person's editor would refuse, as it may come from an older version or another hand."""
    with door(Door.OPERATOR):
        Schedule.unscoped.filter(agent_id=agent_id, job=NIGHTLY.name).update(planned_by="", **values)


@pytest.fixture
def home(nightly, acme):
    return acme


def test_an_agent_is_born_with_a_row_of_every_job(home):
    assert row_of(home.agent_id).enabled
    assert due(home.agent_id) is None
    tick(now=NOON)
    assert due(home.agent_id) == at("2026-03-03T03:00")


def test_agents_that_were_there_before_a_job_get_their_rows_once(acme, umbra, nightly):
    assert make_missing_schedules() == 2
    assert make_missing_schedules() == 0
    assert row_of(acme.agent_id).workspace_id == acme.workspace.pk
    assert row_of(umbra.agent_id).workspace_id == umbra.workspace.pk


def test_an_agent_has_a_job_once_whatever_writes_it(home):
    with pytest.raises(IntegrityError, match="schedule_once"), door(Door.OPERATOR), transaction.atomic():
        Schedule.unscoped.create(workspace=home.workspace, agent_id=home.agent_id, job=NIGHTLY.name)


def test_a_job_is_joined_once_and_by_settings_that_exist(nightly):
    with pytest.raises(ValueError, match="joined twice"):
        join_job(NIGHTLY)
    with pytest.raises(ValueError, match="no setting of the kind cron"):
        join_job(Job("other", "t", "mate.memory.emergence-enabled", "mate.memory.emergence-enabled"))


def test_the_workspaces_zone_holds_until_the_row_has_its_own(home):
    with door(Door.OPERATOR):
        change_workspace(home.workspace.pk, zone="Asia/Shanghai", actor="system")
    tick(now=NOON)
    assert due(home.agent_id) == at("2026-03-02T19:00")
    patch(home, {"timezone": "America/New_York"})
    assert row_of(home.agent_id).planned_by == "0 0 3 * * ? America/New_York"


def set_cron(home, place, text) -> None:
    by = Editor(home.alice.user.pk, "user:alice")
    opened = door(Door.OPERATOR) if place == EVERYWHERE else workspace(place.workspace_id)
    with opened:
        set_override(place, CRON_KEY, text, by=by)


def test_a_changed_setting_moves_the_rows_that_have_no_cron_of_their_own(home):
    with door(Door.OPERATOR):
        other, _ = create_agent(home.workspace.pk, name="Other", actor="system")
    tick(now=NOON)
    patch(home, {"cron": "0 5 * * *"})
    set_cron(home, Place(home.workspace.pk), "30 1 * * *")
    tick(now=NOON)
    assert due(other.pk) == at("2026-03-03T01:30")
    assert row_of(home.agent_id).planned_by == "0 5 * * * UTC"
    with workspace(home.workspace.pk):
        clear_override(Place(home.workspace.pk), CRON_KEY, by=Editor(home.alice.user.pk, "user:alice"))
    tick(now=NOON)
    assert due(other.pk) == at("2026-03-03T03:00")


def test_a_setting_for_one_agent_or_for_everyone_moves_whom_it_concerns(home, umbra):
    with door(Door.OPERATOR):
        home.alice.user.is_superuser = True
        home.alice.user.save()
    tick(now=NOON)
    set_cron(home, Place(home.workspace.pk, home.agent_id), "0 4 * * *")
    set_cron(home, EVERYWHERE, "0 6 * * *")
    tick(now=NOON)
    assert due(home.agent_id) == at("2026-03-03T04:00")
    assert due(umbra.agent_id) == at("2026-03-03T06:00")


def test_a_changed_environment_is_found_by_the_hourly_review(home, monkeypatch):
    tick(now=NOON)
    monkeypatch.setenv("MATE_MEMORY_EMERGENCE_CRON", "0 7 * * *")
    review_schedules(NOON)
    tick(now=NOON)
    assert due(home.agent_id) == at("2026-03-03T07:00")


def test_a_row_that_a_runaway_clock_planned_comes_back_with_the_review(home):
    tick(now=datetime(2061, 1, 1, tzinfo=UTC))
    review_schedules(NOON)
    tick(now=NOON)
    assert due(home.agent_id) == at("2026-03-03T03:00")


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ({"cron": "61 3 * * *"}, "'61 3 * * *' cannot be used"),
        ({"cron": "0 3 30 2 *"}, "never fires"),
        ({"timezone": "Mars/Olympus"}, "no time zone 'Mars/Olympus'"),
    ],
)
def test_what_cannot_be_read_is_told_and_the_default_holds(home, values, told):
    write(home.agent_id, **values)
    assert tick(now=NOON) == 0
    assert due(home.agent_id) == at("2026-03-03T03:00")
    assert told in row_of(home.agent_id).note
    assert "holds instead" in row_of(home.agent_id).note
    patch(home, {"cron": "", "timezone": ""})
    assert row_of(home.agent_id).note == ""


# --- changes by people --------------------------------------------------------------------------------------


def address(home) -> str:
    return f"/api/v1/agents/{home.agent_id}/schedules/{NIGHTLY.name}"


def patch(home, body: dict[str, object], status: int = 200):
    answer = home.alice.client().patch(address(home), body, format="json")
    assert answer.status_code == status, answer.content
    return answer.json()


def test_an_admin_reads_and_changes_a_schedule_and_it_is_audited(home):
    assert patch(home, {"cron": "0 15 4 * * ?", "timezone": "Europe/Berlin"})["effective"] == {
        "cron": "0 15 4 * * ?",
        "timezone": "Europe/Berlin",
        "enabled": True,
    }
    listed = home.alice.client().get(f"/api/v1/agents/{home.agent_id}/schedules").json()
    assert [row["job"] for row in listed["results"]] == [NIGHTLY.name]
    assert listed["results"][0] == home.alice.client().get(address(home)).json()
    with workspace(home.workspace.pk):
        event = AuditEvent.objects.of_workspace(home.workspace.pk).get(action="schedule.changed")
    assert event.detail == {"cron": "0 15 4 * * ?", "timezone": "Europe/Berlin"}


def test_one_that_is_switched_off_is_never_due_until_it_is_on_again(home):
    assert patch(home, {"enabled": False})["nextDueAt"] is None
    assert tick(now=NOON + timedelta(days=3)) == 0
    assert patch(home, {"enabled": True})["nextDueAt"] is not None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"cron": "never"}, "bad_cron"),
        ({"cron": "0 0 30 2 *"}, "bad_cron"),
        ({"timezone": "Mars/Olympus"}, "bad_timezone"),
        ({"timezone": "../etc/passwd"}, "bad_timezone"),
        ({"enabled": "yes"}, "invalid"),
        ({"job": "x"}, "invalid"),
    ],
)
def test_a_wrong_change_is_refused_and_changes_nothing(home, body, code):
    before = home.alice.client().get(address(home)).json()
    answer = home.alice.client().patch(address(home), body, format="json")
    assert answer.status_code == 400
    assert code in str(answer.json())
    assert home.alice.client().get(address(home)).json() == before


def test_an_unknown_job_or_anothers_agent_does_not_exist(home, umbra):
    missing = f"/api/v1/agents/{home.agent_id}/schedules/nothing"
    assert home.alice.client().patch(missing, {"enabled": False}, format="json").status_code == 404
    assert umbra.mallory.client().get(address(home)).status_code == 404
    assert home.bob.client().get(address(home)).status_code == 403


def test_an_operator_changes_a_schedule_in_the_admin_through_the_same_checks(home, client):
    with door(Door.OPERATOR):
        operator = factories.User.objects.create_superuser("root", password="a long password")
    client.force_login(operator)
    page = f"/admin/workspaces/schedule/{row_of(home.agent_id).pk}/change/"
    client.post(page, {"cron": "0 6 * * *", "timezone": "", "enabled": "on"})
    assert row_of(home.agent_id).planned_by == "0 6 * * * UTC"
    told = client.post(page, {"cron": "0 0 30 2 *", "timezone": "", "enabled": "on"}, follow=True)
    assert "never fires" in told.content.decode()
    assert row_of(home.agent_id).cron == "0 6 * * *"
