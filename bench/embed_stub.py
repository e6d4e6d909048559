"""An embedder that costs nothing: `python -m bench.embed_stub PORT` speaks OpenAI's wire on 127.0.0.1 and answers
with the vectors of `bench.synthetic`."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

import httpx

from bench.synthetic import vector_of
from bench.tables import percentile
from config.env import CHECKOUT
from tests.journeys.product import Product, free_port, until

EMBEDDER: Final = "openai:bench@384"
"""The stub's name among the product's embedders."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # The answer's head and body are two writes; held back, the second would wait for the first one's receipt.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
        rows = [
            {"object": "embedding", "index": place, "embedding": vector_of(text).round(6).tolist()}
            for place, text in enumerate(asked)
        ]
        body = json.dumps({"object": "list", "data": rows}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    address_family = socket.AF_INET


@contextmanager
def running() -> Iterator[Product]:
    """The product, whose embedder is a stub that costs nothing."""
    port = free_port()
    stub = subprocess.Popen([sys.executable, "-m", "bench.embed_stub", str(port)], cwd=CHECKOUT)
    variables = {
        "MATE_EMBEDDER": EMBEDDER,
        "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
        "OPENAI_API_KEY": "none",
        "MATE_MEMORY_AUTO_SUMMARIZE_ENABLED": "false",
    }
    try:
        with Product(variables) as product:
            until(lambda: embedding_seconds(product) > 0, what="the stub's start")
            yield product
    finally:
        stub.terminate()
        stub.wait()


def embedding_seconds(product: Product) -> float:
    """Seconds that the stub takes for a question, the median of fifty; 0 while it does not answer."""
    url = f"{product.environment['OPENAI_BASE_URL']}/embeddings"
    seconds = []
    with httpx.Client(trust_env=False) as client:
        for number in range(50):
            begun = time.perf_counter()
            try:
                client.post(url, json={"model": "bench", "input": [f"question {number}"]}).raise_for_status()
            except httpx.TransportError:
                return 0.0
            seconds.append(time.perf_counter() - begun)
    return percentile(seconds, 0.5)


def main() -> None:
    with _Server(("127.0.0.1", int(sys.argv[1])), _Handler) as server:
        server.serve_forever()


if __name__ == "__main__":
    main()
