"""What every vector store promises, shown with each of them over its real wire, and their names."""

import math
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.clients.embed.names import COHERE, TITAN
from integrations.clients.errors import ProviderError
from integrations.clients.vectors.base import Item, Limits, Near, VectorStore
from integrations.clients.vectors.build import make_store
from integrations.clients.vectors.careful import CarefulStore
from integrations.clients.vectors.names import check_index_name, check_store_name, index_name
from integrations.clients.vectors.opensearch import OpenSearchIndex
from integrations.clients.vectors.process import PerProcess
from integrations.clients.vectors.s3vectors import S3Vectors
from integrations.clients.waiting import before_call
from tests.stubs.json_server import Answer, JsonServer
from tests.stubs.opensearch_server import OpenSearchServer
from tests.stubs.s3vectors_server import S3VectorsServer, one_loader

PATIENCE_S = 20.0  # only spent when something is broken


@dataclass(frozen=True)
class Place:
    """A stub, and stores that are clients of it."""

    server: JsonServer
    name: str
    engine: str
    settle: Callable[[], None]

    def store(
        self, index: str = "mate-test", *, timeout_s: float = PATIENCE_S, url: str | None = None
    ) -> VectorStore:
        at = url or self.server.url
        made = make_store(
            self.name.format(url=at),
            index=index,
            timeout_s=timeout_s,
            region="eu-central-1" if self.name.startswith("s3") else None,
            endpoint_url=at,
            engine=self.engine,
        )
        assert made is not None
        return made


@pytest.fixture(params=["s3vectors", "lucene", "faiss"])
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setattr("botocore.session.create_loader", one_loader)
    if request.param == "s3vectors":
        with S3VectorsServer() as s3:
            yield Place(s3, "s3vectors:mate", "lucene", lambda: None)
            s3.assert_done()
        return
    with OpenSearchServer() as opensearch:
        yield Place(opensearch, "opensearch:{url}", request.param, opensearch.refresh)
        opensearch.assert_done()


@pytest.fixture
def store(place: Place) -> VectorStore:
    """One for vectors of three numbers."""
    made = place.store()
    made.ensure(3)
    return made


