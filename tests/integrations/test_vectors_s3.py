"""What is S3 Vectors' own: its wire, its limits, and its ways to fail."""

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from integrations.clients.errors import ProviderError
from integrations.clients.vectors.base import Item, VectorStore
from integrations.clients.vectors.build import make_store
from tests.stubs.json_server import Answer, answer_of
from tests.stubs.s3vectors_server import Index, S3VectorsServer, one_loader, refused

PATIENCE_S = 20.0  # only spent when something is broken


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3VectorsServer]:
    monkeypatch.setattr("botocore.session.create_loader", one_loader)
    with S3VectorsServer() as stub:
        yield stub
        stub.assert_done()


@pytest.fixture
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def connect(
    server: S3VectorsServer, bucket: str = "mate", *, region: str | None = "eu-central-1"
) -> VectorStore:
    made = make_store(
        f"s3vectors:{bucket}",
        index="mate-test",
        timeout_s=PATIENCE_S,
        region=region,
        endpoint_url=server.url,
    )
    assert made is not None
    return made


@pytest.fixture
def store(server: S3VectorsServer, credentials: None) -> VectorStore:
    """One for vectors of two numbers, that knows it."""
    made = connect(server)
    made.ensure(2)
    return made


def failure(call: Callable[[], object]) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        call()
    return caught.value


def verdict(call: Callable[[], object]) -> tuple[str, bool]:
    error = failure(call)
    return error.kind, error.retryable


def ask(store: VectorStore, limit: int = 9) -> list[int]:
    return [near.id for near in store.query((1, 0), buckets=[7, 8], limit=limit)]


def put(store: VectorStore, *ids: int) -> None:
    store.put([Item(number, 7, "fact", (1, number / 1000)) for number in ids])


def test_the_requests_are_those_of_the_service(server: S3VectorsServer, store: VectorStore) -> None:
    store.put([Item(5, 7, "fact", (0, 2))])
    store.query((4, 0), buckets=[7, 8], kinds=["fact", "entry"], limit=500)
    store.delete([5, 6])
    index = {"vectorBucketName": "mate", "indexName": "mate-test"}
    assert [(call.path, call.json) for call in server.calls[1:]] == [
        ("/CreateIndex", {**index, "dataType": "float32", "dimension": 2, "distanceMetric": "cosine"}),
        ("/GetIndex", index),
        (
            "/PutVectors",
            {
                **index,
                "vectors": [
                    {
                        "key": "5",
                        "data": {"float32": [0.0, 1.0]},
                        "metadata": {"bucket": "7", "kind": "fact"},
                    }
                ],
            },
        ),
        (
            "/QueryVectors",
            {
                **index,
                "topK": 100,
                "queryVector": {"float32": [1.0, 0.0]},
                "filter": {"$and": [{"bucket": {"$in": ["7", "8"]}}, {"kind": {"$in": ["fact", "entry"]}}]},
                "queryMode": "ENHANCED",
                "returnMetadata": True,
                "returnDistance": True,
            },
        ),
        ("/DeleteVectors", {**index, "keys": ["5", "6"]}),
    ]
    assert "/eu-central-1/s3vectors/aws4_request" in server.calls[0].headers["authorization"]


