"""The lock under which a bucket's facts change."""

from __future__ import annotations

from django.db import connection

from workspaces.types import BucketRef

_CLASS = 0x_FAC7


def lock_facts(bucket: BucketRef) -> None:
    """Holds the bucket's facts until the commit: whoever would learn the same waits, and then finds it.

    Taken last: lane, conversation, files, entries, facts. Taken twice in one transaction it is held once.
    """
    with connection.cursor() as cursor:
        # Two 32-bit keys; buckets that share one only wait for each other.
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_CLASS, bucket.id % 2**31])