def refusal(call: Callable[[], object]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value


def refused(call: Callable[[], object]) -> tuple[str, bool]:
    error = refusal(call)
    return error.kind, error.retryable


def item(number: int, value: Sequence[float] = (1, 0, 0), *, bucket: int = 7, kind: str = "fact") -> Item:
    return Item(number, bucket, kind, value)


def found(near: Sequence[Near]) -> list[int]:
    return [one.id for one in near]


# --- put and query ----------------------------------------------------------------------------------------


def test_what_was_put_is_found_best_first_with_its_cosine(place: Place, store: VectorStore) -> None:
    store.put([item(1, (0, 2, 0)), item(2, (3, 4, 0)), item(3, (-5, 0, 0)), item(4, (9, 0, 0))])
    place.settle()
    near = store.query((0.5, 0, 0), buckets=[7], limit=10)
    assert found(near) == [4, 2, 1, 3]
    assert [one.similarity for one in near] == pytest.approx([1, 0.6, 0, -1], abs=1e-6)
    assert {one.bucket for one in near} == {7}


def test_the_order_is_that_of_exact_cosines(place: Place) -> None:
    store, draw = place.store(), random.Random(7)
    store.ensure(24)
    values = {number: [draw.gauss(0, 3) for _ in range(24)] for number in range(200)}
    store.put([item(number, value) for number, value in values.items()])
    place.settle()
    asked = [draw.gauss(0, 1) for _ in range(24)]

    def cosine(value: Sequence[float]) -> float:
        product = sum(a * b for a, b in zip(asked, value, strict=True))
        return product / math.hypot(*asked) / math.hypot(*value)

    best = sorted(values, key=lambda number: -cosine(values[number]))
    near = store.query(asked, buckets=[7], limit=100)
    assert found(near) == best[:100]
    assert [one.similarity for one in near] == pytest.approx(
        [cosine(values[number]) for number in best[:100]], abs=1e-5
    )


def test_only_the_buckets_and_kinds_that_were_asked_for_are_found(place: Place, store: VectorStore) -> None:
    store.put(
        [item(1), item(2, bucket=8, kind="file"), item(3, bucket=8), item(4, bucket=9), item(5, bucket=77)]
    )
    place.settle()
    assert sorted(found(store.query((1, 0, 0), buckets=[7, 8], limit=10))) == [1, 2, 3]
    assert sorted(found(store.query((1, 0, 0), buckets=[7, 8], kinds=["fact"], limit=10))) == [1, 3]
    assert found(store.query((1, 0, 0), buckets=[8, 8], kinds=["file", "entry"], limit=10)) == [2]
    assert store.query((1, 0, 0), buckets=[70], limit=10) == []


def test_buckets_that_differ_by_one_are_told_apart_however_large(place: Place, store: VectorStore) -> None:
    largest = 2**63 - 1
    store.put([item(largest, bucket=largest), item(largest - 1, bucket=largest - 1), item(0, bucket=0)])
    place.settle()
    assert store.query((1, 0, 0), buckets=[largest], limit=9) == [Near(largest, largest, pytest.approx(1))]
    assert found(store.query((1, 0, 0), buckets=[0], limit=9)) == [0]


def test_no_bucket_asks_nobody(place: Place, store: VectorStore) -> None:
    asked = len(place.server.calls)
    assert store.query((1, 0, 0), buckets=[], limit=10) == []
    assert store.query((1, 0, 0), buckets=[7], limit=0) == []
    store.put([])
    store.delete([])
    assert len(place.server.calls) == asked


def test_limit_is_kept_and_lowered_to_what_the_service_answers(place: Place, store: VectorStore) -> None:
    store.put([item(number, (1, number / 1000, 0)) for number in range(120)])
    place.settle()
    assert found(store.query((1, 0, 0), buckets=[7], limit=3)) == [0, 1, 2]
    most = 100 if place.name.startswith("s3") else 120
    assert found(store.query((1, 0, 0), buckets=[7], limit=1_000_000)) == list(range(most))


def test_putting_twice_is_putting_once_and_the_last_one_counts(place: Place, store: VectorStore) -> None:
    store.put([item(1, (0, 1, 0), bucket=8), item(1, (0, 0, 1))])
    store.put([item(1, (0, 0, 1))])
    place.settle()
    assert list(store.ids()) == [1]
    assert store.query((0, 0, 1), buckets=[7, 8], limit=9) == [Near(1, 7, pytest.approx(1))]
    store.put([item(1, (1, 0, 0), bucket=8)])
    place.settle()
    assert store.query((1, 0, 0), buckets=[7, 8], limit=9) == [Near(1, 8, pytest.approx(1))]


def test_nothing_but_id_bucket_kind_and_numbers_is_sent(place: Place, store: VectorStore) -> None:
    store.put([item(12, (0, 0, 1))])
    sent = place.server.calls[-1].body
    known = {b"id", b"_id", b"index", b"key", b"data", b"float32", b"metadata", b"bucket", b"kind", b"value"}
    known |= {b"vectors", b"vectorBucketName", b"indexName", b"mate", b"mate-test"}
    words = set(sent.split(b'"')[1::2])
    assert words <= known | {b"12", b"7", b"fact"}


# --- splitting --------------------------------------------------------------------------------------------


def test_many_items_are_split_by_count(place: Place, store: VectorStore) -> None:
    asked = len(place.server.calls)
    store.put([item(number) for number in range(1001)])
    assert len(place.server.calls) - asked == 3
    assert sorted(store.ids()) == list(range(1001))


class Heavy:
    """A wire that only weighs what it is given: an index of the largest vectors that S3 Vectors takes."""

    index = "mate-test"

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.puts: list[list[Item]] = []

    def dimensions(self) -> int:
        return 4096

    def put(self, items: Sequence[Item]) -> None:
        self.puts.append(list(items))


@pytest.mark.parametrize(
    ("limits", "counts"), [(S3Vectors.limits, [203, 57]), (OpenSearchIndex.limits, [50, 10])]
)
def test_large_items_are_split_by_bytes(limits: Limits, counts: list[int]) -> None:
    wire = Heavy(limits)
    longest = [-1.2345678901234567e-05] * 4095  # as long as a number gets, at length 1
    CarefulStore(wire).put([item(number, [*longest, 1]) for number in range(sum(counts))])
    assert [len(items) for items in wire.puts] == counts
    assert len(repr(wire.puts[0])) < limits.bytes


def test_deleting_is_split_and_forgives_what_is_not_there(place: Place, store: VectorStore) -> None:
    store.put([item(number) for number in range(1200)])
    store.delete([*range(1100), 5, 99_999])
    place.settle()
    assert sorted(store.ids()) == list(range(1100, 1200))
    assert set(found(store.query((1, 0, 0), buckets=[7], limit=1000))) <= set(range(1100, 1200))
    store.delete([1100])


# --- the index --------------------------------------------------------------------------------------------


def test_ensuring_again_changes_nothing_and_another_size_is_told(place: Place, store: VectorStore) -> None:
    store.put([item(1)])
    store.ensure(3)
    other = place.store()
    other.ensure(3)
    assert list(other.ids()) == [1]
    error = refusal(lambda: other.ensure(4))
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "'mate-test' holds vectors of 3 numbers, not of 4" in str(error)


def test_two_indexes_know_nothing_of_each_other(place: Place, store: VectorStore) -> None:
    other = place.store("mate-other")
    other.ensure(2)
    store.put([item(1)])
    other.put([item(2, (1, 0))])
    place.settle()
    assert (list(store.ids()), list(other.ids())) == ([1], [2])
    assert found(other.query((1, 0), buckets=[7], limit=9)) == [2]


def test_a_store_that_nobody_ensured_finds_out_the_size(place: Place, store: VectorStore) -> None:
    other = place.store()
    other.put([item(1)])
    assert refused(lambda: other.put([item(2, (1, 0))])) == ("bad_request", False)


def test_an_index_that_is_not_there_is_told_and_not_made_by_a_put(place: Place) -> None:
    store = place.store()
    for call in (
        lambda: store.put([item(1)]),
        lambda: store.query((1, 0, 0), buckets=[7], limit=1),
        lambda: list(store.ids()),
        lambda: store.delete([1]),
    ):
        assert refused(call)[0] in ("bad_request", "unavailable")
    store.ensure(3)
    place.store().drop()
    assert refused(lambda: store.put([item(1)])) == ("bad_request", False)
    store.ensure(3)
    assert list(store.ids()) == []


def test_dropping_is_for_good_and_twice_is_no_error(place: Place, store: VectorStore) -> None:
    store.put([item(1)])
    store.drop()
    store.drop()
    store.ensure(2)
    assert list(store.ids()) == []
    store.put([item(1, (1, 0))])


@pytest.mark.parametrize("dimensions", [0, -1, 16_001])
def test_a_size_that_the_service_does_not_take_is_refused(place: Place, dimensions: int) -> None:
    assert refused(lambda: place.store().ensure(dimensions)) == ("bad_request", False)
    assert place.server.calls == []


def test_a_check_says_what_was_found(place: Place) -> None:
    store = place.store()
    before = store.check()
    store.ensure(3)
    after = store.check()
    assert before.endswith("which has no index 'mate-test' yet.")
    assert after.endswith("whose index 'mate-test' holds vectors of 3 numbers.")
    about = "answers for the vector bucket 'mate'" if place.name.startswith("s3") else "OpenSearch 2.19.0"
    assert about in before
    assert about in after


# --- what is refused before it is sent --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ((1, 0), "2 numbers: those of this index have 3"),
        ((1, 0, 0, 0), "4 numbers"),
        ((), "0 numbers"),
        ((1, math.nan, 0), "not finite"),
        ((1, math.inf, 0), "not finite"),
        ((1, -math.inf, 0), "not finite"),
        ((0, 0, 0), "is zero"),
        ((1e-9, 0, 0), "is zero"),
        ((1, "x", 0), "not a number"),
        ((1, None, 0), "not a number"),
        ((10**400, 0, 0), "not a number"),
    ],
)
def test_a_vector_that_is_none_is_refused_before_anything_is_sent(
    place: Place, store: VectorStore, value: Sequence[float], why: str
) -> None:
    asked = len(place.server.calls)
    for call in (
        lambda: store.put([*[item(number) for number in range(600)], item(600, value)]),
        lambda: store.query(value, buckets=[7], limit=1),
    ):
        error = refusal(call)
        assert (error.kind, error.retryable) == ("bad_request", False)
        assert why in str(error)
    assert len(place.server.calls) == asked


