"""No row points into another tenant: composite keys, tried as the owner of the tables, whom no policy binds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from django.db import IntegrityError, connections, models, transaction

from tests.architecture.rows import BUCKETS, Filled, fill_all, table


@pytest.fixture
def owner_cursor(committed: None) -> Iterator[tuple[Any, Filled]]:
    """The owner of the tables, whom no policy binds, over rows that were committed."""
    filled = fill_all()
    with connections["owner"].cursor() as cursor:
        yield cursor, filled


def _copy(cursor: Any, name: str, source: int, **changed: object) -> None:
    """Inserts a copy of a row with some columns changed, and checks the deferred constraints at once."""
    cursor.execute(
        "SELECT quote_ident(column_name), column_name FROM information_schema.columns"
        " WHERE table_schema = 'public' AND table_name = %s AND column_name <> 'id' ORDER BY ordinal_position",
        [name],
    )
    columns = cursor.fetchall()
    shown = ", ".join(quoted for quoted, _ in columns)
    picked = ", ".join("%s" if plain in changed else quoted for quoted, plain in columns)
    values = [changed[plain] for _, plain in columns if plain in changed]
    with transaction.atomic(using="owner"):
        cursor.execute(
            f"INSERT INTO {name} ({shown}) SELECT {picked} FROM {name} WHERE id = %s", [*values, source]
        )
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")


def test_no_row_of_a_bucket_names_another_workspace(owner_cursor: tuple[Any, Filled]):
    cursor, filled = owner_cursor
    for model in BUCKETS:
        cursor.execute(f"SELECT id FROM {table(model)} WHERE bucket_id = %s LIMIT 1", [filled.vera.id])
        source = cursor.fetchone()[0]
        with (
            pytest.raises(IntegrityError, match="same_workspace") as refused,
            _OthersDropped(cursor, model),
        ):
            _copy(cursor, table(model), source, workspace_id=filled.umbra.workspace.pk)
        assert "bucket_id" in str(refused.value), table(model)


class _OthersDropped:
    """Lets a copy of a row in, so that only the composite key can refuse it; the transaction brings them back."""

    def __init__(self, cursor: Any, model: type[models.Model]) -> None:
        self.cursor = cursor
        self.model = model
        self.atomic = transaction.atomic(using="owner")

    def __enter__(self) -> None:
        self.atomic.__enter__()
        self.cursor.execute(
            "SELECT c.conname FROM pg_constraint c WHERE c.conrelid = %s::regclass AND c.contype IN ('u', 'c')"
            " AND NOT EXISTS (SELECT FROM pg_constraint f WHERE f.contype = 'f' AND f.conindid = c.conindid)",
            [table(self.model)],
        )
        for (name,) in self.cursor.fetchall():
            self.cursor.execute(f"ALTER TABLE {table(self.model)} DROP CONSTRAINT {name}")
        self.cursor.execute(
            "SELECT i.indexrelid::regclass::text FROM pg_index i WHERE i.indrelid = %s::regclass"
            " AND i.indisunique AND NOT i.indisprimary"
            " AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conindid = i.indexrelid)",
            [table(self.model)],
        )
        for (name,) in self.cursor.fetchall():
            self.cursor.execute(f"DROP INDEX {name}")

    def __exit__(self, *raised: Any) -> None:
        self.atomic.__exit__(*raised)


def test_no_row_points_into_another_bucket(owner_cursor: tuple[Any, Filled]):
    """Each reference from a bucket's row to a bucket's row, tried with a target in another tenant's bucket."""
    cursor, filled = owner_cursor
    let_through = []
    for model, field in _references():
        cursor.execute(
            f"SELECT id FROM {table(field.related_model)} WHERE bucket_id = %s LIMIT 1", [filled.mallory.id]
        )
        foreign = cursor.fetchone()[0]
        cursor.execute(f"SELECT id FROM {table(model)} WHERE bucket_id = %s LIMIT 1", [filled.vera.id])
        source = cursor.fetchone()[0]
        if not _is_refused(cursor, model, source, **{field.column: foreign}):
            let_through.append(f"{table(model)}.{field.column}")
    assert let_through == []


def _is_refused(cursor: Any, model: type[models.Model], source: int, **changed: object) -> bool:
    try:
        with _OthersDropped(cursor, model):
            _copy(cursor, table(model), source, **changed)
            transaction.set_rollback(True, using="owner")
    except IntegrityError as refused:
        return "_same_" in str(refused)
    return False


def _references() -> Sequence[tuple[type[models.Model], models.ForeignKey]]:
    return [
        (model, field)
        for model in BUCKETS
        for field in model._meta.local_fields
        if isinstance(field, models.ForeignKey) and field.related_model in BUCKETS
    ]
