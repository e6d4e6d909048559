"""A local server that speaks S3 Vectors' wire, and searches exactly.

Requests and answers are checked against the SDK's own description of the service, and against the limits
that only its documentation names.
"""

import json
import math
import re
from array import array
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from botocore import xform_name
from botocore.loaders import Loader, create_loader
from botocore.model import ServiceModel
from botocore.validate import ParamValidator

from tests.stubs.json_server import Answer, Call, JsonServer, answer_of

NAME = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
ARN = "arn:aws:s3vectors:eu-central-1:123456789012:bucket"
MADE_AT = 1_780_000_000
MOST = {"PutVectors": ("vectors", 500), "DeleteVectors": ("keys", 500), "GetVectors": ("keys", 100)}


@cache
def _loader() -> Loader:
    return create_loader()


def one_loader(*args: object) -> Loader:
    """In place of botocore.session.create_loader: reading the descriptions of services takes longer than a test."""
    return _loader()


@cache
def model() -> ServiceModel:
    return ServiceModel(_loader().load_service_model("s3vectors", "service-2"), "s3vectors")


class RefusedError(Exception):
    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code = status, code


def refused(status: int, code: str, message: str = "The stub was told to fail.", **headers: str) -> Answer:
    """An error in the service's form."""
    return answer_of({"message": message}, status=status, x_amzn_errortype=code, **headers)


@dataclass
class Vector:
    value: "array[float]"
    metadata: dict[str, Any]


@dataclass
class Index:
    dimension: int
    metric: str
    vectors: dict[str, Vector] = field(default_factory=dict)