@pytest.mark.parametrize(
    "bad",
    [
        item(-1),
        item(2**63),
        item(1, bucket=-1),
        item(1, bucket=2**63),
        item(1, kind=""),
        item(1, kind="x" * 65),
    ],
)
def test_an_item_that_cannot_be_told_apart_is_refused(place: Place, store: VectorStore, bad: Item) -> None:
    asked = len(place.server.calls)
    assert refused(lambda: store.put([bad])) == ("bad_request", False)
    assert len(place.server.calls) == asked


def test_a_query_of_too_much_is_refused(place: Place, store: VectorStore) -> None:
    asked = len(place.server.calls)
    for call in (
        lambda: store.query((1, 0, 0), buckets=range(2000), limit=1),
        lambda: store.query((1, 0, 0), buckets=[-7], limit=1),
        lambda: store.query((1, 0, 0), buckets=[7], kinds=["a b"], limit=1),
    ):
        assert refused(call) == ("bad_request", False)
    assert len(place.server.calls) == asked


def test_a_hundred_buckets_and_kinds_are_not_too_much(place: Place, store: VectorStore) -> None:
    store.put([item(1, bucket=98)])
    place.settle()
    assert found(store.query((1, 0, 0), buckets=range(99), kinds=["fact"], limit=9)) == [1]


