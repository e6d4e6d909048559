"""What is OpenSearch's own: its wire, its scores, and its ways to fail."""

import base64
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from integrations.clients.errors import ProviderError
from integrations.clients.vectors.base import Item, VectorStore
from integrations.clients.vectors.build import make_store
from tests.stubs.json_server import Answer, answer_of
from tests.stubs.opensearch_server import OpenSearchServer, refused

PATIENCE_S = 20.0  # only spent when something is broken


@pytest.fixture
def server() -> Iterator[OpenSearchServer]:
    with OpenSearchServer() as stub:
        yield stub
        stub.assert_done()


def connect(server: OpenSearchServer, path: str = "", **options: Any) -> VectorStore:
    made = make_store(f"opensearch:{server.url}{path}", index="mate-test", timeout_s=PATIENCE_S, **options)
    assert made is not None
    return made


@pytest.fixture
def store(server: OpenSearchServer) -> VectorStore:
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


@pytest.mark.parametrize(("engine", "space"), [("lucene", "cosinesimil"), ("faiss", "innerproduct")])
def test_the_requests_are_those_of_the_service(server: OpenSearchServer, engine: str, space: str) -> None:
    store = connect(server, engine=engine)
    store.ensure(2)
    store.put([Item(5, 7, "fact", (0, 2))])
    store.query((4, 0), buckets=[7, 8], kinds=["fact"], limit=500)
    store.delete([5])
    _, create, _, bulk, search, delete = server.calls
    assert (create.method, create.path) == ("PUT", "/mate-test-1")
    assert create.json["aliases"] == {"mate-test": {}}
    assert create.json["settings"] == {"index": {"knn": True}}
    assert create.json["mappings"]["properties"]["value"] == {
        "type": "knn_vector",
        "dimension": 2,
        "method": {"name": "hnsw", "engine": engine, "space_type": space},
    }
    assert (bulk.path, bulk.query) == ("/mate-test/_bulk", {"require_alias": "true"})
    assert [json.loads(line) for line in bulk.body.splitlines()] == [
        {"index": {"_id": "5"}},
        {"id": 5, "bucket": "7", "kind": "fact", "value": [0.0, 1.0]},
    ]
    assert search.path == "/mate-test-1/_search"
    assert search.json["query"]["knn"]["value"] == {
        "vector": [1.0, 0.0],
        "k": 500,
        "filter": {"bool": {"filter": [{"terms": {"bucket": ["7", "8"]}}, {"terms": {"kind": ["fact"]}}]}},
    }
    assert [json.loads(line) for line in delete.body.splitlines()] == [{"delete": {"_id": "5"}}]


@pytest.mark.parametrize(
    ("engine", "score", "cosine"),
    [
        *[("lucene", 1.0, 1.0), ("lucene", 0.8, 0.6), ("lucene", 0.5, 0.0), ("lucene", 0.0, -1.0)],
        *[("faiss", 2.0, 1.0), ("faiss", 1.6, 0.6), ("faiss", 1.0, 0.0), ("faiss", 0.625, -0.6)],
        ("faiss", 0.5, -1.0),
    ],
)
def test_a_score_is_the_cosine_that_its_engine_means(
    server: OpenSearchServer, engine: str, score: float, cosine: float
) -> None:
    store = connect(server, engine=engine)
    store.ensure(2)
    server.instead(hits(hit(_score=score)))
    (near,) = store.query((1, 0), buckets=[7], limit=9)
    assert near.similarity == pytest.approx(cosine)


def test_what_was_put_is_found_after_a_refresh_and_listing_does_one(
    server: OpenSearchServer, store: VectorStore
) -> None:
    put(store, 1)
    assert ask(store) == []
    assert list(store.ids()) == [1]
    assert ask(store) == [1]


def test_the_list_of_ids_is_asked_in_pages_of_ten_thousand(
    server: OpenSearchServer, store: VectorStore
) -> None:
    put(store, 1)
    (document,) = server.indexes["mate-test-1"].written.values()
    many = {str(number): {**document, "id": number} for number in range(20_001)}
    server.indexes["mate-test-1"].written = many
    assert list(store.ids()) == list(range(20_001))
    searches = [call for call in server.calls if call.path.endswith("_search")]
    assert [call.json["search_after"] for call in searches] == [[-1], [9999], [19_999], [20_000]]


def test_a_user_and_password_are_sent_and_refused_when_wrong(server: OpenSearchServer) -> None:
    server.user = f"Basic {base64.b64encode(b'mate:s3cret').decode()}"
    assert "OpenSearch 2.19.0 answers" in connect(server, username="mate", password="s3cret").check()
    error = failure(connect(server, username="mate", password="other").check)
    assert (error.kind, error.retryable) == ("auth", False)
    assert "other" not in str(error)


