"""Index and search together: what is put in is found, by whom it may be found, and no longer when it is gone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from recall.models import BucketCount, Record, Vector
from recall.services.dense import Embedded
from recall.services.index import (
    put_units,
    put_vectors,
    remove_bucket,
    remove_sources,
    replace_source,
    without_vector,
)
from recall.services.search import Wanted, search
from recall.types import RecordKind, Unit

NOW = datetime(2024, 6, 15, 12, tzinfo=UTC)
MINE, OTHERS = 900_001, 900_002


def unit(n, text, *, thread=1, position=None, speaker="", days_ago=10, kind=RecordKind.MESSAGE, part=0):
    at = NOW - timedelta(days=days_ago)
    return Unit(kind, n, part, text, thread, n if position is None else position, speaker=speaker, at=at)


def ids(query, *, buckets=(MINE,), embedded=None, **more):
    return [one.source_id for one in search(buckets, Wanted(query, NOW, **more), embedded=embedded)]


@pytest.fixture
def talk(db):
    put_units(
        MINE,
        [
            unit(1, "I adopted a grey cat from the shelter."),
            unit(2, "What is its name?"),
            unit(3, "She is called Miso, and she hates the rain."),
            unit(4, "My sister studies law in Bergen.", thread=2),
            unit(5, "我对花生过敏，喜欢喝龙井茶。", thread=3),
            unit(6, "The build of service foo_bar v1.2 broke.", thread=4),
        ],
    )
    put_units(OTHERS, [unit(11, "I adopted a grey cat too.", thread=11)])


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Which cat was adopted?", 1),
        ("adopting cats", 1),
        ("花生", 5),
        ("喝什么茶", 5),
        ("foo_bar", 6),
        ("v1.2", 6),
        ("ｓｉｓｔｅｒ", 4),
    ],
)
def test_a_record_is_found_by_its_words(talk, query, first):
    assert ids(query)[0] == first


def test_only_the_named_buckets_are_seen(talk):
    assert 11 not in ids("grey cat")
    assert ids("grey cat", buckets=(OTHERS,)) == [11]
    assert ids("grey cat", buckets=()) == []
    assert ids("grey cat", buckets=(123,)) == []


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "?",
        "😀😀",
        "' | 'x",
        "cat & !dog:*",
        "\\",
        "'); DROP TABLE recall_record; --",
        "a" * 10_000,
        "的",
    ],
)
def test_no_query_breaks_the_search(talk, query):
    search((MINE,), Wanted(query, NOW))


def test_what_is_replaced_keeps_its_vector_where_the_text_stayed(db):
    lines = ["- tea", "- coffee", "- cocoa"]
    put = [unit(7, text, kind=RecordKind.FILE, part=n, position=n, thread=7) for n, text in enumerate(lines)]
    replace_source(MINE, RecordKind.FILE, 7, put)
    for waiting in without_vector(MINE, embedder="e", limit=10):
        put_vectors(MINE, embedder="e", vectors=[(waiting.record_id, [1.0, 0.0])])
    kept = set(Record.objects.values_list("pk", flat=True))
    now = ["- coffee", "- milk", "- tea"]
    replace_source(
        MINE,
        RecordKind.FILE,
        7,
        [unit(7, text, kind=RecordKind.FILE, part=n, position=n, thread=7) for n, text in enumerate(now)],
    )
    assert len(kept & set(Record.objects.values_list("pk", flat=True))) == 2
    assert [waiting.part for waiting in without_vector(MINE, embedder="e", limit=10)] == [1]
    assert BucketCount.objects.get(bucket_id=MINE).records == 3


def test_what_is_removed_is_found_no_more(talk):
    remove_sources(RecordKind.MESSAGE, [1])
    assert 1 not in ids("grey cat")
    remove_bucket(MINE)
    assert ids("grey cat") == []
    assert not Vector.objects.exists()


def test_vectors_find_what_shares_no_word(talk):
    rows = dict(Record.objects.filter(bucket_id=MINE).values_list("source_id", "pk"))
    vectors = [(pk, [0.6, 0.8] if source == 4 else [1.0, 0.0]) for source, pk in rows.items()]
    put_vectors(MINE, embedder="e", vectors=vectors)
    assert ids("jurisprudence", embedded=Embedded("e", [0.0, 1.0]))[0] == 4
    assert (
        ids("jurisprudence", embedded=Embedded("another", [0.0, 1.0])) == []
    )  # nobody's vectors: words alone


def test_times_and_kinds_bound_what_is_shown(talk):
    put_units(MINE, [unit(8, "A cat sat on the mat today.", thread=8, days_ago=0)])
    assert ids("cat", since=NOW - timedelta(days=1)) == [8]
    assert 8 not in ids("cat", until=NOW - timedelta(days=1))
    assert ids("cat", kinds=(RecordKind.FILE,)) == []


def test_a_neighbour_that_answers_is_lent_the_score_of_the_question(talk):
    assert 3 in ids("What is the cat's name?", limit=3)


def test_every_result_explains_itself(talk):
    [best, *_] = search((MINE,), Wanted("grey cat", NOW))
    assert best.score == pytest.approx(sum(best.why.values()))
    assert best.why["lexical"] > 0


def test_in_a_large_bucket_the_rare_words_choose(db):
    put_units(MINE, [unit(n, f"the common talk of day {n}", thread=n) for n in range(1, 2101)])
    put_units(MINE, [unit(5000, "the common talk of zebras", thread=5000)])
    assert ids("common talk of zebras")[0] == 5000


def test_the_number_of_statements_does_not_grow(talk, django_assert_num_queries):
    with django_assert_num_queries(2):
        search((MINE, OTHERS), Wanted("grey cat", NOW))
