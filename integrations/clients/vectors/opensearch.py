"""OpenSearch 2.9 or newer, one's own or a domain that AWS manages, with its k-NN plugin."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from opensearchpy import OpenSearch
from opensearchpy.exceptions import (
    ConnectionError as NoConnectionError,
)
from opensearchpy.exceptions import (
    ConnectionTimeout,
    ImproperlyConfigured,
    NotFoundError,
    OpenSearchException,
    SerializationError,
    TransportError,
)
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from integrations.clients.errors import ProviderError
from integrations.clients.vectors.base import Item, Limits, Near
from integrations.clients.vectors.failures import (
    bad_answer,
    reading,
    refusal,
    shortened,
    status_error,
    stored_number,
)
from integrations.clients.vectors.process import PerProcess

# Before 2.9 faiss filtered only what it had found.
_OLDEST: Final = (2, 9)
_SERVICE: Final = "OpenSearch"
_IDS_PER_PAGE: Final = 10_000  # index.max_result_window
_CONNECTIONS: Final = 64

_LIMITS: Final = Limits(
    dimensions=16_000,  # of a knn_vector
    items=500,
    # The smaller domains that AWS manages take 10 MiB a request, and bulks are quickest at 5 to 15.
    bytes=5 * 1024 * 1024,
    ids=5000,
    near=10_000,  # k, and index.max_result_window
    filters=1024,  # indices.query.bool.max_clause_count; terms would take 65,536
)


def _of_cosine(score: float) -> float:
    return 2 * score - 1


def _of_product(score: float) -> float:
    return score - 1 if score > 1 else 1 - 1 / score


# How each engine is told to measure vectors of length 1, and what cosine its score stands for
# (docs.opensearch.org, "Vector spaces"): lucene's is (1 + cos) / 2; faiss's 1 + cos above zero, 1 / (1 - cos)
# below. faiss knows no cosine before 2.19, and is the same as the inner product after it.
_SPACES: Final[Mapping[str, tuple[str, Callable[[float], float]]]] = {
    "lucene": ("cosinesimil", _of_cosine),
    "faiss": ("innerproduct", _of_product),
}


class OpenSearchIndex:
    """A Service. `timeout_s` bounds the connection, and each wait for more of an answer.

    What was put is found after the index's next refresh, which is a second away unless the index is set
    otherwise; nobody waits for it, since a refresh for each put costs more than the put. What was deleted may
    be found for as long. `pages` refreshes first.

    The index bears `<index>-1`, and vectors are put through its alias `<index>`: otherwise a put after the
    index was dropped would make one anew, in which nothing can be searched. Serverless collections are not
    supported: they take no ids of ours.
    """

    limits: Final = _LIMITS

    def __init__(
        self,
        address: str,
        *,
        index: str,
        timeout_s: float,
        username: str | None,
        password: str | None,
        region: str | None,
        engine: str,
    ) -> None:
        if engine not in _SPACES:
            raise ValueError(f"{engine!r} is not an engine of OpenSearch: it must be lucene or faiss.")
        self.index: Final = index
        self._address = address
        self._real = f"{index}-1"
        self._timeout_s = timeout_s
        self._user = (username, password or "") if username else None
        self._region = region
        self._engine = engine
        self._space, self._similarity = _SPACES[engine]
        self._client = PerProcess(self._connect)
        self._client.get()

    def greet(self) -> str:
        answer = self._ask(lambda client: client.info())
        with reading(_SERVICE):
            version, cluster = answer["version"], answer["cluster_name"]
            distribution, number = version.get("distribution"), version["number"]
            age = tuple(int(part) for part in number.split(".")[:2])
        if distribution != "opensearch":
            raise refusal(
                f"What answers at {self._address} is not OpenSearch, but {distribution or 'another'}."
            )
        if age < _OLDEST:
            raise refusal(f"OpenSearch {number} at {self._address} is too old: 2.9 is needed.")
        return f"OpenSearch {number} answers for the cluster {cluster!r}"

    def dimensions(self) -> int | None:
        try:
            answer = self._ask(lambda client: client.indices.get_mapping(index=self._real))
        except _NotFoundError:
            return None
        with reading(_SERVICE):
            return self._size_in(answer[self._real]["mappings"].get("properties", {}))

    def create(self, dimensions: int) -> None:
        method = {"name": "hnsw", "engine": self._engine, "space_type": self._space}
        body = {
            "settings": {"index": {"knn": True}},
            "aliases": {self.index: {}},
            "mappings": {
                "dynamic": "strict",
                "properties": {
                    "id": {"type": "long"},
                    "bucket": {"type": "keyword"},
                    "kind": {"type": "keyword"},
                    "value": {"type": "knn_vector", "dimension": dimensions, "method": method},
                },
            },
        }
        with contextlib.suppress(_AlreadyThereError):  # another process was quicker
            self._ask(lambda client: client.indices.create(index=self._real, body=body))

    def put(self, items: Sequence[Item]) -> None:
        lines: list[dict[str, Any]] = []
        for item in items:
            lines.append({"index": {"_id": str(item.id)}})
            lines.append(
                {
                    "id": item.id,
                    "bucket": str(item.bucket),
                    "kind": item.kind,
                    "value": list(item.value),
                }
            )
        self._bulk(lines, "index", [item.id for item in items])

    def delete(self, ids: Sequence[int]) -> None:
        self._bulk([{"delete": {"_id": str(number)}} for number in ids], "delete", ids)

    def near(
        self, value: Sequence[float], *, buckets: Sequence[int], kinds: Sequence[str], limit: int
    ) -> list[Near]:
        filters: list[dict[str, Any]] = [{"terms": {"bucket": [str(bucket) for bucket in buckets]}}]
        if kinds:
            filters.append({"terms": {"kind": list(kinds)}})
        asked = {"vector": list(value), "k": limit, "filter": {"bool": {"filter": filters}}}
        answer = self._search(
            {"size": limit, "query": {"knn": {"value": asked}}, "docvalue_fields": ["bucket"]}
        )
        with reading(_SERVICE):
            return [self._near_of(hit) for hit in answer["hits"]["hits"]]

    def pages(self) -> Iterator[list[int]]:
        self._ask(lambda client: client.indices.refresh(index=self._real))
        last = -1
        while True:
            # By id, and not by a snapshot: what is put or deleted meanwhile moves nothing else.
            body = {"size": _IDS_PER_PAGE, "sort": [{"id": "asc"}], "search_after": [last]}
            answer = self._search(body)
            with reading(_SERVICE):
                page = [int(hit["sort"][0]) for hit in answer["hits"]["hits"]]
            if not page:
                return
            if page[0] <= last or sorted(page) != page:
                raise bad_answer("OpenSearch's list of ids has no order.")
            yield page
            last = page[-1]

    def drop(self) -> None:
        with contextlib.suppress(_NotFoundError):
            self._ask(lambda client: client.indices.delete(index=self._real))

    def _size_in(self, fields: Mapping[str, Any]) -> int:
        field = fields.get("value", {})
        method = field.get("method", {})
        if (field.get("type"), method.get("engine"), method.get("space_type")) != (
            "knn_vector",
            self._engine,
            self._space,
        ):
            raise refusal(
                f"The index {self._real!r} was made otherwise: it has {field.get('type')!r} by"
                f" {method.get('engine')!r} and {method.get('space_type')!r}, not 'knn_vector' by {self._engine!r}"
                f" and {self._space!r}. Use the engine it was made with, or drop it."
            )
        return int(field["dimension"])

    def _near_of(self, hit: Mapping[str, Any]) -> Near:
        (bucket,) = hit["fields"]["bucket"]
        return Near(stored_number(hit["_id"]), stored_number(bucket), self._similarity(float(hit["_score"])))

    def _search(self, body: dict[str, Any]) -> Mapping[str, Any]:
        # An answer without some of its shards would be short, and say so only in a number.
        params = {"allow_partial_search_results": "false"}
        body = {**body, "_source": False, "track_total_hits": False}
        return self._ask(lambda client: client.search(index=self._real, body=body, params=params))

    def _bulk(self, lines: Sequence[Mapping[str, Any]], what: str, ids: Sequence[int]) -> None:
        params = {"require_alias": "true"}
        answer = self._ask(lambda client: client.bulk(index=self.index, body=lines, params=params))
        with reading(_SERVICE):
            results = [one[what] for one in answer["items"]]
            answered = [one["_id"] for one in results]
        if answered != [str(number) for number in ids]:
            raise bad_answer(f"OpenSearch answered for {len(answered)} vectors, not for the {len(ids)} sent.")
        failed = [_failure_of(one) for one in results if not _is_done(one)]
        if failed:
            worst = min(failed, key=lambda error: error.retryable)
            raise ProviderError(
                shortened(f"{len(failed)} of {len(ids)} vectors were refused ({what}): {worst}"),
                retryable=worst.retryable,
                kind=worst.kind,
            ) from worst

    def _ask(self, call: Callable[[OpenSearch], Any]) -> Mapping[str, Any]:
        try:
            with reading(_SERVICE):  # the SDK trusts even the form of a refusal
                answer = call(self._client.get())
        except SerializationError as error:
            raise bad_answer(f"OpenSearch's answer is no JSON: {error}") from error
        except RecursionError as error:
            raise bad_answer("OpenSearch's answer is too deep.") from error
        except (OpenSearchException, ImproperlyConfigured) as error:
            raise self._meaning(error) from error
        if not isinstance(answer, dict):
            raise bad_answer(f"OpenSearch's answer is no object: {str(answer)[:100]!r}")
        return answer

    def _meaning(self, error: Exception) -> ProviderError:
        if isinstance(error, NoConnectionError) and _is_timeout(error):
            message = f"OpenSearch at {self._address} did not answer within {self._timeout_s:g} s."
            return ProviderError(message, retryable=True, kind="timeout")
        if isinstance(error, NoConnectionError):
            message = shortened(f"OpenSearch at {self._address} cannot be reached: {error.error}")
            return ProviderError(message, retryable=True, kind="unavailable")
        if not isinstance(error, TransportError) or not isinstance(error.status_code, int):
            return ProviderError(shortened(str(error)), retryable=False, kind="bad_request")
        message = _reason_in(error.info) or f"HTTP {error.status_code}: {error.error}"
        if isinstance(error, NotFoundError):
            return _NotFoundError(shortened(message), retryable=False, kind="bad_request")
        if error.error == "resource_already_exists_exception":
            return _AlreadyThereError(shortened(message), retryable=True, kind="unavailable")
        return status_error(error.status_code, message)

    def _connect(self) -> OpenSearch:
        parts = urlsplit(self._address)
        is_secure = parts.scheme == "https"
        host = {
            "host": parts.hostname,
            "port": parts.port or (443 if is_secure else 80),
            "url_prefix": parts.path,
        }
        return OpenSearch(
            hosts=[host],
            use_ssl=is_secure,
            http_auth=self._user or self._signer(),
            timeout=self._timeout_s,
            max_retries=0,
            pool_maxsize=_CONNECTIONS,
        )

    def _signer(self) -> object:
        """What signs requests to a domain of AWS; None where no region is set."""
        if not self._region:
            return None
        import boto3  # noqa: PLC0415 - a second, and only for domains of AWS
        from botocore.exceptions import BotoCoreError  # noqa: PLC0415
        from opensearchpy import Urllib3AWSV4SignerAuth  # noqa: PLC0415

        try:
            credentials = boto3.Session(region_name=self._region).get_credentials()
        except BotoCoreError as error:
            raise ProviderError(shortened(str(error)), retryable=False, kind="auth") from error
        if credentials is None:
            message = "There are no AWS credentials to sign requests to OpenSearch with."
            raise ProviderError(message, retryable=False, kind="auth")
        return Urllib3AWSV4SignerAuth(credentials, self._region)


class _NotFoundError(ProviderError):
    """The index is not there."""


class _AlreadyThereError(ProviderError):
    """What was to be made is there."""


def _is_timeout(error: NoConnectionError) -> bool:
    # A refused connection is a time-out to urllib3, by its class.
    connecting = isinstance(error.info, ConnectTimeoutError) and not isinstance(
        error.info, NewConnectionError
    )
    return isinstance(error, ConnectionTimeout) or connecting


def _is_done(result: Mapping[str, Any]) -> bool:
    # One that is to be deleted and was not there: 404, and no error.
    return "error" not in result and result.get("status") in (200, 201, 404)


def _failure_of(result: Mapping[str, Any]) -> ProviderError:
    status = result.get("status")
    reason = _reason_in(result) or "no reason was given"
    return status_error(status if isinstance(status, int) else 500, f"{result['_id']}: {reason}")


def _reason_in(info: object) -> str:
    """Why, in the form that OpenSearch says it in; "" when it is another."""
    error = info.get("error") if isinstance(info, dict) else None
    if isinstance(error, dict):
        return f"{error.get('type')}: {error.get('reason')}"
    return error if isinstance(error, str) else ""
