"""Asking for the vectors of what was written."""

from __future__ import annotations

from functools import partial
from typing import Final

from django.conf import settings
from django.db import transaction

from workspaces import outbox
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

EMBED: Final = "recall.embed"
"""The topic of embedding: what has no vector yet, of one bucket."""


def ask_for_vectors(bucket: BucketRef) -> None:
    """After the commit, in a transaction of its own: the lane's lock must not be held while files are.

    Should the process die in between, the next write of the bucket asks again: what has no vector is known.
    """
    if settings.MATE_EMBEDDER != "none":
        transaction.on_commit(partial(_emit, bucket), robust=True)


def _emit(bucket: BucketRef) -> None:
    with tenant(bucket):
        outbox.emit(bucket, EMBED, key="waiting")