def test_values_of_any_length_and_size_are_sent_at_length_1(place: Place, store: VectorStore) -> None:
    store.put([item(1, (1e300, 0, 0)), item(2, (0, 1e-5, 0))])
    place.settle()
    near = store.query((1e200, 0, 0), buckets=[7], limit=9)
    assert [one.similarity for one in near] == pytest.approx([1, 0])


# --- what goes wrong outside ------------------------------------------------------------------------------


def every_call(store: VectorStore) -> list[Callable[[], object]]:
    return [
        lambda: store.ensure(3),
        lambda: store.put([item(1)]),
        lambda: store.delete([1]),
        lambda: store.query((1, 0, 0), buckets=[7], limit=1),
        lambda: list(store.ids()),
        store.drop,
        store.check,
    ]


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (Answer(hangs=True), ("timeout", True)),
        (Answer(drops=True), ("unavailable", True)),
        (Answer(401, b'{"message": "No."}'), ("auth", False)),
        (Answer(403, b'{"message": "No."}'), ("auth", False)),
        (Answer(408, b"{}"), ("timeout", True)),
        (Answer(429, b"{}"), ("rate_limited", True)),
        (Answer(500, b"{}"), ("unavailable", True)),
        (Answer(503, b"<html>", {"Content-Type": "text/html"}), ("unavailable", True)),
        (Answer(413, b"{}"), ("bad_request", False)),
    ],
)
def test_failures_have_their_kind_whatever_was_asked_and_are_asked_once(
    place: Place, store: VectorStore, answer: Answer, verdict: tuple[str, bool]
) -> None:
    store = place.store(timeout_s=0.2 if answer.hangs else PATIENCE_S)
    store.put([item(1)])  # it knows the size now
    for call in every_call(store):
        asked = len(place.server.calls)
        place.server.instead(answer)
        assert refused(call) == verdict
        assert len(place.server.calls) == asked + 1


def test_a_server_that_is_not_there_is_unavailable(place: Place, store: VectorStore) -> None:
    with JsonServer() as gone:
        url = gone.url
    there = place.store(url=url)
    for call in every_call(there):
        assert refused(call) == ("unavailable", True)


def test_throttled_once_it_is_fine_the_next_time(place: Place, store: VectorStore) -> None:
    place.server.instead(Answer(429, b"{}"))
    assert refused(lambda: store.put([item(1)])) == ("rate_limited", True)
    store.put([item(1)])
    assert list(store.ids()) == [1]


@pytest.mark.parametrize(
    "body", [b"not JSON", b"[]", b"null", b"[" * 100_000, b"{}", b'{"vectors": 3}', b"3"]
)
def test_an_answer_that_cannot_be_read_is_bad(place: Place, store: VectorStore, body: bytes) -> None:
    for call in (
        lambda: store.query((1, 0, 0), buckets=[7], limit=1),
        lambda: place.store().ensure(3),
        store.check,
    ):
        place.server.instead(Answer(200, body))
        assert refused(call) == ("bad_answer", True)


def test_a_call_can_be_refused_by_what_must_happen_before_it(place: Place, store: VectorStore) -> None:
    def refuse() -> None:
        raise RuntimeError("A connection is held.")

    asked = len(place.server.calls)
    before_call.append(refuse)
    try:
        for call in every_call(store):
            with pytest.raises(RuntimeError, match="A connection is held"):
                call()
    finally:
        before_call.remove(refuse)
    assert len(place.server.calls) == asked


