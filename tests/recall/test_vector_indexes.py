"""Large buckets get an index of their own; others are compared exactly; whoever searches cannot tell."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pytest
from django.core.management import call_command
from django.db import DataError, connection, connections

from recall.management.commands import vector_index
from recall.models import BucketCount, Record
from recall.services import dense, vector_indexes
from recall.services.dense import Embedded
from recall.services.index import put_units, put_vectors, remove_bucket
from recall.services.search import Wanted, search
from recall.services.vector_indexes import BusyError, update
from recall.types import RecordKind, Unit

NOW = datetime(2024, 6, 15, tzinfo=UTC)
SMALL, BIG, BIGGER = 800_001, 800_002, 800_003
SIZE = 8


@pytest.fixture
def large(monkeypatch, committed):
    """Buckets of forty records are large, and all are searched as in a large reach."""
    for module in (dense, vector_indexes):
        monkeypatch.setattr(module, "LARGE", 40)
    monkeypatch.setattr("recall.services.search.SMALL", 5)
    chance = random.Random(1)
    for bucket, count in ((SMALL, 20), (BIG, 60), (BIGGER, 90)):
        units = [
            Unit(RecordKind.MESSAGE, bucket * 100 + n, 0, f"word{bucket}x{n}", bucket * 100 + n, 0, at=NOW)
            for n in range(count)
        ]
        put_units(bucket, units)
        rows = Record.objects.filter(bucket_id=bucket).values_list("pk", flat=True)
        put_vectors(
            bucket,
            embedder="e:1",
            vectors=[(pk, [chance.gauss(0, 1) for _ in range(SIZE)]) for pk in rows],
        )
    yield
    for name in names():
        with connections["owner"].cursor() as cursor:
            cursor.execute(f"DROP INDEX {name}")


def names() -> list[str]:
    with connections["owner"].cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE indexname LIKE 'vector_near_%' ORDER BY 1")
        return [name for (name,) in cursor.fetchall()]


def nearest(*buckets, value=(1.0,) * SIZE):
    """The records that have no word of the question, so that vectors alone rank them."""
    found = search(buckets, Wanted("zebra", NOW, limit=10), embedded=Embedded("e:1", list(value)))
    return [one.record_id for one in found]


def exact(*buckets, value=(1.0,) * SIZE):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT record_id FROM recall_vector WHERE bucket_id = ANY(%s) AND vector_dims(value) = %s"
            " ORDER BY value <=> %s::halfvec, record_id LIMIT 10",
            [list(buckets), SIZE, str(list(value))],
        )
        return [pk for (pk,) in cursor.fetchall()]


def test_large_buckets_get_an_index_and_small_ones_none(large):
    built, dropped = update(using="owner")
    assert [one.bucket for one in built] == [BIG, BIGGER]
    assert dropped == []
    assert names() == sorted(one.name for one in built)
    assert update(using="owner") == ([], [])


@pytest.mark.parametrize("reach", [(SMALL,), (BIG,), (SMALL, BIG), (SMALL, BIG, BIGGER)])
def test_the_nearest_are_the_same_with_and_without_indexes(large, reach):
    before = nearest(*reach)
    assert sorted(before) == sorted(exact(*reach))
    update(using="owner")
    assert nearest(*reach) == before


def test_the_index_of_a_large_bucket_answers(large):
    update(using="owner")
    leg = dense.leg_of(Embedded("e:1", [1.0] * SIZE), counts={BIG: 60})
    with connection.cursor() as cursor:
        cursor.execute("SET enable_sort = off")
        cursor.execute(f"EXPLAIN {leg.nearest}", leg.given | {"buckets": [BIG]})
        plan = "\n".join(line for (line,) in cursor.fetchall())
    connection.close()
    assert f"vector_near_{BIG}_" in plan


def test_an_index_goes_when_its_bucket_does_and_a_broken_one_is_built_anew(large):
    built, _ = update(using="owner")
    remove_bucket(BIG)
    # A size that does not fit breaks the build off, as a crash would, and leaves a ruin of that name.
    ruin = f"CREATE INDEX CONCURRENTLY {built[1].name} ON recall_vector USING hnsw ((value::halfvec(3)) "
    ruin += "halfvec_cosine_ops)"
    with connections["owner"].cursor() as cursor:
        cursor.execute(f"DROP INDEX {built[1].name}")
        with pytest.raises(DataError):
            cursor.execute(ruin)
    again, dropped = update(using="owner")
    assert again == [built[1]]
    assert sorted(dropped) == sorted(one.name for one in built)
    assert names() == [built[1].name]


def test_vectors_of_a_wrong_size_break_neither_search_nor_index(large):
    for bucket in (SMALL, BIG):
        put_units(bucket, [Unit(RecordKind.MESSAGE, bucket, 0, "zebra", bucket, 0, at=NOW)])
        [pk] = Record.objects.filter(source_id=bucket).values_list("pk", flat=True)
        put_vectors(bucket, embedder="e:1", vectors=[(pk, [1.0, 2.0])])
        assert nearest(bucket)[0] == pk
    update(using="owner")
    assert len(nearest(SMALL, BIG)) == 10


def test_two_do_not_build_at_once(large):
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [vector_indexes._LOCK])
    with pytest.raises(BusyError):
        update(using="owner")
    connection.close()


def test_the_command_says_what_it_did(large, capsys):
    call_command(vector_index.Command())
    assert f"vector_near_{BIG}_" in capsys.readouterr().out
    assert BucketCount.objects.count() == 3
