"""Making the index anew from what it stands for: after its rules have changed, or when it is in doubt.

Everything goes on meanwhile. Records that are there keep their rows, and their vectors while their text is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from facts.models import Fact
from facts.services.feedback import reapply_votes
from facts.services.indexing import fact_units
from facts.services.locks import lock_facts
from integrations.clients.embed.embedder import Embedder
from memory.models import Conversation, Entry, Message
from memory.services.embedding import make_vectors, store_name
from memory.services.indexing import entry_unit, file_units, message_units
from recall.services.index import (
    keep_sources,
    keep_threads,
    put_units,
    put_vectors,
    recount,
    refresh_thread,
)
from recall.types import RecordKind
from workspaces.access import open_for_job
from workspaces.models import Agent, Bucket, File
from workspaces.queries import owner_name
from workspaces.services.vectors import ask_for_vectors
from workspaces.tenancy import Door, door, tenant
from workspaces.types import BucketRef

MOST_MESSAGES = 1000
"""Messages of one statement."""


def all_buckets() -> list[int]:
    """The ids of every bucket there is."""
    with door(Door.OPERATOR):
        return list(Bucket.unscoped.order_by("pk").values_list("pk", flat=True))


def reindex_bucket(bucket_id: int) -> int:
    """Makes the records of a bucket anew and asks for the vectors they lack; gives how many there are now.

    One transaction for each conversation and file, which is locked: what is deleted meanwhile stays deleted.
    Raises `Bucket.DoesNotExist`.
    """
    bucket, _ = open_for_job(bucket_id)
    with tenant(bucket):
        called = owner_name(bucket.workspace_id, bucket.owner_key) if bucket.owner_key else ""
        agent = Agent.objects.of_workspace(bucket.workspace_id).filter(pk=bucket.agent_id).first()
        conversations = list(Conversation.objects.of(bucket).order_by("pk").values_list("pk", flat=True))
        files = list(File.objects.of(bucket).order_by("pk").values_list("pk", flat=True))
    for pk in conversations:
        with tenant(bucket):
            _reindex_conversation(bucket, pk, called=called, agent=agent.name if agent else "")
    for pk in files:
        with tenant(bucket):
            file = File.objects.of(bucket).select_for_update().filter(pk=pk).first()
            # Nobody but the operator may lock the files that all share.
            file = file or File.objects.of(bucket).filter(pk=pk).first()
            if file is not None:
                refresh_thread(bucket.id, RecordKind.FILE, file.pk, file_units(file))
    _reindex_learned(bucket)
    with tenant(bucket):
        # Of what is there now, not then: what was written meanwhile has its records.
        threads = {
            RecordKind.MESSAGE: Conversation.objects.of(bucket).values_list("pk", flat=True),
            RecordKind.FILE: File.objects.of(bucket).values_list("pk", flat=True),
        }
        for kind, known in threads.items():
            keep_threads(bucket.id, kind, list(known))
        reapply_votes(bucket)
        count = recount(bucket.id)
    ask_for_vectors(bucket)
    return count


def _reindex_learned(bucket: BucketRef) -> None:
    """Facts and entries: what holds has its record, and nothing else has one."""
    with tenant(bucket):
        lock_facts(bucket)
        known = list(
            Fact.objects.of(bucket).filter(retired_at=None).order_by("pk").values_list("pk", flat=True)
        )
        keep_sources(bucket.id, RecordKind.FACT, known)
    for start in range(0, len(known), MOST_MESSAGES):
        with tenant(bucket):
            lock_facts(bucket)
            rows = Fact.objects.of(bucket).filter(
                pk__in=known[start : start + MOST_MESSAGES], retired_at=None
            )
            put_units(bucket.id, fact_units(bucket, list(rows)))
    with tenant(bucket):
        entries = list(Entry.objects.of(bucket).filter(deleted_at=None, revision__gt=0).order_by("pk"))
        keep_sources(bucket.id, RecordKind.ENTRY, [entry.pk for entry in entries])
        put_units(bucket.id, [entry_unit(entry) for entry in entries])


def _reindex_conversation(bucket: BucketRef, pk: int, *, called: str, agent: str) -> None:
    conversation = Conversation.objects.of(bucket).select_for_update().filter(pk=pk).first()
    if conversation is None:
        return
    units = []
    for start, rows in _pages(bucket, conversation):
        units += message_units(conversation, rows, start=start, called=called, agent=agent)
    refresh_thread(bucket.id, RecordKind.MESSAGE, conversation.pk, units)


def _pages(bucket: BucketRef, conversation: Conversation) -> Iterator[tuple[int, list[Message]]]:
    last, start = 0, 0
    messages = Message.objects.of(bucket).filter(conversation=conversation).order_by("pk")
    while rows := list(messages.filter(pk__gt=last)[:MOST_MESSAGES]):
        yield start, rows
        last, start = rows[-1].pk, start + len(rows)


def embed_bucket(bucket_id: int, embedder: Embedder, *, tell: Callable[[int], None]) -> None:
    """Gives every record of a bucket a vector by this embedder, beside those by others; `tell` hears of each batch
    how many. Broken off, the next run goes on. Raises `Bucket.DoesNotExist` and `ProviderError`."""
    bucket, _ = open_for_job(bucket_id)
    while made := make_vectors(bucket, embedder):
        with tenant(bucket):
            put_vectors(bucket.id, embedder=embedder.name, vectors=made, store=store_name())
        tell(len(made))
