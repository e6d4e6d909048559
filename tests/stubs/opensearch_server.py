"""A local server that speaks OpenSearch's wire as far as vectors go, and searches exactly.

What is written is found only after a refresh, as in the real one; `refresh` does one.
"""

import json
import math
from array import array
from dataclasses import dataclass, field
from typing import Any

from tests.stubs.json_server import Answer, Call, JsonServer, answer_of

MOST_BULK_BYTES = 10 * 1024 * 1024
MOST_RESULTS = 10_000
SPACES = {"lucene": {"cosinesimil", "innerproduct", "l2"}, "faiss": {"innerproduct", "l2"}}


class RefusedError(Exception):
    def __init__(self, status: int, kind: str, reason: str) -> None:
        super().__init__(reason)
        self.status, self.kind = status, kind


def refused(status: int, kind: str, reason: str = "The stub was told to fail.") -> Answer:
    """An error in OpenSearch's form."""
    cause = {"type": kind, "reason": reason}
    return answer_of({"error": {"root_cause": [cause], **cause}, "status": status}, status=status)


@dataclass
class Index:
    fields: dict[str, dict[str, Any]]
    aliases: set[str]
    written: dict[str, dict[str, Any]] = field(default_factory=dict)
    found: dict[str, dict[str, Any]] = field(default_factory=dict)