def test_the_region_of_the_environment_is_taken_when_none_is_given(
    server: S3VectorsServer, credentials: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdict(lambda: connect(server, region=None)) == ("bad_request", False)
    monkeypatch.setenv("AWS_REGION", "us-west-2")
    assert connect(server, region=None).check().startswith("S3 Vectors in us-west-2 answers")


def test_no_credentials_are_an_auth_error(server: S3VectorsServer) -> None:
    store = connect(server)
    assert verdict(store.check) == ("auth", False)
    assert server.calls == []


def test_a_vector_bucket_that_is_not_there_is_told(server: S3VectorsServer, credentials: None) -> None:
    store = connect(server, "other")
    for call in (store.check, lambda: store.ensure(2)):
        error = failure(call)
        assert (error.kind, error.retryable) == ("bad_request", False)
        assert "vector bucket could not be found" in str(error)


def test_an_index_that_measures_otherwise_is_refused(server: S3VectorsServer, credentials: None) -> None:
    server.indexes["mate-test"] = Index(2, "euclidean")
    error = failure(lambda: connect(server).ensure(2))
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "measures euclidean, not cosine" in str(error)


def test_another_process_that_made_the_index_at_once_is_no_error(
    server: S3VectorsServer, credentials: None
) -> None:
    server.indexes["mate-test"] = Index(2, "cosine")
    server.instead(refused(404, "NotFoundException"))
    connect(server).ensure(2)


def test_an_index_that_is_not_there_at_once_is_waited_for(server: S3VectorsServer, credentials: None) -> None:
    server.instead(refused(404, "NotFoundException"), None, refused(404, "NotFoundException"))
    assert verdict(lambda: connect(server).ensure(2)) == ("unavailable", True)


def test_the_pages_of_a_query_and_of_the_list_are_put_together(
    server: S3VectorsServer, store: VectorStore
) -> None:
    server.page = 40
    put(store, *range(130))
    assert ask(store, 100) == list(range(100))
    assert ask(store, 40) == list(range(40))
    assert list(store.ids()) == list(range(130))
    assert [call.path for call in server.calls].count("/ListVectors") == 4


def test_pages_without_an_end_are_a_bad_answer(server: S3VectorsServer, store: VectorStore) -> None:
    server.instead(
        *[answer_of({"vectors": [], "distanceMetric": "cosine", "nextToken": "again"}) for _ in range(20)]
    )
    assert verdict(lambda: ask(store)) == ("bad_answer", True)
    server.instead(*[answer_of({"vectors": [], "nextToken": "again"}) for _ in range(2)])
    assert verdict(lambda: list(store.ids())) == ("bad_answer", True)


@pytest.mark.parametrize(
    ("answer", "kind", "retryable"),
    [
        (refused(400, "ValidationException"), "bad_request", False),
        (refused(402, "ServiceQuotaExceededException"), "rate_limited", False),
        (refused(403, "AccessDeniedException"), "auth", False),
        (refused(400, "ExpiredTokenException"), "auth", False),
        (refused(404, "NotFoundException"), "bad_request", False),
        (refused(408, "RequestTimeoutException"), "timeout", True),
        (refused(409, "ConflictException"), "unavailable", True),
        (refused(429, "TooManyRequestsException"), "rate_limited", True),
        (refused(400, "ThrottlingException"), "rate_limited", True),
        (refused(400, "KmsDisabledException"), "bad_request", False),
        (refused(500, "InternalServerException"), "unavailable", True),
        (refused(503, "ServiceUnavailableException"), "unavailable", True),
    ],
)
def test_failures_have_their_kind_and_name_the_services_own(
    server: S3VectorsServer, store: VectorStore, answer: Answer, kind: str, retryable: bool
) -> None:
    for call in (lambda: put(store, 1), lambda: ask(store), lambda: store.delete([1])):
        server.instead(answer)
        error = failure(call)
        assert (error.kind, error.retryable) == (kind, retryable)
        assert answer.headers["x-amzn-errortype"] in str(error)


def test_who_is_throttled_is_told_when_to_come_again(server: S3VectorsServer, store: VectorStore) -> None:
    server.instead(refused(429, "TooManyRequestsException", Retry_After="7"))
    assert failure(lambda: put(store, 1)).retry_after_s == 7
    server.instead(refused(429, "TooManyRequestsException"))  # its rates are those of a second
    assert failure(lambda: put(store, 1)).retry_after_s == 1
    server.instead(refused(503, "ServiceUnavailableException", Retry_After="Mon, 30 Nov 2026 20:00:00 GMT"))
    assert failure(lambda: put(store, 1)).retry_after_s is None


def test_a_put_that_fails_in_the_middle_is_told_and_can_be_put_again(
    server: S3VectorsServer, store: VectorStore
) -> None:
    server.instead(None, refused(429, "TooManyRequestsException"))
    assert verdict(lambda: put(store, *range(1200))) == ("rate_limited", True)
    assert len(list(store.ids())) == 500
    put(store, *range(1200))
    assert sorted(store.ids()) == list(range(1200))


def near(**about: Any) -> dict[str, Any]:
    return {"key": "1", "distance": 0.5, "metadata": {"bucket": "7", "kind": "fact"}} | about


@pytest.mark.parametrize(
    "vector",
    [
        near(metadata={"bucket": "9", "kind": "fact"}),
        near(metadata={"bucket": 7, "kind": "fact"}),
        near(metadata={"bucket": "7 ", "kind": "fact"}),
        near(metadata={"kind": "fact"}),
        near(metadata=None),
        near(metadata=["7"]),
        near(key="one"),
        near(key="-1"),
        near(key="١"),
        near(key=1),
        near(key=None),
        near(key=""),
        near(distance=math.nan),
        near(distance=math.inf),
        near(distance=-0.5),
        near(distance=2.5),
        near(distance=None),
        near(distance="far"),
        near(distance=[0.5]),
        {"key": "1", "metadata": {"bucket": "7"}},
        {"distance": 0.5, "metadata": {"bucket": "7"}},
        None,
        "1",
    ],
)
def test_an_answer_with_anything_wrong_in_it_is_bad_as_a_whole(
    server: S3VectorsServer, store: VectorStore, vector: object
) -> None:
    server.instead(answer_of({"vectors": [near(), vector], "distanceMetric": "cosine"}))
    assert verdict(lambda: ask(store)) == ("bad_answer", True)


def test_a_distance_of_another_metric_is_a_bad_answer(server: S3VectorsServer, store: VectorStore) -> None:
    server.instead(answer_of({"vectors": [near()], "distanceMetric": "euclidean"}))
    assert verdict(lambda: ask(store)) == ("bad_answer", True)


def test_what_rounding_adds_to_a_cosine_is_taken_away(server: S3VectorsServer, store: VectorStore) -> None:
    vectors = [near(distance=-1e-6), near(distance=2.000001, key="2")]
    server.instead(answer_of({"vectors": vectors, "distanceMetric": "cosine"}))
    assert [one.similarity for one in store.query((1, 0), buckets=[7], limit=9)] == [1, -1]


def test_more_than_was_asked_for_is_cut(server: S3VectorsServer, store: VectorStore) -> None:
    vectors = [near(key=str(number), distance=number / 10) for number in range(5, 0, -1)]
    server.instead(answer_of({"vectors": vectors, "distanceMetric": "cosine"}))
    assert ask(store, 3) == [1, 2, 3]


@pytest.mark.parametrize("key", ["one", "", None, 3])
def test_a_list_with_a_key_that_is_no_id_is_a_bad_answer(
    server: S3VectorsServer, store: VectorStore, key: object
) -> None:
    server.instead(answer_of({"vectors": [{"key": "1"}, {"key": key}]}))
    assert verdict(lambda: list(store.ids())) == ("bad_answer", True)


def test_the_metadata_of_the_longest_names_is_far_below_2_kb(
    server: S3VectorsServer, store: VectorStore
) -> None:
    store.put([Item(2**63 - 1, 2**63 - 1, "x" * 64, (1, 0))])
    (vector,) = server.calls[-1].json["vectors"]
    assert len(json.dumps(vector["metadata"])) < 200
    assert list(store.ids()) == [2**63 - 1]
