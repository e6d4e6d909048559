"""The first start makes a working log-in and token, once."""

from __future__ import annotations

import json
import stat
import threading
from io import StringIO

import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.db import connection
from django_celery_beat.models import PeriodicTask

from workspaces.access import open_agent, principal_of_token
from workspaces.models import File, Member, PersonalAccessToken, Workspace
from workspaces.services import first_run
from workspaces.services.first_run import set_up
from workspaces.tenancy import Door, door
from workspaces.types import Grant, Role

URL = "http://127.0.0.1:8230"


@pytest.fixture
def data_dir(settings, tmp_path):
    settings.DATA_DIR = tmp_path / "data"
    return settings.DATA_DIR


def run() -> str:
    told = StringIO()
    call_command("first_run", stdout=told)
    return told.getvalue()


def test_the_file_holds_a_log_in_and_a_token_that_work(db, data_dir, rf):
    told = run()
    path = data_dir / "first-run.json"
    kept = json.loads(path.read_text())
    assert set(kept) == {"url", "username", "password", "token", "workspace", "agentId"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for value in (kept["url"], kept["username"], kept["password"], kept["token"], str(path)):
        assert value in told
    user = authenticate(rf.post("/"), username=kept["username"], password=kept["password"])
    assert user is not None
    assert user.is_superuser
    with door(Door.OPERATOR):
        home = Workspace.unscoped.get(slug=kept["workspace"])
        now = home.created_at
        assert Role(Member.unscoped.get(workspace=home).role) is Role.OWNER
        assert PersonalAccessToken.unscoped.get().name == "first run"
        assert File.unscoped.filter(workspace=home, enabled=True).count() == 4
    caller = principal_of_token(kept["token"], address="", now=now)
    assert caller.grants == frozenset(Grant)
    assert open_agent(caller, None).id == kept["agentId"]


def test_a_second_run_says_so_in_one_line_and_changes_nothing(db, data_dir):
    run()
    kept = (data_dir / "first-run.json").read_bytes()
    told = run()
    assert told.count("\n") == 1
    assert "already" in told
    assert (data_dir / "first-run.json").read_bytes() == kept
    with door(Door.OPERATOR):
        assert PersonalAccessToken.unscoped.count() == 1
        assert Workspace.unscoped.exclude(pk=1).count() == 1


def test_a_database_that_others_set_up_is_left_alone(acme, data_dir):
    assert "already" in run()
    assert not (data_dir / "first-run.json").exists()


def test_the_hourly_maintenance_is_registered_once_and_keeps_what_an_operator_changed(db, data_dir):
    run()
    entry = PeriodicTask.objects.get(task="workspaces.maintain")
    assert entry.interval is not None
    assert (entry.interval.every, entry.interval.period) == (1, "hours")
    entry.enabled = False
    entry.save()
    run()
    assert not PeriodicTask.objects.get(task="workspaces.maintain").enabled


def test_a_data_folder_that_cannot_be_written_leaves_nothing_behind(db, settings, tmp_path):
    settings.DATA_DIR = tmp_path / "a file"
    settings.DATA_DIR.write_text("in the way")
    with pytest.raises(CommandError, match=r"first-run\.json cannot be written.*Nothing was set up"):
        run()
    with door(Door.OPERATOR):
        assert not Workspace.unscoped.exclude(pk=1).exists()


def test_a_failure_after_the_file_was_written_takes_the_file_back(db, data_dir, monkeypatch):
    keep = first_run._Keeper.__call__

    def keep_and_fail(self, made):
        keep(self, made)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(first_run._Keeper, "__call__", keep_and_fail)
    with pytest.raises(CommandError, match="No space left"):
        run()
    assert not (data_dir / "first-run.json").exists()


def test_two_starts_at_once_do_it_once(committed, tmp_path):
    made = []

    def start() -> None:
        try:
            made.append(set_up(tmp_path, url=URL))
        finally:
            connection.close()

    starts = [threading.Thread(target=start) for _ in range(4)]
    for one in starts:
        one.start()
    for one in starts:
        one.join()
    assert len(made) == 4
    assert len([one for one in made if one is not None]) == 1
