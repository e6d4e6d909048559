"""mem0 (`pip install mem0ai`) beside us: its own pgvector store in the same Postgres, `infer=False`, vectors given.

It is no dependency of ours: where it is not installed, its columns stay empty and say so.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import psycopg

ABSENT: Final = "mem0ai is not installed: its figures are left out (make bench installs it)."
_TABLE: Final = "bench_mem0"

Embed = Callable[[str], Sequence[float]]


def is_installed() -> bool:
    return importlib.util.find_spec("mem0") is not None


class Mem0:
    """mem0's `Memory`, asking nobody: `embed` gives every vector, no model is ever called, nothing is reported."""

    def __init__(self, dsn: str, folder: Path, *, dimensions: int, embed: Embed) -> None:
        # Read when the package is loaded.
        os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": str(folder / "mem0"), "HF_HUB_OFFLINE": "1"}
        memory = importlib.import_module("mem0").Memory
        base: Any = importlib.import_module("mem0.embeddings.base").EmbeddingBase

        class Given(base):
            def embed(self, text: str, memory_action: str | None = None) -> list[float]:  # noqa: ARG002
                return list(embed(text))

        # Clients must be named even so; nobody listens there.
        nobody = {
            "provider": "openai",
            "config": {"api_key": "x", "openai_base_url": "http://127.0.0.1:9/v1"},
        }
        store = {"connection_string": dsn, "collection_name": _TABLE, "embedding_model_dims": dimensions}
        self._memory: Any = memory.from_config(
            {
                "vector_store": {"provider": "pgvector", "config": store},
                "embedder": nobody,
                "llm": nobody,
                "history_db_path": str(folder / "mem0-history.db"),
            }
        )
        self._memory.embedding_model = Given()

    def add(self, text: str, *, who: str, key: str) -> None:
        self._memory.add([{"role": "user", "content": text}], user_id=who, infer=False, metadata={"key": key})

    def ranked(self, query: str, *, who: str, limit: int) -> list[str]:
        """Keys of what it finds, best first."""
        found = self._memory.search(query, filters={"user_id": who}, top_k=limit, threshold=0.0)
        return [one["metadata"]["key"] for one in found["results"]]

    def fill(self, owner: psycopg.Connection[Any], select: str) -> None:
        """Puts many rows into its store at once; `select` gives vector, text, owner and key of each.

        Its index of vectors is made afterwards, as it defines it.
        """
        self._memory.vector_store.create_col()
        made = owner.execute("SELECT pg_get_indexdef(%s::regclass)", [f"{_TABLE}_hnsw_idx"]).fetchone()
        assert made
        owner.execute(f"DROP INDEX {_TABLE}_hnsw_idx")
        owner.execute(
            f"INSERT INTO {_TABLE} (id, vector, payload) SELECT gen_random_uuid(), vector, jsonb_build_object("
            "'data', text, 'text_lemmatized', text, 'hash', md5(text), 'user_id', who, 'key', key,"
            f" 'created_at', now()) FROM ({select}) AS given"
        )
        owner.execute(made[0])
        owner.execute(f"ANALYZE {_TABLE}")

    def close(self) -> None:
        """Gives its connections back, so that the database can stop."""
        self._memory.vector_store.connection_pool.close()
