"""Settings over HTTP."""

from __future__ import annotations

import pytest

from tests.factories import World
from workspaces.logic.registry import SETTINGS

KEY = "mate.memory.cooldown-minutes"


def row_of(body: dict, key: str = KEY) -> dict:
    return next(row for row in body["results"] if row["key"] == key)


def test_every_setting_is_listed_with_its_value_and_origin(acme: World):
    answer = acme.bob.client().get("/api/v1/settings?pageSize=200")
    assert answer.status_code == 200
    body = answer.json()
    assert [row["key"] for row in body["results"]] == list(SETTINGS)
    assert row_of(body) == {
        "key": KEY,
        "value": 5,
        "origin": "default",
        "default": 5,
        "kind": "int",
        "minimum": 0,
        "maximum": 1440,
        "help": SETTINGS[KEY].help,
        "envName": "MATE_MEMORY_COOLDOWN_MINUTES",
    }


def test_a_change_for_an_agent_holds_for_that_agent_only_and_can_be_taken_back(acme: World):
    client = acme.alice.client()
    answer = client.put("/api/v1/settings", {"key": KEY, "value": 9, "agentId": acme.agent_id})
    assert (answer.status_code, answer.json()["value"], answer.json()["origin"]) == (200, 9, "agent")
    listed = client.get(f"/api/v1/settings?agentId={acme.agent_id}&pageSize=200").json()
    assert row_of(listed)["value"] == 9
    assert row_of(client.get("/api/v1/settings?pageSize=200").json())["value"] == 5
    answer = client.delete(f"/api/v1/settings/{KEY}?agentId={acme.agent_id}")
    assert (answer.status_code, answer.json()["value"], answer.json()["origin"]) == (200, 5, "default")


def test_a_change_for_the_workspace_holds_for_its_agents(acme: World):
    client = acme.alice.client()
    client.put("/api/v1/settings", {"key": KEY, "value": 9})
    listed = client.get(f"/api/v1/settings?agentId={acme.agent_id}&pageSize=200").json()
    assert (row_of(listed)["value"], row_of(listed)["origin"]) == (9, "workspace")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"key": KEY, "value": 5000}, "bad_setting"),
        ({"key": "mate.memory.nothing", "value": 1}, "unknown_setting"),
        ({"key": KEY}, "invalid"),
        ({"key": KEY, "value": None}, "invalid"),
        ({"key": KEY, "value": 5, "agent": 1}, "invalid"),
        ({"key": KEY, "value": {"a": 1}}, "bad_setting"),
        ({"key": "mate.memory.disabled-providers", "value": "a\u0000b"}, "bad_setting"),
    ],
)
def test_a_wrong_change_is_told(acme: World, body: dict, code: str):
    answer = acme.alice.client().put("/api/v1/settings", body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_an_unknown_key_cannot_be_reset(acme: World):
    answer = acme.alice.client().delete("/api/v1/settings/mate.memory.nothing")
    assert (answer.status_code, answer.json()["code"]) == (400, "unknown_setting")


def test_a_foreign_agent_does_not_exist(acme: World, umbra: World):
    client = acme.alice.client()
    assert client.get(f"/api/v1/settings?agentId={umbra.agent_id}").status_code == 404
    body = {"key": KEY, "value": 9, "agentId": umbra.agent_id}
    assert client.put("/api/v1/settings", body).status_code == 404
    assert client.delete(f"/api/v1/settings/{KEY}?agentId={umbra.agent_id}").status_code == 404


def test_members_read_and_admins_change(acme: World):
    assert acme.vera.client().get("/api/v1/settings").status_code == 403
    assert acme.bob.client().get("/api/v1/settings").status_code == 200
    assert acme.bob.client().put("/api/v1/settings", {"key": KEY, "value": 9}).status_code == 403
    assert acme.bob.client().delete(f"/api/v1/settings/{KEY}").status_code == 403
