"""What every test of a client needs: no certificates, no credentials of the machine's, a server that is a stub."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator

import pytest

from tests.stubs.openai_server import StubServer


@pytest.fixture(autouse=True, scope="package")
def one_tls_context() -> Iterator[None]:
    """Reading the system's certificates takes longer than any of these tests, and none of them uses TLS."""
    context = ssl.create_default_context()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", lambda *args, **kwargs: context)
        yield


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("AWS_", "OPENAI_", "ANTHROPIC_", "EMBED_STUB_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)


@pytest.fixture
def server() -> Iterator[StubServer]:
    with StubServer() as stub:
        yield stub
        stub.assert_done()
