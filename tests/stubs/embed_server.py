"""The local embedder with the stub in the place of its model: `python -m tests.stubs.embed_server --data-dir …`."""

import sys

from integrations.clients.embed.serve import main

CHILD = (sys.executable, "-m", "tests.stubs.embed_child")

if __name__ == "__main__":
    main(command=CHILD)