class S3VectorsServer(JsonServer):
    """With one vector bucket, `mate`. `page`: results of a query, or of a list, in one answer."""

    def __init__(self, *, page: int = 1000) -> None:
        self.indexes: dict[str, Index] = {}
        self.page = page
        super().__init__()

    def answer(self, call: Call) -> Answer:
        name = call.path.removeprefix("/")
        try:
            if "/s3vectors/aws4_request" not in call.headers.get("authorization", ""):
                raise RefusedError(403, "AccessDeniedException", "The request is not signed.")
            asked = call.json
            check_request(name, asked, size=len(call.body))
            said = getattr(self, f"on_{xform_name(name)}")(asked)
        except RefusedError as error:
            return refused(error.status, error.code, str(error))
        check_shape(model().operation_model(name).output_shape, said)
        return answer_of(said)

    def on_get_vector_bucket(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._check_bucket(asked)
        about = {"vectorBucketName": "mate", "vectorBucketArn": f"{ARN}/mate", "creationTime": MADE_AT}
        return {"vectorBucket": about}

    def on_create_index(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._check_bucket(asked)
        name = asked["indexName"]
        if not NAME.fullmatch(name):
            raise RefusedError(400, "ValidationException", f"Invalid index name {name}")
        if name in self.indexes:
            raise RefusedError(409, "ConflictException", "An index with the specified name already exists")
        self.indexes[name] = Index(asked["dimension"], asked["distanceMetric"])
        return {"indexArn": f"{ARN}/mate/index/{name}"}

    def on_get_index(self, asked: dict[str, Any]) -> dict[str, Any]:
        index, name = self._index(asked), asked["indexName"]
        about = {
            "vectorBucketName": "mate",
            "indexName": name,
            "indexArn": f"{ARN}/mate/index/{name}",
            "creationTime": MADE_AT,
            "dataType": "float32",
            "dimension": index.dimension,
            "distanceMetric": index.metric,
            "indexMode": "CLASSIC",
        }
        return {"index": about}

    def on_delete_index(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._index(asked)
        del self.indexes[asked["indexName"]]
        return {}

    def on_put_vectors(self, asked: dict[str, Any]) -> dict[str, Any]:
        index = self._index(asked)
        made = {one["key"]: vector_of(one, size=index.dimension) for one in asked["vectors"]}
        if len(made) != len(asked["vectors"]):
            raise RefusedError(400, "ValidationException", "Duplicate vector keys")
        index.vectors.update(made)
        return {}

    def on_delete_vectors(self, asked: dict[str, Any]) -> dict[str, Any]:
        index = self._index(asked)
        for key in asked["keys"]:
            index.vectors.pop(key, None)
        return {}

    def on_query_vectors(self, asked: dict[str, Any]) -> dict[str, Any]:
        index = self._index(asked)
        if not 1 <= asked["topK"] <= 100:
            raise RefusedError(400, "ValidationException", "topK must be between 1 and 100")
        if constraints(asked.get("filter", {})) > 100:
            raise RefusedError(400, "ValidationException", "Too many filter constraints")
        value = numbers_of(asked["queryVector"], size=index.dimension)
        near = sorted(
            (1 - cosine(value, one.value), key, one)
            for key, one in index.vectors.items()
            if passes(asked.get("filter", {}), one.metadata)
        )[: asked["topK"]]
        found = [
            {
                "key": key,
                **({"distance": distance} if asked.get("returnDistance") else {}),
                **({"metadata": one.metadata} if asked.get("returnMetadata") else {}),
            }
            for distance, key, one in near
        ]
        return {**self._page(asked, found, most=self.page), "distanceMetric": index.metric}

    def on_list_vectors(self, asked: dict[str, Any]) -> dict[str, Any]:
        index = self._index(asked)
        most = asked.get("maxResults", 500)
        if not 1 <= most <= 1000:
            raise RefusedError(400, "ValidationException", "maxResults must be between 1 and 1000")
        return self._page(asked, [{"key": key} for key in index.vectors], most=min(most, self.page))

    def _page(self, asked: dict[str, Any], found: list[Any], *, most: int) -> dict[str, Any]:
        start = int(asked.get("nextToken", 0))
        rest = {"nextToken": str(start + most)} if len(found) > start + most else {}
        return {"vectors": found[start : start + most], **rest}

    def _check_bucket(self, asked: dict[str, Any]) -> None:
        if asked.get("vectorBucketName") != "mate":
            raise RefusedError(404, "NotFoundException", "The specified vector bucket could not be found")

    def _index(self, asked: dict[str, Any]) -> Index:
        self._check_bucket(asked)
        if asked.get("indexName") not in self.indexes:
            raise RefusedError(404, "NotFoundException", "The specified index could not be found")
        return self.indexes[asked["indexName"]]


def check_request(name: str, asked: Any, *, size: int) -> None:
    """As the SDK would before it sends, and what it leaves to the service."""
    report = ParamValidator().validate(asked, model().operation_model(name).input_shape)
    if report.has_errors():
        raise RefusedError(400, "ValidationException", report.generate_report())
    if size > 20 * 1024 * 1024:
        raise RefusedError(400, "ValidationException", "The request is larger than 20 MiB")
    field_name, most = MOST.get(name, ("", 0))
    if len(asked.get(field_name, [])) > most:
        raise RefusedError(400, "ValidationException", f"{name} takes up to {most} {field_name}")


def check_shape(shape: Any, said: dict[str, Any]) -> None:
    report = ParamValidator().validate(said, shape)
    assert not report.has_errors(), report.generate_report()


def vector_of(put: Mapping[str, Any], *, size: int) -> Vector:
    metadata = put.get("metadata", {})
    if len(json.dumps(metadata).encode()) > 2048:
        raise RefusedError(400, "ValidationException", "Filterable metadata must have at most 2048 bytes")
    return Vector(numbers_of(put["data"], size=size), metadata)


def numbers_of(data: Mapping[str, Any], *, size: int) -> "array[float]":
    value = array("f", data["float32"])
    if len(value) != size:
        raise RefusedError(
            400, "ValidationException", f"Query vector contains invalid dimension {len(value)}"
        )
    if not all(map(math.isfinite, value)) or not any(value):
        raise RefusedError(400, "ValidationException", "Invalid vector for the cosine distance metric")
    return value


def cosine(one: "array[float]", other: "array[float]") -> float:
    return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))


def constraints(filters: Any) -> int:
    """How many values a filter compares with."""
    if isinstance(filters, dict):
        return sum(constraints(value) for value in filters.values())
    return sum(map(constraints, filters)) if isinstance(filters, list) else 1


def passes(filters: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Whether metadata is let through, by the operators that the product uses."""
    for key, asked in filters.items():
        if key == "$and":
            fits = all(passes(one, metadata) for one in asked)
        else:
            (operator, values), *others = asked.items()
            if operator != "$in" or others or not values:
                raise RefusedError(400, "ValidationException", f"Invalid filter on {key}")
            fits = metadata.get(key) in values
        if not fits:
            return False
    return True
