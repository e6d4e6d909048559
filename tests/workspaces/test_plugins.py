"""Plugins: set up over HTTP and in the admin, checked before they are enabled, their secrets told to nobody."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from memory.providers.plugged import forget_made
from tests import factories
from tests.factories import World
from tests.memory.test_chain import ask, outcome
from tests.stubs.plugins import Sample, item, joined
from workspaces.models import AuditEvent, Plugin
from workspaces.services import plugins
from workspaces.services.plugins import Actor, config_of, faults_of_kind, save_plugin
from workspaces.tenancy import Door, door, workspace

URL = "/api/v1/plugins/sample"
SECRET = "sk-very-secret-3141592653"


@pytest.fixture(autouse=True)
def installed() -> Iterator[None]:
    with joined(Sample):
        yield
    Sample.reset()
    forget_made()


@pytest.fixture
def root(db) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="a long password"))
    return client


def put(world: World, *, enabled: bool = True, url: str = URL, **config):
    return world.alice.client().put(url, {"enabled": enabled, "config": config})


def rows() -> list[Plugin]:
    with door(Door.OPERATOR):
        return list(Plugin.unscoped.order_by("pk"))


def secret_of(row: Plugin) -> str:
    return config_of(row).apiKey.get_secret_value()


def traces(world: World) -> list[AuditEvent]:
    with workspace(world.workspace.pk):
        found = AuditEvent.objects.of_workspace(world.workspace.pk).filter(action__startswith="plugin.")
        return list(found.order_by("pk"))


# --- over HTTP --------------------------------------------------------------------------------------------


def test_a_plugin_is_listed_with_its_form_before_anybody_set_it_up(acme):
    [one] = acme.alice.client().get("/api/v1/plugins").json()["results"]
    assert (one["kind"], one["enabled"], one["config"], one["status"]) == ("sample", False, {}, "unchecked")
    fields = one["schema"]["properties"]
    assert list(fields) == ["baseUrl", "apiKey", "maxResults", "timeoutMs", "exact"]
    assert fields["maxResults"]["maximum"] == 50
    assert "writeOnly" in json.dumps(fields["apiKey"])
    assert acme.alice.client().get("/api/v1/plugins/none").status_code == 404


def test_enabling_checks_the_connection_and_says_what_was_found(acme):
    Sample.on_check = lambda config: f"It answers at {config.baseUrl}."
    answer = put(acme, baseUrl="http://127.0.0.1:9/x", maxResults=7)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["enabled"], body["status"]) == (True, "ok")
    assert body["found"] == "It answers at http://127.0.0.1:9/x."
    assert body["checkedAt"]
    assert body["config"]["maxResults"] == 7
    assert acme.alice.client().get(URL).json() == body


def test_one_whose_check_fails_is_not_enabled_and_what_was_in_force_stays(acme):
    put(acme, maxResults=7)

    def away(config):
        raise ConnectionError(f"{config.apiKey.get_secret_value()} was refused at {config.baseUrl}")

    Sample.on_check = away
    answer = put(acme, maxResults=8, apiKey=SECRET)
    assert (answer.status_code, answer.json()["code"]) == (422, "plugin_check_failed")
    assert "ConnectionError: ••• was refused at http://127.0.0.1" in answer.json()["detail"]
    [row] = rows()
    assert (row.enabled, row.config["maxResults"], row.secrets) == (True, 7, "")
    assert [one.action for one in traces(acme)] == ["plugin.enabled", "plugin.check_failed"]
    assert SECRET not in str([one.detail for one in traces(acme)])


def test_switched_off_it_is_saved_without_a_check(acme):
    Sample.on_check = lambda config: str(1 / 0)
    body = put(acme, enabled=False, maxResults=9).json()
    assert (body["enabled"], body["status"], body["config"]["maxResults"]) == (False, "unchecked", 9)
    failed = acme.alice.client().post(URL + "/check").json()
    assert (failed["status"], failed["lastError"]) == ("failed", "ZeroDivisionError: division by zero")
    Sample.on_check = lambda config: "It answers."
    body = acme.alice.client().post(URL + "/check").json()
    assert (body["status"], body["found"], body["lastError"]) == ("ok", "It answers.", "")
    assert acme.alice.client().post("/api/v1/plugins/none/check").status_code == 404


def test_what_is_not_set_up_cannot_be_checked(acme):
    answer = acme.alice.client().post(URL + "/check")
    assert (answer.status_code, answer.json()["code"]) == (404, "plugin_not_set_up")


def test_the_check_runs_outside_any_transaction_and_without_a_connection(committed):
    acme = factories.acme()
    # The connection of the request's own thread, looked at from the check's.
    caller, seen = connections["default"], []

    def check(config):
        seen.append((caller.in_atomic_block, caller.connection))
        return "It answers."

    Sample.on_check = check
    assert put(acme).status_code == 200
    assert seen == [(False, None)]


def test_a_check_that_hangs_is_not_waited_out(acme, monkeypatch):
    hold = threading.Event()
    monkeypatch.setattr(plugins, "CHECK_TIMEOUT_S", 0.03)
    Sample.on_check = lambda config: str(hold.wait(30))
    answer = put(acme)
    hold.set()
    assert answer.status_code == 422
    assert "no answer within 0.03 s" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"baseUrl": "ftp://x"}, "baseUrl"),
        ({"maxResults": 0}, "maxResults"),
        ({"maxResults": "many"}, "maxResults"),
        ({"base_url": "http://x"}, "base_url"),
        ({"apiKey": 7}, "apiKey"),
        ({"baseUrl": "http://\0"}, "config"),
        ({"baseUrl": "http://" + "x" * 30_000}, "config"),
    ],
)
def test_a_bad_configuration_names_the_field(acme, config, field):
    answer = put(acme, **config)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_config")
    assert [one["field"] for one in answer.json()["errors"]] == [field]
    assert rows() == []


@pytest.mark.parametrize(
    "body", [{}, {"enabled": True}, {"enabled": 1, "config": {}}, {"enabled": True, "config": []}]
)
def test_a_bad_body_is_refused(acme, body):
    assert acme.alice.client().put(URL, body).status_code == 400


def test_a_secret_is_sealed_kept_when_left_blank_and_removed_by_null(acme):
    answer = put(acme, apiKey=SECRET)
    assert answer.json()["secretsSet"] == ["apiKey"]
    assert SECRET not in answer.content.decode()
    [row] = rows()
    assert SECRET not in row.secrets + json.dumps(row.config)
    assert secret_of(row) == SECRET
    for blank in ({}, {"apiKey": ""}):
        assert put(acme, **blank).json()["secretsSet"] == ["apiKey"]
        assert secret_of(rows()[0]) == SECRET
    put(acme, apiKey="another")
    assert secret_of(rows()[0]) == "another"
    assert put(acme, apiKey=None).json()["secretsSet"] == []
    assert rows()[0].secrets == ""
    for path in ("/api/v1/plugins", URL, "/api/v1/audit"):
        assert SECRET not in acme.alice.client().get(path).content.decode()


def test_what_a_check_finds_may_not_quote_a_secret(acme):
    Sample.on_check = lambda config: f"Welcome, {config.apiKey.get_secret_value()}!"
    assert put(acme, apiKey=SECRET).json()["found"] == "Welcome, •••!"


def test_one_who_saves_over_what_another_saved_meanwhile_is_told(acme, monkeypatch):
    put(acme, maxResults=5)

    def meanwhile(config):
        if config.maxResults == 6:
            with door(Door.OPERATOR):
                Plugin.unscoped.update(updated_at=timezone.now())
        return "It answers."

    # In this thread, whose transaction is the test's.
    monkeypatch.setattr(plugins, "call_within", lambda seconds, work, **options: work())
    Sample.on_check = meanwhile
    answer = put(acme, maxResults=6)
    assert (answer.status_code, answer.json()["code"]) == (409, "plugin_changed")


def test_a_saved_configuration_holds_on_the_next_turn(acme):
    Sample.on_prefetch = lambda self, asked: [item(f"limit {self.config.maxResults}")]
    put(acme, maxResults=3)
    assert ask(acme)["items"][0]["text"] == "limit 3"
    put(acme, maxResults=4)
    assert ask(acme)["items"][0]["text"] == "limit 4"
    assert len(Sample.made) == 2
    put(acme, enabled=False)
    assert "sample" not in [one["name"] for one in ask(acme)["providers"]]


def test_another_process_sees_it_too(acme):
    """Nothing but the row tells: it is read anew for each turn."""
    put(acme, maxResults=3)
    ask(acme)
    with door(Door.OPERATOR):
        Plugin.unscoped.update(config={"maxResults": 9}, updated_at=timezone.now())
    Sample.on_prefetch = lambda self, asked: [item(f"limit {self.config.maxResults}")]
    assert ask(acme)["items"][0]["text"] == "limit 9"


def test_a_workspace_sees_only_its_own(acme, umbra):
    put(acme, apiKey=SECRET, maxResults=7)
    [one] = umbra.mallory.client().get("/api/v1/plugins").json()["results"]
    assert (one["enabled"], one["config"], one["secretsSet"]) == (False, {}, [])
    umbra.mallory.client().put(URL, {"enabled": True, "config": {"maxResults": 1}})
    assert acme.alice.client().get(URL).json()["config"]["maxResults"] == 7


def test_under_another_encryption_key_it_fails_alone_and_can_be_set_up_anew(acme, settings):
    put(acme, apiKey=SECRET)
    settings.ENCRYPTION_KEY = "A" * 43 + "="
    assert outcome(ask(acme)) == ("failed", "encryption_key_changed")
    assert put(acme, apiKey="another").status_code == 200
    assert outcome(ask(acme)) == ("answered", "")


# --- in the admin -----------------------------------------------------------------------------------------


def form_url(world: World) -> str:
    return f"{reverse('admin:workspaces_plugin_add')}?workspace={world.workspace.pk}&kind=sample"


FILLED = {"baseUrl": "http://127.0.0.1", "maxResults": "7", "timeoutMs": "", "apiKey": ""}


def test_the_form_is_made_from_the_schema(acme, root):
    page = root.get(form_url(acme)).content.decode()
    for name in Sample.Config.model_fields:
        assert f'name="{name}"' in page
    assert "Items of an answer." in page
    assert 'max="50"' in page


def test_the_operator_enables_a_plugin_and_is_told_what_was_found(acme, root):
    body = FILLED | {"pluginEnabled": "on", "apiKey": SECRET, "exact": "on"}
    answer = root.post(form_url(acme), body, follow=True)
    assert "sample is enabled: It answers." in answer.content.decode()
    [row] = rows()
    assert (row.enabled, row.config["maxResults"], row.config["exact"]) == (True, 7, True)
    assert secret_of(row) == SECRET
    change = reverse("admin:workspaces_plugin_change", args=[row.pk])
    page = root.get(change).content.decode()
    assert SECRET not in page
    assert "A value is kept" in page
    root.post(change, FILLED | {"pluginEnabled": "on", "maxResults": "8"})
    assert (secret_of(rows()[0]), rows()[0].config["maxResults"]) == (SECRET, 8)
    assert [one.action for one in traces(acme)] == ["plugin.enabled", "plugin.enabled"]


def test_in_the_form_too_a_failed_check_enables_nothing_and_shows_the_reason(acme, root):
    def away(config):
        raise TimeoutError(f"{config.apiKey.get_secret_value()}: nobody is there")

    Sample.on_check = away
    answer = root.post(form_url(acme), FILLED | {"pluginEnabled": "on", "apiKey": SECRET})
    assert answer.status_code == 200
    assert "TimeoutError: •••: nobody is there" in answer.content.decode()
    assert SECRET not in answer.content.decode()
    assert rows() == []


def test_what_the_schema_refuses_stands_at_its_field(acme, root):
    answer = root.post(form_url(acme), FILLED | {"baseUrl": "ftp://x"})
    assert answer.context["form"].errors["baseUrl"]
    assert rows() == []


def test_the_admins_check_holds_no_transaction(committed):
    acme = factories.acme()
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="a long password"))
    caller, seen = connections["default"], []

    def check(config):
        seen.append((caller.in_atomic_block, caller.connection))
        return "It answers."

    Sample.on_check = check
    assert client.post(form_url(acme), FILLED | {"pluginEnabled": "on"}).status_code == 302
    assert seen == [(False, None)]


def test_nobody_but_the_operator_opens_the_form(acme):
    client = Client()
    client.force_login(acme.alice.user)
    assert client.get(form_url(acme)).status_code in {302, 403}
    staff = User.objects.create_user("staff", password="a long password", is_staff=True)
    client.force_login(staff)
    assert client.get(form_url(acme)).status_code == 403
    assert client.post(form_url(acme), FILLED).status_code == 403


# --- kinds ------------------------------------------------------------------------------------------------


def test_a_class_that_lacks_something_is_told_what():
    class Nameless(Sample):
        kind = "Not Good"

    class Unmade(Sample):
        make = None  # type: ignore[assignment]

    class Formless(Sample):
        Config = dict  # type: ignore[assignment]

    assert faults_of_kind(Sample) == []
    assert "small letters" in faults_of_kind(Nameless)[0]
    assert "`make`" in faults_of_kind(Unmade)[0]
    assert "pydantic" in faults_of_kind(Formless)[0]


def test_saving_needs_no_request(acme):
    row = save_plugin(acme.workspace.pk, "sample", config={}, enabled=True, by=Actor("system"))
    assert (row.enabled, row.found) == (True, "It answers.")
