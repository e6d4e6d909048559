"""An HTTP client's way into Django's own test client, for commands that call a running product."""

from __future__ import annotations

from dataclasses import dataclass, field

import httpx
import pytest
from rest_framework.test import APIClient

from memory.management.commands import replay
from workspaces.outbox import drain


@dataclass
class Bridge:
    """Answers httpx out of this process and its test transaction; after each request, workers have worked.

    `dies_after`: so many requests are answered, then nobody is there. `requests` holds what was answered.
    """

    dies_after: int | None = None
    requests: list[httpx.Request] = field(default_factory=list)

    def __call__(self, request: httpx.Request) -> httpx.Response:
        if self.dies_after is not None and len(self.requests) >= self.dies_after:
            raise httpx.ConnectError("Connection refused", request=request)
        self.requests.append(request)
        # Nobody works while a request waits: it does not wait, and its work is done afterwards.
        url = request.url.copy_set_param("wait", "0") if "wait" in request.url.params else request.url
        answer = APIClient(raise_request_exception=False).generic(
            request.method,
            url.raw_path.decode(),
            request.content,
            content_type=request.headers.get("content-type", "application/json"),
            HTTP_AUTHORIZATION=request.headers["authorization"],
        )
        drain()
        return httpx.Response(
            answer.status_code, content=answer.content, headers=dict(answer.items()), request=request
        )

    def install(self, monkeypatch: pytest.MonkeyPatch) -> Bridge:
        """Commands go over this bridge until the test ends."""

        def client(target: replay.Target) -> httpx.Client:
            return httpx.Client(
                base_url=f"{target.url}/api/v1/memory/{target.agent}/",
                headers={"Authorization": f"Bearer {target.token}"},
                transport=httpx.MockTransport(self),
            )

        monkeypatch.setattr(replay.Target, "client", client)
        return self
