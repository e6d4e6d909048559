"""Amazon S3 Vectors. What it takes: docs.aws.amazon.com, "S3 Vectors: Limitations and restrictions"."""

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
)
from botocore.parsers import ResponseParserError

from integrations.clients.aws import AUTH_CODES, kind_of
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

_SERVICE: Final = "S3 Vectors"
_CONNECT_TIMEOUT_S: Final = 10.0
# Writes: 1,000 requests and 2,500 vectors a second and index; reads: hundreds of requests a second.
_THROTTLED_S: Final = 1.0
_IDS_PER_PAGE: Final = 1000
_MOST_PAGES: Final = 20  # of one query; the service says nothing of their size

_LIMITS: Final = Limits(
    dimensions=4096,
    items=500,
    bytes=20 * 1024 * 1024,
    ids=500,
    # Since June 2026 it takes 10,000, in pages; 100 is what every region takes, and more than recall looks at.
    near=100,
    filters=100,
)
_THROTTLED_CODES: Final = frozenset({"TooManyRequestsException", "ThrottlingException", "SlowDown"})


class S3Vectors:
    """A Service. `timeout_s` bounds the connection, and each wait for more of an answer; the SDK's own
    retries are off.

    Needs the permissions s3vectors:GetVectorBucket, CreateIndex, GetIndex, DeleteIndex, PutVectors, GetVectors,
    ListVectors, DeleteVectors and QueryVectors. Raises ProviderError (`bad_request`) when no region is set.
    """

    limits: Final = _LIMITS

    def __init__(
        self, bucket: str, *, index: str, timeout_s: float, region: str | None, endpoint_url: str | None
    ) -> None:
        self.index: Final = index
        self._bucket = bucket
        self._timeout_s = timeout_s
        self._region = region
        self._endpoint_url = endpoint_url
        self._client = PerProcess(self._connect)
        self._client.get()

    def greet(self) -> str:
        answer = self._call("get_vector_bucket", vectorBucketName=self._bucket)
        with reading(_SERVICE):
            bucket = answer["vectorBucket"]["vectorBucketName"]
        return f"S3 Vectors in {self._client.get().meta.region_name} answers for the vector bucket {bucket!r}"

    def dimensions(self) -> int | None:
        try:
            answer = self._on_index("get_index")
        except _NotFoundError:
            return None
        with reading(_SERVICE):
            return self._size_in(answer["index"])

    def create(self, dimensions: int) -> None:
        with contextlib.suppress(_ConflictError):  # another process was quicker
            self._on_index("create_index", dataType="float32", dimension=dimensions, distanceMetric="cosine")

    def put(self, items: Sequence[Item]) -> None:
        vectors = [
            {
                "key": str(item.id),
                "data": {"float32": list(item.value)},
                # As text: a number of theirs may have fewer than 64 bits, and one bucket would pass for another.
                "metadata": {"bucket": str(item.bucket), "kind": item.kind},
            }
            for item in items
        ]
        self._on_index("put_vectors", vectors=vectors)

    def delete(self, ids: Sequence[int]) -> None:
        self._on_index("delete_vectors", keys=[str(number) for number in ids])

    def near(
        self, value: Sequence[float], *, buckets: Sequence[int], kinds: Sequence[str], limit: int
    ) -> list[Near]:
        asked = {
            "topK": limit,
            "queryVector": {"float32": list(value)},
            "filter": _filter(buckets, kinds),
            # Filters first, then searches. CLASSIC, which indexes of older vector buckets do unless told, filters
            # while it searches, and misses much of a bucket that is a small part of the index.
            "queryMode": "ENHANCED",
            "returnMetadata": True,
            "returnDistance": True,
        }
        found: list[Near] = []
        token: dict[str, str] = {}
        for _ in range(_MOST_PAGES):
            answer = self._on_index("query_vectors", **asked, **token)
            with reading(_SERVICE):
                found += _near_in(answer)
            if not answer.get("nextToken") or len(found) >= limit:
                return found
            token = {"nextToken": answer["nextToken"]}
        raise bad_answer(f"S3 Vectors' answer to a query has no end: {len(found)} in {_MOST_PAGES} pages.")

    def pages(self) -> Iterator[list[int]]:
        token: dict[str, str] = {}
        while True:
            answer = self._on_index("list_vectors", maxResults=_IDS_PER_PAGE, **token)
            with reading(_SERVICE):
                page = [stored_number(one["key"]) for one in answer["vectors"]]
            yield page
            following = answer.get("nextToken")
            if not following:
                return
            if following == token.get("nextToken"):
                raise bad_answer("S3 Vectors' list of vectors has no end: it names one page twice.")
            token = {"nextToken": following}

    def drop(self) -> None:
        with contextlib.suppress(_NotFoundError):
            self._on_index("delete_index")

    def _size_in(self, index: Mapping[str, Any]) -> int:
        if index["distanceMetric"] != "cosine":
            raise refusal(
                f"The index {self.index!r} measures {index['distanceMetric']}, not cosine: drop it."
            )
        return int(index["dimension"])

    def _on_index(self, operation: str, **arguments: Any) -> Mapping[str, Any]:
        return self._call(operation, vectorBucketName=self._bucket, indexName=self.index, **arguments)

    def _call(self, operation: str, **arguments: Any) -> Mapping[str, Any]:
        call = getattr(self._client.get(), operation)
        try:
            with reading(_SERVICE):  # the SDK's parser trusts it
                answer: Mapping[str, Any] = call(**arguments)
        except ClientError as error:
            raise _client_error(error) from error
        except BotoCoreError as error:
            raise _sdk_error(error) from error
        except (ResponseParserError, RecursionError) as error:
            raise bad_answer(f"The answer of {_SERVICE} cannot be read: {error!r}") from error
        return answer

    def _connect(self) -> Any:
        config = Config(
            read_timeout=self._timeout_s,
            connect_timeout=min(self._timeout_s, _CONNECT_TIMEOUT_S),
            retries={"total_max_attempts": 1, "mode": "standard"},
            max_pool_connections=64,
        )
        try:
            # A session of its own: boto3's shared one is not safe to share, and reads no AWS_REGION.
            session = boto3.Session(region_name=self._region or os.environ.get("AWS_REGION") or None)
            return session.client("s3vectors", config=config, endpoint_url=self._endpoint_url)
        except BotoCoreError as error:
            raise _sdk_error(error) from error


