"""Embeddings of OpenAI, and of any server that speaks its wire."""

import json
import os
import re
import threading
import time
from collections.abc import Sequence
from typing import Any, Final

import httpx

from integrations.clients.embed.embedder import Limits, TextKind
from integrations.clients.embed.failures import shortened, status_error
from integrations.clients.embed.names import EmbedderName
from integrations.clients.errors import ProviderError

_OPENAI_URL: Final = "https://api.openai.com/v1"
_CONNECT_TIMEOUT_S: Final = 10.0
_MOST_ANSWER_BYTES: Final = 256 * 1024 * 1024

# OpenAI takes 8,192 tokens a text, 2,048 texts and 300,000 tokens a request. A token is at least one byte.
_TEXT_BYTES: Final = 8000
_REQUEST_BYTES: Final = 300_000
_OPENAI_TEXTS: Final = 2048
# Others take less; 32 is what the most careful of them (Text Embeddings Inference) takes unless told.
_OTHER_TEXTS: Final = 32
_SHORTEST_BYTES: Final = 250  # a text that is still too long at this size is refused for another reason

# Models that were trained with words before the text: (their names, before a query, before a passage).
_PREFIXES: Final = (
    (re.compile(r"(^|[/-])e5-(small|base|large)(?!.*instruct)", re.IGNORECASE), "query: ", "passage: "),
    (re.compile(r"(^|/)nomic-embed-text", re.IGNORECASE), "search_query: ", "search_document: "),
)


class OpenAIEmbedder:
    """A Service. `timeout_s` bounds one request; a text that its server finds too long is halved until it fits.

    The key is `OPENAI_API_KEY`; a server of one's own may need none.
    """

    def __init__(self, name: EmbedderName, *, base_url: str | None, timeout_s: float) -> None:
        key = os.environ.get("OPENAI_API_KEY")
        if not key and base_url is None:
            message = "OPENAI_API_KEY is not set: this embedder needs a key."
            raise ProviderError(message, retryable=False, kind="auth")
        self.name: Final = str(name)
        self.dimensions: Final = name.dimensions
        self.limits: Final = Limits(
            texts_per_call=_OPENAI_TEXTS if base_url is None else _OTHER_TEXTS,
            cut=lambda text: _within(text, _TEXT_BYTES),
            cost=lambda text: len(text.encode()),
            cost_per_call=_REQUEST_BYTES,
        )
        self._asked = name
        self._url = f"{(base_url or _OPENAI_URL).rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout_s = timeout_s
        self._prefixes = _prefixes_of(name.model)
        self._lock = threading.Lock()
        self._client: httpx.Client | None = None
        self._pid = os.getpid()

    def ask(self, texts: Sequence[str], kind: TextKind) -> Sequence[Sequence[float]]:
        try:
            return self._request(texts, kind)
        except ProviderError as error:
            if error.kind != "context_too_large":
                raise
            if len(texts) > 1:
                return [vector for text in texts for vector in self.ask([text], kind)]
            half = _within(texts[0], len(texts[0].encode()) // 2)
            if len(half.encode()) < _SHORTEST_BYTES:
                raise
            return self.ask([half], kind)

    def _request(self, texts: Sequence[str], kind: TextKind) -> Sequence[Sequence[float]]:
        prefix = self._prefixes[kind]
        body: dict[str, Any] = {"model": self._asked.model, "input": [prefix + text for text in texts]}
        if self._asked.sends_dimensions:
            body["dimensions"] = self._asked.dimensions
        try:
            status, headers, content = self._post(body)
        except httpx.TimeoutException as error:
            message = f"The embedder did not answer within {self._timeout_s:g} s."
            raise ProviderError(message, retryable=True, kind="timeout") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            message = shortened(f"The embedder cannot be reached: {error or type(error).__name__}")
            if isinstance(error, (httpx.UnsupportedProtocol, httpx.InvalidURL)):
                raise ProviderError(message, retryable=False, kind="bad_request") from error
            raise ProviderError(message, retryable=True, kind="unavailable") from error
        if status != 200:
            raise _refusal(status, headers, content)
        return _vectors_in(content)

    def _post(self, body: dict[str, Any]) -> tuple[int, httpx.Headers, bytes]:
        """The whole answer; one that comes in drops is given up at the deadline, like one that never comes."""
        deadline = time.monotonic() + self._timeout_s
        with self._http().stream("POST", self._url, json=body, headers=self._headers) as response:
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if time.monotonic() > deadline:
                    raise httpx.ReadTimeout("The answer was not whole at the deadline.")
                if len(content) > _MOST_ANSWER_BYTES:
                    raise ProviderError(
                        "The embedder's answer has no end.", retryable=True, kind="bad_answer"
                    )
            return response.status_code, response.headers, bytes(content)

    def _http(self) -> httpx.Client:
        """This process's connections: the parent's are not ours after a fork."""
        if self._pid != os.getpid():
            self._lock, self._client, self._pid = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._client is None:
                timeout = httpx.Timeout(self._timeout_s, connect=min(self._timeout_s, _CONNECT_TIMEOUT_S))
                self._client = httpx.Client(timeout=timeout)
            return self._client


def _prefixes_of(model: str) -> dict[TextKind, str]:
    for pattern, query, passage in _PREFIXES:
        if pattern.search(model):
            return {"query": query, "passage": passage}
    return {"query": "", "passage": ""}


def _within(text: str, size: int) -> str:
    """The text's beginning, of at most `size` bytes, in whole characters."""
    return text.encode()[:size].decode("utf-8", "ignore")


def _vectors_in(content: bytes) -> Sequence[Sequence[float]]:
    """The vectors of an answer in the order of their texts; that they are vectors is not checked here."""
    try:
        data = json.loads(content)["data"]
        places = [one.get("index", place) for place, one in enumerate(data)]
        if sorted(places) != list(range(len(data))):
            raise ValueError(f"places {places[:10]}")
        by_place = {place: one["embedding"] for place, one in zip(places, data, strict=True)}
        return [by_place[place] for place in range(len(data))]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        message = shortened(f"The embedder's answer cannot be read: {error!r}")
        raise ProviderError(message, retryable=True, kind="bad_answer") from error


def _refusal(status: int, headers: httpx.Headers, content: bytes) -> ProviderError:
    text = content.decode("utf-8", "replace")
    message, code = text, ""
    try:
        error = json.loads(text)
        error = error.get("error", error)
        message = error if isinstance(error, str) else str(error.get("message") or text)
        code = "" if isinstance(error, str) else str(error.get("code") or "")
    except (ValueError, AttributeError, RecursionError):
        pass  # a proxy's page: its text is the message
    return status_error(status, message, code=code, retry_after_s=_retry_after_in(headers))


def _retry_after_in(headers: httpx.Headers) -> float | None:
    """Seconds; None for a date, which some proxies send."""
    value = headers.get("retry-after", "")
    return float(value) if re.fullmatch(r"\d{1,6}(\.\d+)?", value) else None
