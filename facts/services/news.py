"""What the facts tell those who work on them later."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.db import transaction

from workspaces import outbox
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

CHECK: Final = "facts.check"
"""The topic of looking for contradictions: what of a bucket was learned and not yet held against the rest."""
PROJECT: Final = "facts.project"
"""The topic of reading a file for facts."""


def ask_for_check(bucket: BucketRef) -> None:
    """After the commit, in a transaction of its own: a lane's lock must not be waited for while facts are held."""
    transaction.on_commit(partial(_emit, bucket, CHECK, "waiting"), robust=True)


def ask_for_projection(bucket: BucketRef, file_id: int) -> None:
    """As above, for files: they are locked after lanes."""
    transaction.on_commit(partial(_emit, bucket, PROJECT, f"file:{file_id}", file=file_id), robust=True)


def _emit(bucket: BucketRef, topic: str, key: str, **payload: int) -> None:
    with tenant(bucket):
        outbox.emit(bucket, topic, key=key, payload=payload)