def test_a_region_signs_with_the_credentials_of_aws(
    server: OpenSearchServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert verdict(lambda: connect(server, region="eu-central-1")) == ("auth", False)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    assert verdict(lambda: connect(server, region="eu-central-1")) == ("auth", False)
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert verdict(connect(server, region="eu-central-1").check) == ("auth", False)  # the stub wants no user
    (call,) = server.calls
    assert call.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/eu-central-1/es/aws4_request" in call.headers["authorization"]


def test_a_server_behind_a_path_is_asked_there(server: OpenSearchServer) -> None:
    server.instead(
        answer_of({"cluster_name": "x", "version": {"number": "3.1.0", "distribution": "opensearch"}})
    )
    server.instead(refused(404, "index_not_found_exception"))
    connect(server, "/behind/a/proxy").check()
    assert [call.path for call in server.calls] == [
        "/behind/a/proxy/",
        "/behind/a/proxy/mate-test-1/_mapping",
    ]


@pytest.mark.parametrize(
    ("version", "distribution", "why"),
    [
        ("2.8.0", "opensearch", "OpenSearch 2.8.0 at http://127.0.0.1:[0-9]+ is too old: 2.9 is needed"),
        ("1.3.20", "opensearch", "too old"),
        ("8.15.0", None, "is not OpenSearch"),
    ],
)
def test_what_cannot_be_used_is_told_by_the_check(version: str, distribution: str | None, why: str) -> None:
    with OpenSearchServer(version=version, distribution=distribution) as server:
        error = failure(connect(server).check)
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert re.search(why, str(error))


@pytest.mark.parametrize("version", ["2.9.0", "2.10.0", "3.0.0-beta1", "10.0.0"])
def test_versions_are_compared_as_numbers(version: str) -> None:
    with OpenSearchServer(version=version) as server:
        assert f"OpenSearch {version} answers for the cluster 'docker'" in connect(server).check()


def test_an_index_of_another_engine_is_refused_since_its_scores_mean_something_else(
    server: OpenSearchServer, store: VectorStore
) -> None:
    other = connect(server, engine="faiss")
    for call in (lambda: other.ensure(2), lambda: ask(other)):
        error = failure(call)
        assert (error.kind, error.retryable) == ("bad_request", False)
        assert "'lucene'" in str(error)


def test_an_index_that_holds_no_vectors_is_refused(server: OpenSearchServer) -> None:
    for fields in ({}, {"value": {"type": "float"}}):
        server.instead(answer_of({"mate-test-1": {"mappings": {"properties": fields}}}))
        assert verdict(lambda: connect(server).ensure(2)) == ("bad_request", False)


def test_another_process_that_made_the_index_at_once_is_no_error(
    server: OpenSearchServer, store: VectorStore
) -> None:
    server.instead(refused(404, "index_not_found_exception"))
    connect(server).ensure(2)


def test_a_put_after_the_index_was_dropped_makes_none(server: OpenSearchServer, store: VectorStore) -> None:
    connect(server).drop()
    error = failure(lambda: put(store, 1))
    assert (error.kind, error.retryable) == ("bad_request", False)
    assert "require_alias" in str(error)
    assert server.indexes == {}


@pytest.mark.parametrize(
    ("answer", "kind", "retryable"),
    [
        (refused(400, "search_phase_execution_exception"), "bad_request", False),
        (refused(403, "security_exception"), "auth", False),
        (refused(404, "index_not_found_exception"), "bad_request", False),
        (refused(429, "circuit_breaking_exception"), "rate_limited", True),
        (refused(500, "knn_exception"), "unavailable", True),
        (refused(503, "cluster_block_exception"), "unavailable", True),
        (refused(504, "timeout_exception"), "unavailable", True),
    ],
)
def test_failures_have_their_kind_and_name_the_services_own(
    server: OpenSearchServer, store: VectorStore, answer: Answer, kind: str, retryable: bool
) -> None:
    for call in (lambda: put(store, 1), lambda: ask(store), lambda: store.delete([1])):
        server.instead(answer)
        error = failure(call)
        assert (error.kind, error.retryable) == (kind, retryable)
        assert json.loads(answer.body)["error"]["type"] in str(error)


@pytest.mark.parametrize("body", [b"<html>No.</html>", b"No.", b'{"error": []}', b'{"error": {}}', b""])
def test_a_refusal_in_no_form_of_its_own_keeps_its_kind(
    server: OpenSearchServer, store: VectorStore, body: bytes
) -> None:
    for headers in ({}, {"Content-Type": "text/html"}):
        server.instead(Answer(403, body, headers))
        assert verdict(lambda: ask(store)) == ("auth", False)


def test_a_refusal_that_the_sdk_cannot_read_is_a_bad_answer(
    server: OpenSearchServer, store: VectorStore
) -> None:
    server.instead(Answer(403, b"[1]"))
    assert verdict(lambda: ask(store)) == ("bad_answer", True)


# --- bulk answers -----------------------------------------------------------------------------------------


def done(number: int, status: int = 201, **about: Any) -> dict[str, Any]:
    return {"index": {"_index": "mate-test-1", "_id": str(number), "status": status} | about}


def fails(number: int, status: int, kind: str) -> dict[str, Any]:
    return done(number, status, error={"type": kind, "reason": "No."})


def bulk(*items: Any, errors: bool = False) -> Answer:
    return answer_of({"took": 1, "errors": errors, "items": items})


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (
            bulk(done(1), fails(2, 429, "es_rejected_execution_exception"), errors=True),
            ("rate_limited", True),
        ),
        (bulk(done(1), fails(2, 400, "mapper_parsing_exception"), errors=True), ("bad_request", False)),
        (bulk(done(1), fails(2, 503, "unavailable_shards_exception"), errors=True), ("unavailable", True)),
        (bulk(done(1), fails(2, 403, "security_exception"), errors=True), ("auth", False)),
        (bulk(fails(1, 429, "busy"), fails(2, 400, "wrong"), errors=True), ("bad_request", False)),
        (bulk(done(1), fails(2, 429, "busy")), ("rate_limited", True)),  # `errors` says otherwise
        (bulk(done(1), done(2, 500)), ("unavailable", True)),
        (bulk(done(1), done(2, error="No.")), ("bad_request", False)),
        (bulk(done(1)), ("bad_answer", True)),
        (bulk(done(2), done(1)), ("bad_answer", True)),
        (bulk(done(1), done(3)), ("bad_answer", True)),
        (bulk(done(1), {"index": 3}), ("bad_answer", True)),
        (bulk(done(1), {"delete": {}}), ("bad_answer", True)),
        (bulk(done(1), None), ("bad_answer", True)),
        (answer_of({"items": 3}), ("bad_answer", True)),
        (answer_of({}), ("bad_answer", True)),
        (Answer(200, b"<html>", {"Content-Type": "text/html"}), ("bad_answer", True)),
    ],
)
def test_nothing_is_half_written_in_silence(
    server: OpenSearchServer, store: VectorStore, answer: Answer, expected: tuple[str, bool]
) -> None:
    server.instead(answer)
    assert verdict(lambda: put(store, 1, 2)) == expected


