"""Isolation by plain SQL, over every table that introspection finds.

A new tenant table fails here until it has its policies, its composite keys, and a row in `rows.fill`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import ProgrammingError, connection, models, transaction

from tests.architecture.rows import BUCKETS, GUARDED, MODELS, TENANTS, Filled, fill_all, table
from workspaces.logic.policies import APP_ROLE
from workspaces.models import GLOBAL_BUCKET_ID, GLOBAL_WORKSPACE_ID, Workspace
from workspaces.models.tenancy import BucketModel, TenantModel
from workspaces.tenancy import Door, door, tenant, workspace
from workspaces.types import BucketRef, Reach

_INDEX = "the index of words and vectors: no text, ids only; its every search names buckets"
NOBODYS = {
    "workspaces_heartbeat": "says which processes live; no tenant's data",
    "recall_record": _INDEX,
    "recall_vector": _INDEX,
    "recall_gone": _INDEX,
    "recall_speaker": _INDEX,
    "recall_bucketcount": _INDEX,
}
"""Tables of ours without a workspace, each with the reason."""

by_table = pytest.mark.parametrize("model", GUARDED, ids=table)
by_bucket_table = pytest.mark.parametrize("model", BUCKETS, ids=table)


def rows(sql: str, *values: Any) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return list(cursor.fetchall())


def count(model: type[models.Model], where: str = "true", *values: Any) -> int:
    return int(rows(f"SELECT count(*) FROM {table(model)} WHERE {where}", *values)[0][0])


@pytest.fixture(scope="module")
def filled(django_db_setup: None, django_db_blocker) -> Iterator[Filled]:
    """Made once for the module, in a transaction that is rolled back."""
    with django_db_blocker.unblock():
        atomic = transaction.atomic()
        atomic.__enter__()
        try:
            yield fill_all()
        finally:
            transaction.set_rollback(True)
            atomic.__exit__(None, None, None)


@pytest.fixture(autouse=True)
def _each_in_a_savepoint(request: pytest.FixtureRequest, django_db_blocker) -> Iterator[None]:
    """What a test changes in the filled tables is taken back."""
    if "filled" not in request.fixturenames:
        yield
        return
    request.getfixturevalue("filled")
    with django_db_blocker.unblock(), transaction.atomic():
        yield
        transaction.set_rollback(True)


def reach_of(bucket: BucketRef, team: BucketRef) -> Reach:
    return Reach(bucket.workspace_id, (bucket.id, team.id, GLOBAL_BUCKET_ID), (bucket.id,))


def doors_closed() -> None:
    assert rows(
        "SELECT current_user, coalesce(current_setting('mate.workspace', true), ''),"
        " coalesce(current_setting('mate.door', true), '')"
    ) == [(APP_ROLE, "", "")]


# --- what Postgres was told -------------------------------------------------------------------------------


def test_every_table_of_ours_is_guarded_or_nobodys():
    assert set(map(table, MODELS)) == {*map(table, GUARDED), *NOBODYS}


def test_every_tenant_model_inherits_the_managers_that_ask_whose():
    assert {model for model in TENANTS if not issubclass(model, TenantModel)} == set()
    assert {model for model in BUCKETS if not issubclass(model, BucketModel)} == set()
    for model in TENANTS:
        for field in model._meta.fields:
            if field.attname in {"workspace_id", "bucket_id"}:
                assert not field.null, f"{table(model)}.{field.attname} may be NULL"


def test_every_model_that_holds_a_persons_words_is_of_a_bucket():
    """Free text of a person belongs to a bucket; what stands in a workspace's table is named here."""
    allowed = {
        "workspaces_agent": "what the operator says of an agent",
        "workspaces_auditevent": "what was done, never what was said",
        "workspaces_idempotencykey": "the answer to a repeated request, a day long, of its caller only",
        "workspaces_plugin": "how the workspace has set a plugin up",
        "workspaces_settingoverride": "values of settings",
    }
    found = {
        table(model)
        for model in TENANTS
        if not issubclass(model, BucketModel)
        and any(isinstance(field, (models.TextField, models.JSONField)) for field in model._meta.local_fields)
        # Django's CharField is no TextField; an array of grants is none either.
    }
    assert found == set(allowed)


@pytest.mark.django_db
def test_the_application_role_can_do_nothing_that_goes_around_the_policies():
    assert rows(
        "SELECT rolname, rolsuper, rolbypassrls, rolcreaterole, rolcreatedb, rolreplication"
        " FROM pg_roles WHERE rolname = current_user"
    ) == [(APP_ROLE, False, False, False, False, False)]
    memberships = rows(
        "SELECT r.rolname FROM pg_auth_members m JOIN pg_roles r ON r.oid = m.roleid"
        " WHERE m.member = (SELECT oid FROM pg_roles WHERE rolname = %s)",
        APP_ROLE,
    )
    assert memberships == []
    owned = rows(
        "SELECT c.relname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner WHERE r.rolname = %s",
        APP_ROLE,
    )
    assert owned == []
    assert rows("SELECT has_schema_privilege(current_user, 'public', 'CREATE')") == [(False,)]
    assert rows("SELECT has_database_privilege(current_user, current_database(), 'CREATE')") == [(False,)]


@by_table
@pytest.mark.django_db
def test_a_tenant_table_has_its_four_policies(model):
    (enabled, owner) = rows(
        "SELECT relrowsecurity, pg_get_userbyid(relowner) FROM pg_class WHERE oid = %s::regclass",
        table(model),
    )[0]
    assert enabled
    assert owner != APP_ROLE
    found = rows(
        "SELECT policyname, cmd, permissive, qual IS NULL, with_check IS NULL FROM pg_policies"
        " WHERE schemaname = 'public' AND tablename = %s ORDER BY policyname",
        table(model),
    )
    assert found == [
        ("mate_delete", "DELETE", "PERMISSIVE", False, True),
        ("mate_insert", "INSERT", "PERMISSIVE", True, False),
        ("mate_read", "SELECT", "PERMISSIVE", False, True),
        ("mate_update", "UPDATE", "PERMISSIVE", False, False),
    ]


