"""Embeddings of Bedrock: Amazon's Titan v2, and Cohere's multilingual v3."""

import json
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
)

from integrations.clients.aws import AUTH_CODES, kind_of
from integrations.clients.embed.embedder import Limits, TextKind
from integrations.clients.embed.failures import shortened, status_error
from integrations.clients.embed.names import TITAN, EmbedderName
from integrations.clients.errors import ProviderError

_CONNECT_TIMEOUT_S: Final = 10.0

# Titan takes one text a request: this many at once, of this many texts between two looks at the hook.
_TITAN_THREADS: Final = 8
_TITAN_TEXTS: Final = 64
_TITAN_BYTES: Final = 8000  # it takes 8,192 tokens, and a token is at least one byte
_COHERE_TEXTS: Final = 96
_COHERE_CHARACTERS: Final = 2048
_COHERE_TYPES: Final[Mapping[TextKind, str]] = {"query": "search_query", "passage": "search_document"}


class BedrockEmbedder:
    """A Service. `timeout_s` bounds one request; the SDK's own retries are off.

    Raises ProviderError (`bad_request`) when no region is set.
    """

    def __init__(self, name: EmbedderName, *, timeout_s: float) -> None:
        self.name: Final = str(name)
        self.dimensions: Final = name.dimensions
        self.limits: Final = _limits_of(name.model)
        self._model = name.model
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._client = self._connect()

    def ask(self, texts: Sequence[str], kind: TextKind) -> Sequence[Sequence[float]]:
        if self._model == TITAN:
            return self._titan(texts)
        # END: by tokens a text of 2,048 characters may still be too long.
        body = {"texts": list(texts), "input_type": _COHERE_TYPES[kind], "truncate": "END"}
        return _list_in(self._invoke(body), "embeddings")

    def _titan(self, texts: Sequence[str]) -> list[list[float]]:
        if len(texts) == 1:
            return [self._titan_one(texts[0])]
        with ThreadPoolExecutor(min(_TITAN_THREADS, len(texts)), thread_name_prefix="titan") as pool:
            try:
                return list(pool.map(self._titan_one, texts))
            except ProviderError:
                pool.shutdown(cancel_futures=True)
                raise

    def _titan_one(self, text: str) -> list[float]:
        body = {"inputText": text, "dimensions": self.dimensions, "normalize": True}
        return _list_in(self._invoke(body), "embedding")

    def _invoke(self, body: dict[str, Any]) -> Any:
        client = self._client_here()
        with _provider_errors():
            answer = client.invoke_model(
                modelId=self._model,
                body=json.dumps(body),
                contentType="application/json",
                accept="application/json",
            )
            content = answer["body"].read()
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ProviderError("Bedrock's answer is no JSON.", retryable=True, kind="bad_answer") from error

    def _client_here(self) -> Any:
        """This process's client: the parent's connections are not ours after a fork."""
        if self._pid != os.getpid():
            self._lock, self._client, self._pid = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._client is None:
                self._client = self._connect()
            return self._client

    def _connect(self) -> Any:
        config = Config(
            read_timeout=self._timeout_s,
            connect_timeout=min(self._timeout_s, _CONNECT_TIMEOUT_S),
            retries={"total_max_attempts": 1, "mode": "standard"},
            max_pool_connections=64,
        )
        with _provider_errors():
            # A session of its own: boto3's shared one is not safe to share, and reads no AWS_REGION.
            session = boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
            return session.client("bedrock-runtime", config=config)


def _limits_of(model: str) -> Limits:
    if model == TITAN:
        return Limits(
            texts_per_call=_TITAN_TEXTS,
            cut=lambda text: text.encode()[:_TITAN_BYTES].decode("utf-8", "ignore"),
            cost=len,
            cost_per_call=_TITAN_TEXTS * _TITAN_BYTES,
        )
    return Limits(
        texts_per_call=_COHERE_TEXTS,
        # Counted as Java does, where a character beyond the first 65,536 is two.
        cut=lambda text: text.encode("utf-16-le")[: 2 * _COHERE_CHARACTERS].decode("utf-16-le", "ignore"),
        cost=len,
        cost_per_call=_COHERE_TEXTS * _COHERE_CHARACTERS,
    )


def _list_in(answer: Any, key: str) -> list[Any]:
    """The list of vectors, or of numbers, under `key`; what stands in it is checked by the caller."""
    found = answer.get(key) if isinstance(answer, dict) else None
    if not isinstance(found, list):
        raise ProviderError(f"Bedrock's answer has no list {key!r}.", retryable=True, kind="bad_answer")
    return found


@contextmanager
def _provider_errors() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise _client_error(error) from error
    except BotoCoreError as error:
        kind, is_retryable = kind_of(error)
        raise ProviderError(shortened(str(error)), retryable=is_retryable, kind=kind) from error


def _client_error(error: ClientError) -> ProviderError:
    said = error.response.get("Error", {})
    code, message = said.get("Code", ""), said.get("Message", "")
    status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500)
    if code in AUTH_CODES:
        status = 403
    elif code == "ModelTimeoutException":
        status = 408
    elif code in ("ThrottlingException", "ServiceQuotaExceededException"):
        status = 429
    return status_error(status, f"{code}: {message}", code=code)