def test_connections_are_made_anew_after_a_fork(monkeypatch: pytest.MonkeyPatch) -> None:
    made = PerProcess(object)
    first = made.get()
    assert made.get() is first
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert made.get() is not first


# --- names ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "spelling"),
    [
        ("pgvector", "pgvector"),
        ("s3vectors:mate-vectors", "s3vectors:mate-vectors"),
        ("opensearch:https://search.example.com", "opensearch:https://search.example.com"),
        ("opensearch:http://127.0.0.1:9200/", "opensearch:http://127.0.0.1:9200"),
        (
            "opensearch:https://example.com:9200/behind/a/proxy",
            "opensearch:https://example.com:9200/behind/a/proxy",
        ),
        ("opensearch:https://[::1]:9200", "opensearch:https://[::1]:9200"),
    ],
)
def test_a_name_has_one_spelling(name: str, spelling: str) -> None:
    assert str(check_store_name(name)) == spelling


@pytest.mark.parametrize(
    "name",
    [
        *[
            "",
            "s3vectors",
            "s3vectors:",
            "s3vectors:No",
            "s3vectors:a",
            "s3vectors:a_b",
            "pgvector:x",
            "qdrant:x",
        ],
        *["opensearch", "opensearch:", "opensearch:example.com", "opensearch:ftp://example.com"],
        *[
            "opensearch:https://",
            "opensearch:https://a:b",
            "opensearch:https://a?b",
            "opensearch:https://a b",
        ],
    ],
)
def test_a_bad_name_is_refused_with_the_value_and_what_would_be_right(name: str) -> None:
    with pytest.raises(ValueError, match="it must be") as caught:
        make_store(name, index="mate-x", timeout_s=1)
    assert repr(name) in str(caught.value) or repr(name.removeprefix("opensearch:")) in str(caught.value)


def test_a_password_in_an_address_is_refused_and_not_told() -> None:
    with pytest.raises(ValueError, match="apart") as caught:
        check_store_name("opensearch:https://user:s3cret@example.com")
    assert "s3cret" not in str(caught.value)


def test_pgvector_is_no_store_of_another_maker() -> None:
    assert make_store("pgvector", index="mate-x", timeout_s=1) is None


def test_an_engine_that_opensearch_has_not_is_refused() -> None:
    with pytest.raises(ValueError, match="lucene or faiss"):
        make_store("opensearch:http://127.0.0.1:1", index="mate-x", timeout_s=1, engine="nmslib")


@pytest.mark.parametrize("index", ["", "ab", "-ab", "ab-", "Abc", "a_b", "a:b", "a" * 64, "a/b"])
def test_an_index_that_some_store_does_not_take_is_refused(index: str) -> None:
    with pytest.raises(ValueError, match="is not the name of an index"):
        make_store("pgvector", index=index, timeout_s=1)


def test_an_index_is_named_after_its_embedder() -> None:
    name = index_name("openai:text-embedding-3-small@512")
    assert name.startswith("mate-openai-text-embedding-3-smal-")
    assert index_name("openai:text-embedding-3-small@512", prefix="acme") == name.replace("mate", "acme", 1)
    with pytest.raises(ValueError, match="is not a prefix"):
        index_name("local", prefix="Acme!")


EMBEDDERS = [
    *[
        "local",
        "local:multilingual-e5-small",
        "openai:text-embedding-3-small",
        f"bedrock:{TITAN}",
        f"bedrock:{COHERE}",
    ],
    *[
        "openai:text-embedding-3-small@512",
        "openai:text-embedding-3-smaller",
        "openai:bge-m3",
        "openai:BGE-m3",
    ],
    *[
        "openai:bge_m3",
        "openai:bge/m3",
        "openai:bge.m3",
        "openai:模型",
        "openai:型模",
        f"bedrock:{TITAN}@256",
    ],
]


def test_two_embedders_never_share_an_index() -> None:
    names = {check_index_name(index_name(embedder)) for embedder in EMBEDDERS}
    assert len(names) == len(EMBEDDERS)


@given(st.text(), st.sampled_from(["mate", "a", "9" * 16]))
def test_the_index_of_any_embedder_is_valid(embedder: str, prefix: str) -> None:
    name = index_name(embedder.encode("utf-8", "ignore").decode(), prefix=prefix)
    assert check_index_name(name) == name
