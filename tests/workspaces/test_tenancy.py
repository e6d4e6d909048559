"""What a transaction sees is what it said it wants to see."""

from __future__ import annotations

import pytest
from django.db import DataError, connection, transaction

from tests import factories
from tests.factories import World
from workspaces.models import Agent, File, Workspace
from workspaces.models.tenancy import UnscopedReadError
from workspaces.services.owners import make_bucket
from workspaces.tenancy import (
    Door,
    door,
    read_as_workspace,
    read_through,
    release_connection,
    tenant,
    workspace,
)


def test_the_application_role_is_bound_by_row_level_security(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_user, rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user"
        )
        assert cursor.fetchone() == ("mate_app", False, False)


def test_nothing_set_shows_nothing(acme: World):
    with transaction.atomic():
        assert not Workspace.unscoped.exists()
        assert not File.unscoped.exists()


def test_a_workspace_sees_itself_and_no_other(acme: World, umbra: World):
    with workspace(umbra.workspace.pk):
        assert [agent.pk for agent in Agent.unscoped.all()] == [umbra.agent_id]
        assert not Agent.unscoped.filter(pk=acme.agent_id).exists()


def test_the_outer_sight_returns_after_an_inner_one(acme: World, umbra: World):
    with workspace(acme.workspace.pk):
        with door(Door.OPERATOR):
            assert Agent.unscoped.count() == 2
        assert Agent.unscoped.count() == 1
        with pytest.raises(ZeroDivisionError), workspace(umbra.workspace.pk):
            raise ZeroDivisionError
        assert [agent.pk for agent in Agent.unscoped.all()] == [acme.agent_id]


def test_a_read_that_does_not_say_whose_is_refused(acme: World):
    with tenant(acme.team), pytest.raises(UnscopedReadError):
        File.objects.filter(name="AGENTS.md")


def test_waiting_inside_a_transaction_is_refused(db):
    with transaction.atomic(), pytest.raises(RuntimeError, match="inside a database transaction"):
        release_connection()


def test_one_statement_sees_what_its_transaction_would_and_leaves_nothing_behind(committed):
    world = factories.acme()
    sql = "SELECT key FROM workspaces_owner WHERE workspace_id = %s ORDER BY 1"
    with workspace(world.workspace.pk):
        make_bucket(world.team, "api:nora")
    told = [world.workspace.pk]
    assert ("api:nora",) in read_as_workspace(world.workspace.pk, sql, told)
    assert read_as_workspace(world.workspace.pk + 1, sql, told) == []
    with connection.cursor() as cursor:
        cursor.execute(sql, told)
        assert cursor.fetchall() == []  # the sight is gone
    with pytest.raises(DataError):
        read_as_workspace(world.workspace.pk, "SELECT 1 / 0 WHERE %s > 0", told)
    with connection.cursor() as cursor:
        cursor.execute(sql, told)
        assert cursor.fetchall() == []  # after an error, too
    with workspace(world.workspace.pk + 1):
        assert ("api:nora",) in read_as_workspace(world.workspace.pk, sql, told)
        assert read_through(Door.OPERATOR, sql, told) != []
        with connection.cursor() as cursor:
            cursor.execute(sql, told)
            assert cursor.fetchall() == []  # the outer sight is back
