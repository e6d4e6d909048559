"""Loaded before Django's settings are read: a data folder of this run's own, shared by its workers, and no key."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

_KEPT = ("AWS_CA_BUNDLE",)
_OURS = ("MATE_", "AWS_", "OPENAI_", "ANTHROPIC_")
_NAMES = ("DATABASE_URL", "DATABASE_OWNER_URL", "CELERY_BROKER_URL", "SECRET_KEY", "OPENCLAW_BASE")

for _name in list(os.environ):
    if _name in _NAMES or (_name.startswith(_OURS) and _name not in _KEPT):
        del os.environ[_name]

ROOT = Path(os.environ.setdefault("TEST_DATA_DIR", tempfile.mkdtemp(prefix="mate-test-")))
os.environ["MATE_DATA_DIR"] = str(ROOT)
# Words alone, unless a test says otherwise: no process of an embedder runs beside the tests.
os.environ["MATE_EMBEDDER"] = "none"