@by_table
@pytest.mark.django_db
def test_the_application_role_may_not_empty_or_change_a_table(model):
    for right in ("TRUNCATE", "REFERENCES", "TRIGGER"):
        assert rows("SELECT has_table_privilege(%s, %s, %s)", APP_ROLE, table(model), right) == [(False,)], (
            right
        )
    for right in ("SELECT", "INSERT", "UPDATE", "DELETE"):
        assert rows("SELECT has_table_privilege(%s, %s, %s)", APP_ROLE, table(model), right) == [(True,)], (
            right
        )


@by_table
@pytest.mark.django_db
def test_a_key_to_another_tenant_table_carries_the_tenant(model):
    """A row cannot point into another workspace or bucket: each reference has a composite key beside it."""
    simple = {
        field.column
        for field in model._meta.local_fields
        if isinstance(field, models.ForeignKey)
        and field.related_model in TENANTS
        and field.column not in {"workspace_id", "bucket_id"}
    }
    if model in BUCKETS:
        simple.add("bucket_id")
    composite = {
        tuple(columns)
        for (columns,) in rows(
            "SELECT array_agg(a.attname ORDER BY k.n) FROM pg_constraint c"
            " CROSS JOIN LATERAL unnest(c.conkey) WITH ORDINALITY AS k(attnum, n)"
            " JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.attnum"
            " WHERE c.contype = 'f' AND c.conrelid = %s::regclass GROUP BY c.oid HAVING count(*) > 1",
            table(model),
        )
    }
    carried = {columns[1] for columns in composite if columns[0] in {"workspace_id", "bucket_id"}}
    assert simple <= carried, f"{table(model)}: no composite key for {sorted(simple - carried)}"


# --- what is seen -----------------------------------------------------------------------------------------


@by_table
def test_every_table_has_rows_to_hide(filled: Filled, model):
    where = "id" if model is Workspace else "workspace_id"
    with door(Door.OPERATOR):
        for world in (filled.acme, filled.umbra):
            assert count(model, f"{where} = %s", world.workspace.pk), (
                f"Add a row of {table(model)} to `fill`."
            )
        if model in BUCKETS:
            for bucket in (filled.vera, filled.bob, filled.mallory):
                assert count(model, "bucket_id = %s", bucket.id), f"Add a row of {table(model)} to `fill`."


@by_table
def test_with_nothing_set_every_table_is_empty(filled: Filled, model):
    doors_closed()
    assert count(model) == 0


@by_table
def test_with_nothing_set_nothing_is_written_or_removed(filled: Filled, model):
    doors_closed()
    column = table(model)
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {column} SET id = id")
        assert cursor.rowcount == 0
        cursor.execute(f"DELETE FROM {column}")
        assert cursor.rowcount == 0


@by_table
def test_mallory_sees_nothing_of_alices(filled: Filled, model):
    where = "id" if model is Workspace else "workspace_id"
    mine, alices = filled.umbra.workspace.pk, filled.acme.workspace.pk
    with tenant(reach_of(filled.mallory, filled.umbra.team)):
        assert count(model, f"{where} = %s", alices) == 0
        assert count(model, f"{where} NOT IN (%s, %s)", mine, GLOBAL_WORKSPACE_ID) == 0
        assert count(model, f"{where} = %s", mine) > 0


@by_bucket_table
def test_bobs_reach_shows_no_personal_row_of_veras(filled: Filled, model):
    with tenant(reach_of(filled.bob, filled.acme.team)):
        assert count(model, "bucket_id = %s", filled.vera.id) == 0
        assert count(model, "bucket_id = %s", filled.bob.id) > 0


@by_bucket_table
def test_a_workspace_without_a_reach_shows_no_bucket(filled: Filled, model):
    with workspace(filled.acme.workspace.pk):
        assert count(model) == 0


@by_bucket_table
def test_a_reach_alone_does_not_let_one_write(filled: Filled, model):
    readable = Reach(filled.acme.workspace.pk, (filled.bob.id, filled.vera.id), (filled.bob.id,))
    with tenant(readable), connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table(model)} SET bucket_id = bucket_id WHERE bucket_id = %s", [filled.vera.id]
        )
        assert cursor.rowcount == 0
        cursor.execute(f"DELETE FROM {table(model)} WHERE bucket_id = %s", [filled.vera.id])
        assert cursor.rowcount == 0


@by_bucket_table
def test_a_row_cannot_be_moved_into_a_bucket_that_one_may_not_write(filled: Filled, model):
    readable = Reach(filled.acme.workspace.pk, (filled.bob.id, filled.vera.id), (filled.bob.id,))
    with tenant(readable), pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
        rows(f"UPDATE {table(model)} SET bucket_id = %s WHERE bucket_id = %s", filled.vera.id, filled.bob.id)


@by_bucket_table
def test_naming_anothers_bucket_as_mallorys_shows_text_to_nobody(filled: Filled, model):
    """A reach is made in `workspaces.access` alone; were one made wrongly, the workspace would still hold writes."""
    forged = Reach(filled.umbra.workspace.pk, (filled.vera.id,), (filled.vera.id,))
    with tenant(forged), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table(model)} WHERE bucket_id = %s", [filled.vera.id])
        assert cursor.rowcount == 0