class _NotFoundError(ProviderError):
    """The vector bucket or the index is not there."""


class _ConflictError(ProviderError):
    """What was to be made is there."""


def _filter(buckets: Sequence[int], kinds: Sequence[str]) -> dict[str, Any]:
    of_buckets = {"bucket": {"$in": [str(bucket) for bucket in buckets]}}
    return {"$and": [of_buckets, {"kind": {"$in": list(kinds)}}]} if kinds else of_buckets


def _near_in(answer: Mapping[str, Any]) -> list[Near]:
    if answer["distanceMetric"] != "cosine":
        raise ValueError(f"a distance that is {answer['distanceMetric']!r}")
    return [
        Near(
            stored_number(one["key"]),
            stored_number(one["metadata"]["bucket"]),
            1.0 - float(one["distance"]),
        )
        for one in answer["vectors"]
    ]


def _client_error(error: ClientError) -> ProviderError:
    said = error.response.get("Error", {})
    about = error.response.get("ResponseMetadata", {})
    code, status = said.get("Code", ""), about.get("HTTPStatusCode", 500)
    message = shortened(f"{code}: {said.get('Message', '')}")
    if code == "NotFoundException":
        return _NotFoundError(message, retryable=False, kind="bad_request")
    if code == "ConflictException":
        return _ConflictError(message, retryable=True, kind="unavailable")
    if code in AUTH_CODES:
        status = 403
    elif code in _THROTTLED_CODES:
        status = 429
    waits = _retry_after_in(about.get("HTTPHeaders", {})) or (_THROTTLED_S if status == 429 else None)
    return status_error(status, message, retry_after_s=waits)


def _retry_after_in(headers: Mapping[str, str]) -> float | None:
    """Seconds; None for a date, which some proxies send."""
    value = headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"\d{1,6}(\.\d+)?", value) else None


def _sdk_error(error: BotoCoreError) -> ProviderError:
    kind, is_retryable = kind_of(error)
    return ProviderError(shortened(str(error)), retryable=is_retryable, kind=kind)
