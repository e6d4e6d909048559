"""Overrides of settings: bounded, audited, and only from those who may."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import ProgrammingError

from tests.factories import World
from workspaces.errors import BadInput, Forbidden, NotFound
from workspaces.models import AuditEvent, SettingOverride
from workspaces.services.overrides import EVERYWHERE, Editor, Place, clear_override, set_override
from workspaces.settings import effective
from workspaces.tenancy import Door, door, workspace

KEY = "mate.memory.cooldown-minutes"


def editor_of(user: User) -> Editor:
    return Editor(user.pk, f"user:{user.pk}", "127.0.0.1")


@pytest.fixture
def operator(db) -> Editor:
    return editor_of(User.objects.create_superuser("root", password="a long password"))


@pytest.fixture
def here(acme: World) -> Place:
    return Place(acme.workspace.pk)


@pytest.fixture
def alice(acme: World) -> Editor:
    return editor_of(acme.alice.user)


def in_force(place: Place) -> tuple[object, str]:
    with workspace(place.workspace_id):
        found = next(
            one for one in effective(place.workspace_id, place.agent_id).all() if one.setting.key == KEY
        )
    return found.value, found.origin


def test_agent_beats_workspace_beats_everywhere_beats_environment(
    acme: World, here: Place, alice: Editor, operator: Editor, monkeypatch
):
    agent = Place(acme.workspace.pk, acme.agent_id)
    assert in_force(agent) == (5, "default")
    monkeypatch.setenv("MATE_MEMORY_COOLDOWN_MINUTES", "6")
    assert in_force(agent) == (6, "environment")
    with door(Door.OPERATOR):
        set_override(EVERYWHERE, KEY, 7, by=operator)
    assert in_force(agent) == (7, "global")
    with workspace(acme.workspace.pk):
        set_override(here, KEY, 8, by=alice)
    assert in_force(agent) == (8, "workspace")
    with workspace(acme.workspace.pk):
        set_override(agent, KEY, 9, by=alice)
    assert in_force(agent) == (9, "agent")
    assert in_force(here) == (8, "workspace")
    with workspace(acme.workspace.pk):
        clear_override(agent, KEY, by=alice)
    assert in_force(agent) == (8, "workspace")


def test_another_workspace_is_not_touched(acme: World, umbra: World, here: Place, alice: Editor):
    with workspace(acme.workspace.pk):
        set_override(here, KEY, 8, by=alice)
    assert in_force(Place(umbra.workspace.pk, umbra.agent_id)) == (5, "default")


def test_a_change_and_a_reset_are_audited_with_both_values(acme: World, here: Place, alice: Editor):
    with workspace(acme.workspace.pk):
        set_override(here, KEY, 8, by=alice)
        set_override(here, KEY, "9", by=alice)
        set_override(here, KEY, 9, by=alice)
        clear_override(here, KEY, by=alice)
        clear_override(here, KEY, by=alice)
        traces = AuditEvent.unscoped.filter(action__startswith="setting.").order_by("pk")
        assert [(one.action, one.detail["from"], one.detail["to"]) for one in traces] == [
            ("setting.changed", None, 8),
            ("setting.changed", 8, 9),
            ("setting.reset", 9, None),
        ]
        assert {(one.actor, one.target, one.address) for one in traces} == {
            (alice.actor, f"setting:{KEY}", "127.0.0.1")
        }


def test_true_is_not_taken_for_the_number_one(acme: World, here: Place, alice: Editor):
    with workspace(acme.workspace.pk):
        set_override(here, KEY, 1, by=alice)
        with pytest.raises(BadInput):
            set_override(here, KEY, True, by=alice)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("mate.memory.no-such-key", 1),
        (KEY, -1),
        (KEY, 1441),
        (KEY, "five"),
        (KEY, None),
        (KEY, [5]),
        (KEY, 5.5),
        ("mate.memory.auto-summarize-enabled", "perhaps"),
        ("mate.memory.emergence-cron", "every night"),
        ("mate.memory.disabled-providers", 3),
        ("mate.memory.disabled-providers", "nul\0"),
        ("mate.memory.disabled-providers", "x" * 2001),
        ("mate.agent.conversation.window.compact-trigger-ratio", 1.01),
    ],
)
def test_a_wrong_value_is_refused_and_nothing_is_stored(acme: World, here: Place, alice: Editor, key, value):
    with workspace(acme.workspace.pk):
        with pytest.raises(BadInput):
            set_override(here, key, value, by=alice)
        assert not SettingOverride.unscoped.exists()


def test_only_a_global_administrator_sets_what_holds_everywhere(acme: World, alice: Editor, operator: Editor):
    with door(Door.OPERATOR):
        with pytest.raises(Forbidden):
            set_override(EVERYWHERE, KEY, 7, by=alice)
        with pytest.raises(Forbidden):
            clear_override(EVERYWHERE, KEY, by=alice)
        set_override(EVERYWHERE, KEY, 7, by=operator)
    assert in_force(EVERYWHERE) == (7, "global")


def test_even_the_database_refuses_a_tenant_who_writes_what_holds_everywhere(acme: World, operator: Editor):
    with pytest.raises(ProgrammingError, match="row-level security"), workspace(acme.workspace.pk):
        set_override(EVERYWHERE, KEY, 7, by=operator)


def test_an_agent_of_another_workspace_does_not_exist(acme: World, umbra: World, alice: Editor):
    with workspace(acme.workspace.pk), pytest.raises(NotFound):
        set_override(Place(acme.workspace.pk, umbra.agent_id), KEY, 7, by=alice)
