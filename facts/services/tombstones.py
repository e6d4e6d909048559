"""What was forgotten and must not be learned again."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from django.conf import settings

from facts.logic.normal import normal
from facts.models import Tombstone
from workspaces.types import BucketRef


def keyed_fingerprint(statement: str) -> str:
    """32 hex digits that stand for a statement, and tell nothing to whoever lacks the server's secret."""
    key = hashlib.sha256(b"tombstone:" + settings.SECRET_KEY.encode()).digest()
    return hmac.new(key, normal(statement).encode(), hashlib.sha256).hexdigest()[:32]


def forgotten_among(bucket: BucketRef, statements: Sequence[str]) -> set[int]:
    """Which of these were forgotten, by their places. Inside `tenant(…)`; one query."""
    marks = [keyed_fingerprint(statement) for statement in statements]
    dead = set(
        Tombstone.objects.of(bucket).filter(fingerprint__in=marks).values_list("fingerprint", flat=True)
    )
    return {index for index, mark in enumerate(marks) if mark in dead}


def revive(bucket: BucketRef, statement: str) -> int:
    """Takes away the tombstone that keeps a statement out: a person wants it known again. How many there were."""
    rows = Tombstone.objects.of(bucket).filter(fingerprint=keyed_fingerprint(statement))
    return int(rows.delete()[0])