def test_a_half_failed_put_says_how_many_and_why(server: OpenSearchServer, store: VectorStore) -> None:
    server.instead(bulk(done(1), fails(2, 429, "es_rejected_execution_exception"), errors=True))
    assert str(failure(lambda: put(store, 1, 2))) == (
        "1 of 2 vectors were refused (index): 2: es_rejected_execution_exception: No."
    )
    put(store, 1, 2)
    assert list(store.ids()) == [1, 2]


def test_a_delete_that_fails_is_told(server: OpenSearchServer, store: VectorStore) -> None:
    gone = {"delete": {"_id": "1", "result": "not_found", "status": 404}}
    kept = {
        "delete": {
            "_id": "2",
            "status": 503,
            "error": {"type": "unavailable_shards_exception", "reason": "No."},
        }
    }
    server.instead(bulk(gone, kept, errors=True))
    assert verdict(lambda: store.delete([1, 2])) == ("unavailable", True)


# --- search answers ---------------------------------------------------------------------------------------


def hit(**about: Any) -> dict[str, Any]:
    return {"_id": "1", "_score": 0.75, "fields": {"bucket": ["7"]}} | about


def hits(*found: Any) -> Answer:
    return answer_of({"hits": {"hits": found}})


@pytest.mark.parametrize(
    "wrong",
    [
        hit(fields={"bucket": ["9"]}),
        hit(fields={"bucket": ["7", "9"]}),
        hit(fields={"bucket": []}),
        hit(fields={"bucket": [7]}),
        hit(fields={"bucket": "79"}),
        hit(fields={}),
        hit(fields=None),
        hit(_id="one"),
        hit(_id="-1"),
        hit(_id=1),
        hit(_id=None),
        hit(_score=math.nan),
        hit(_score=math.inf),
        hit(_score=None),
        hit(_score="high"),
        hit(_score=-0.1),
        hit(_score=1.1),
        {"_id": "1", "_score": 0.75},
        None,
        "1",
    ],
)
def test_an_answer_with_anything_wrong_in_it_is_bad_as_a_whole(
    server: OpenSearchServer, store: VectorStore, wrong: object
) -> None:
    server.instead(hits(hit(), wrong))
    assert verdict(lambda: ask(store)) == ("bad_answer", True)


@pytest.mark.parametrize("score", [0.0, 0.001941, -1.0, 2.1])
def test_a_score_of_faiss_that_is_no_cosine_is_a_bad_answer(server: OpenSearchServer, score: float) -> None:
    store = connect(server, engine="faiss")
    store.ensure(2)
    server.instead(hits(hit(_score=score)))
    assert verdict(lambda: ask(store)) == ("bad_answer", True)


@pytest.mark.parametrize("sorts", [[[2], [1]], [[-1]], [["x"]], [[None]], [[]], [None]])
def test_a_list_of_ids_without_an_order_is_a_bad_answer(
    server: OpenSearchServer, store: VectorStore, sorts: list[Any]
) -> None:
    server.instead(None, hits(*[{"_id": "1", "sort": sort} for sort in sorts]))
    assert verdict(lambda: list(store.ids())) == ("bad_answer", True)