class OpenSearchServer(JsonServer):
    """`user`: what has to be in the header Authorization, if anything."""

    def __init__(self, *, version: str = "2.19.0", distribution: str | None = "opensearch") -> None:
        self.indexes: dict[str, Index] = {}
        self.version = {"number": version} | ({"distribution": distribution} if distribution else {})
        self.user = ""
        super().__init__()

    def refresh(self) -> None:
        for index in self.indexes.values():
            index.found = dict(index.written)

    def answer(self, call: Call) -> Answer:
        if call.headers.get("authorization", "") != self.user:
            return Answer(401, b"Unauthorized", {"Content-Type": "text/plain"})
        try:
            return answer_of(self._said(call))
        except RefusedError as error:
            return refused(error.status, error.kind, str(error))

    def _said(self, call: Call) -> dict[str, Any]:
        name, _, action = call.path.removeprefix("/").partition("/")
        if not name:
            return {"name": "node", "cluster_name": "docker", "version": self.version}
        if action == "_bulk":
            return self._bulk(name, call)
        if (call.method, action) == ("PUT", ""):
            return self._create(name, call.json)
        index = self._index(name)
        if action == "_search":
            return self._search(index, call)
        if action == "_mapping":
            return {name: {"mappings": {"properties": index.fields}}}
        if action == "_refresh":
            self.refresh()
        else:
            assert (call.method, action) == ("DELETE", "")
            del self.indexes[name]
        return {"acknowledged": True}

    def _index(self, name: str) -> Index:
        if name not in self.indexes:
            raise RefusedError(404, "index_not_found_exception", f"no such index [{name}]")
        return self.indexes[name]

    def _create(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        if name in self.indexes:
            raise RefusedError(400, "resource_already_exists_exception", f"index [{name}] already exists")
        fields = body["mappings"]["properties"]
        method = fields["value"]["method"]
        if not body["settings"]["index"]["knn"] or fields["value"]["type"] != "knn_vector":
            raise RefusedError(400, "mapper_parsing_exception", "not an index of vectors")
        if method["name"] != "hnsw" or method["space_type"] not in SPACES[method["engine"]]:
            raise RefusedError(400, "mapper_parsing_exception", "Validation Failed: no such space")
        assert body["mappings"]["dynamic"] == "strict"
        self.indexes[name] = Index(fields, set(body["aliases"]))
        return {"acknowledged": True, "shards_acknowledged": True, "index": name}

    def _bulk(self, name: str, call: Call) -> dict[str, Any]:
        if len(call.body) > MOST_BULK_BYTES:
            raise RefusedError(413, "content_too_long", "Request size exceeded 10485760 bytes")
        assert call.body.endswith(b"\n")
        assert call.query["require_alias"] == "true"
        lines = [json.loads(line) for line in call.body.splitlines()]
        items = []
        while lines:
            ((action, about),) = lines.pop(0).items()
            document = lines.pop(0) if action == "index" else None
            items.append({action: self._done(name, about["_id"], document)})
        errors = any("error" in next(iter(item.values())) for item in items)
        return {"took": 1, "errors": errors, "items": items}

    def _done(self, name: str, number: str, document: dict[str, Any] | None) -> dict[str, Any]:
        index = next((one for one in self.indexes.values() if name in one.aliases), None)
        about = {"_index": name, "_id": number}
        if index is None:
            reason = f"no such index [{name}] and [require_alias] request flag is [true]"
            error = {"type": "index_not_found_exception", "reason": reason}
            return {**about, "status": 404, "error": error}
        if document is None:
            was = index.written.pop(number, None)
            status = {"result": "deleted", "status": 200} if was else {"result": "not_found", "status": 404}
            return {**about, **status}
        size = index.fields["value"]["dimension"]
        if set(document) != set(index.fields) or len(document["value"]) != size:
            error = {
                "type": "mapper_parsing_exception",
                "reason": f"Vector dimension mismatch. Expected: {size}",
            }
            return {**about, "status": 400, "error": error}
        index.written[number] = {**document, "value": array("f", document["value"])}
        return {**about, "result": "created", "status": 201}

    def _search(self, index: Index, call: Call) -> dict[str, Any]:
        asked = call.json
        if not 0 < asked["size"] <= MOST_RESULTS:
            raise RefusedError(400, "illegal_argument_exception", "Result window is too large")
        assert call.query["allow_partial_search_results"] == "false"
        assert asked["_source"] is False
        if "query" in asked:
            hits = self._nearest(index, asked)
        else:
            assert asked["sort"] == [{"id": "asc"}]
            (last,) = asked["search_after"]
            after = sorted(one["id"] for one in index.found.values() if one["id"] > last)
            hits = [{"_id": str(one), "_score": None, "sort": [one]} for one in after[: asked["size"]]]
        shards = {"total": 1, "successful": 1, "skipped": 0, "failed": 0}
        return {"took": 1, "timed_out": False, "_shards": shards, "hits": {"max_score": None, "hits": hits}}

    def _nearest(self, index: Index, asked: dict[str, Any]) -> list[dict[str, Any]]:
        ((name, query),) = asked["query"]["knn"].items()
        field_about = index.fields[name]
        if not 1 <= query["k"] <= MOST_RESULTS or len(query["vector"]) != field_about["dimension"]:
            raise RefusedError(400, "query_shard_exception", "Query vector has invalid dimension or k")
        value = array("f", query["vector"])
        wanted = [
            (key, set(values))
            for one in query["filter"]["bool"]["filter"]
            for key, values in one["terms"].items()
        ]
        scored = [
            (score_of(value, one["value"], field_about["method"]["engine"]), key, one)
            for key, one in index.found.items()
            if all(one[key] in values for key, values in wanted)
        ]
        best = sorted(scored, key=lambda hit: -hit[0])[: min(query["k"], asked["size"])]
        return [
            {
                "_id": key,
                "_score": score,
                "fields": {name: [one[name]] for name in asked.get("docvalue_fields", [])},
            }
            for score, key, one in best
        ]


def score_of(one: "array[float]", other: "array[float]", engine: str) -> float:
    """As each engine scores vectors of length 1: docs.opensearch.org, "Vector spaces"."""
    product = sum(a * b for a, b in zip(one, other, strict=True))
    if engine == "lucene":
        return (1 + product / (math.hypot(*one) * math.hypot(*other))) / 2
    distance = -product
    return 1 / (1 + distance) if distance >= 0 else 1 - distance
