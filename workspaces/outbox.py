"""Durable work: a change and the news of it commit together; each message is worked exactly once.

`emit` is called in the caller's transaction. A worker claims a lane (one bucket × family of work) with a lease
and a token, loads its first due message and hands it to the topic's handler. The handler thinks outside any
transaction and applies inside `delivery.finishing()`, whose transaction deletes the message and rolls back when
the lease was lost meanwhile. Failures back off, then park.

Celery only carries nudges; the sweep (a thread of the worker process) finds what they missed.
"""

from __future__ import annotations

import json
import os
import random
import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

import structlog
from django.db import DatabaseError, connection, transaction
from django.db.models import F, Q
from django.utils import timezone

from integrations.clients.errors import ProviderError
from workspaces.logic.backoff import PARK_AFTER, delay_after
from workspaces.models import Lane, OutboxMessage
from workspaces.tenancy import Door, door, tenant
from workspaces.types import BucketRef, Reach

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(seconds=120)
"""How long a lane is held without news of its worker; longer work renews it (`delivery.renew`)."""


class LeaseLostError(Exception):
    """Another worker has the lane; whatever was computed is not applied."""


class ParkError(Exception):
    """Raised by a handler for a message that no retry will cure; it is parked at once, visible in the admin."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A kind of message. `family` names the lane: work of one family in one bucket goes in order."""

    name: str
    family: str
    handle: Callable[[Delivery], None]


_TOPICS: dict[str, Topic] = {}


def register(name: str, *, family: str, handle: Callable[[Delivery], None]) -> None:
    """Adds a topic; called at start from an app's `handlers`. A name is registered once."""
    if name in _TOPICS:
        raise ValueError(f"The topic {name!r} is registered twice.")
    _TOPICS[name] = Topic(name, family, handle)


def topics() -> Mapping[str, Topic]:
    """All topics, by name."""
    return dict(sorted(_TOPICS.items()))


def emit(
    bucket: BucketRef,
    topic: str,
    *,
    key: str = "",
    payload: Mapping[str, Any] | None = None,
    due_at: datetime | None = None,
    part: str = "",
) -> None:
    """Commits work together with the caller's change. Must run inside its `tenant(…)` transaction.

    With a `key`, it joins a waiting message of the same topic and key: the generation goes up, the earlier due
    time and the newer payload win. Locks the lane's row until the commit, so that ids follow commit order.
    `part` names a lane of its own within the topic's family: what fails there holds up nothing beside it.
    """
    if not connection.in_atomic_block:
        raise RuntimeError("emit() outside a transaction: the change and its news must commit together.")
    family = _TOPICS[topic].family + (f".{part}" if part else "")
    now = timezone.now()
    due = due_at or now
    with connection.cursor() as cursor:
        cursor.execute(_LANE_UPSERT, [bucket.workspace_id, bucket.id, family, due])
        lane_id = cursor.fetchone()[0]
    values = OutboxMessage(
        workspace_id=bucket.workspace_id,
        bucket_id=bucket.id,
        lane_id=lane_id,
        topic=topic,
        key=key,
        payload=dict(payload or {}),
        due_at=due,
        created_at=now,
    )
    waiting = OutboxMessage.unscoped.filter(lane_id=lane_id, topic=topic, key=key, parked_at=None)
    if key and (old := waiting.first()) is not None:
        # The lane's row is locked: nobody else can have changed or finished it in between.
        # One that failed keeps its wait: news must not hammer what is away, and park it before its time.
        waiting.filter(pk=old.pk).update(
            generation=F("generation") + 1,
            due_at=old.due_at if old.attempts else min(old.due_at, due),
            payload=old.payload | values.payload,
        )
    else:
        values.save(force_insert=True)
    transaction.on_commit(nudge, robust=True)


_LANE_UPSERT: Final = """
INSERT INTO workspaces_lane (workspace_id, bucket_id, family, due_at, lease_by) VALUES (%s, %s, %s, %s, '')
ON CONFLICT (bucket_id, family) DO UPDATE SET due_at = least(workspaces_lane.due_at, excluded.due_at)
RETURNING id
"""


_nudge: list[Callable[[], None]] = []


def on_nudge(send: Callable[[], None]) -> None:
    """Says how workers are told that something waits. Joined by `workspaces.tasks` at start."""
    _nudge[:] = [send]


def nudge() -> None:
    """Tells workers that something may be due; a nudge that is lost costs a second, since the sweep looks."""
    for send in _nudge:
        send()


@dataclass(slots=True)
class Delivery:
    """A claimed message, as its handler sees it."""

    bucket_id: int
    workspace_id: int
    topic: str
    key: str
    payload: dict[str, Any]
    attempts: int
    message_id: int
    generation: int
    lane_id: int
    token: uuid.UUID
    is_finished: bool = field(default=False, init=False)

    @property
    def is_last_try(self) -> bool:
        """Whether a failure now parks the message."""
        return self.attempts + 1 >= PARK_AFTER

    @contextmanager
    def step(self, whose: BucketRef | Reach) -> Iterator[None]:
        """A transaction of the handler's own that commits only while the lane is still held."""
        with tenant(whose):
            self._fence()
            yield

    @contextmanager
    def finishing(self, whose: BucketRef | Reach) -> Iterator[None]:
        """The last transaction: applies and deletes the message, both or neither.

        News that came during the run keeps the message, so that it is worked again.
        """
        with tenant(whose):
            self._fence()
            yield
            row = OutboxMessage.unscoped.filter(pk=self.message_id)
            is_gone = row.filter(generation=self.generation).delete()[0]
            if not is_gone and not row.update(attempts=0):
                raise LeaseLostError
        self.is_finished = True

    @contextmanager
    def deferring(self, whose: BucketRef | Reach, *, until: datetime) -> Iterator[None]:
        """Like `finishing`, but the message stays and falls due then. Not a failure."""
        with tenant(whose):
            self._fence()
            yield
            row = OutboxMessage.unscoped.filter(pk=self.message_id, generation=self.generation)
            row.update(due_at=until, attempts=0)
        self.is_finished = True

    def note(self, **values: Any) -> None:
        """Writes into the message's payload, inside a `step`: what a retry must know."""
        self.payload |= values
        with connection.cursor() as cursor:
            # Merged by Postgres: news that came meanwhile may have written there too.
            cursor.execute(
                "UPDATE workspaces_outboxmessage SET payload = payload || %s::jsonb WHERE id = %s",
                [json.dumps(values), self.message_id],
            )

    def renew(self) -> None:
        """Holds the lane for another `LEASE`; raises `LeaseLostError`. Long work calls it between its steps."""
        with door(Door.OUTBOX):
            held = Lane.unscoped.filter(pk=self.lane_id, lease_token=self.token)
            if not held.update(lease_until=timezone.now() + LEASE):
                raise LeaseLostError

    def _fence(self) -> None:
        lane = Lane.unscoped.select_for_update(no_key=True).filter(pk=self.lane_id, lease_token=self.token)
        if not lane.exists():
            raise LeaseLostError


_CLAIM: Final = """
UPDATE workspaces_lane SET lease_token = %(token)s, lease_until = %(until)s, lease_by = %(holder)s
WHERE id = (
  SELECT id FROM workspaces_lane
  WHERE due_at <= %(now)s AND (lease_until IS NULL OR lease_until < %(now)s)
  ORDER BY due_at LIMIT 1 FOR UPDATE SKIP LOCKED
) RETURNING id
"""


def work_one(*, now: datetime | None = None, overdue_by: float = 0.0) -> bool:
    """Claims the lane that has been due longest and works its first due message; False when none is due.

    Looks only at lanes due for at least `overdue_by` seconds: the sweep leaves the rest to who was nudged.
    `now` is for tests that move the clock. Never raises for what a handler does.
    """
    claimed = _claim((now or timezone.now()) - timedelta(seconds=overdue_by))
    if claimed is None:
        return False
    lane_id, token, delivery = claimed
    if delivery is not None:
        _deliver(delivery)
    _release(lane_id, token)
    return True


def _claim(now: datetime) -> tuple[int, uuid.UUID, Delivery | None] | None:
    token = uuid.uuid4()
    with door(Door.OUTBOX):
        with connection.cursor() as cursor:
            cursor.execute(
                _CLAIM, {"token": token, "now": now, "until": timezone.now() + LEASE, "holder": holder()}
            )
            row = cursor.fetchone()
        if row is None:
            return None
        head = _head(row[0], now)
    if head is None or head.due_at > now:
        return row[0], token, None
    return (
        row[0],
        token,
        Delivery(
            bucket_id=head.bucket_id,
            workspace_id=head.workspace_id,
            topic=head.topic,
            key=head.key,
            payload=head.payload,
            attempts=head.attempts,
            message_id=head.pk,
            generation=head.generation,
            lane_id=row[0],
            token=token,
        ),
    )


def _head(lane_id: int, now: datetime) -> OutboxMessage | None:
    """The message whose turn it is. One that failed keeps its place until it is done or parked; one that was
    only put off lets others pass."""
    waiting = OutboxMessage.unscoped.filter(lane_id=lane_id, parked_at=None)
    return waiting.filter(Q(due_at__lte=now) | Q(attempts__gt=0)).order_by("pk").first()


def _deliver(delivery: Delivery) -> None:
    topic = _TOPICS.get(delivery.topic)
    try:
        if topic is None:
            raise ParkError(f"No handler for the topic {delivery.topic!r}.")
        with _renewing(delivery):
            topic.handle(delivery)
        if not delivery.is_finished:
            raise ParkError("The handler ended without finishing its message.")
    except LeaseLostError:
        log.warning("outbox.lease_lost", topic=delivery.topic, message=delivery.message_id)
    except Exception as error:  # noqa: BLE001 - the outbox's one door: it is recorded, retried, then parked
        told = {"reason": str(error)} if isinstance(error, ProviderError) else {"exc_info": error}
        log.warning("outbox.failed", topic=delivery.topic, message=delivery.message_id, **told)
        _record_failure(delivery, error)


@contextmanager
def _renewing(delivery: Delivery) -> Iterator[None]:
    """Renews the lease from a thread of its own, for as long as the handler thinks."""
    done = threading.Event()

    def renew() -> None:
        while not done.wait(LEASE.total_seconds() / 3):
            try:
                delivery.renew()
            except (LeaseLostError, DatabaseError) as error:
                # The fence decides in the end; a renewal that fails only lets the lease run out.
                log.warning("outbox.not_renewed", message=delivery.message_id, reason=str(error))
            finally:
                connection.close()

    thread = threading.Thread(target=renew, name="outbox-lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()


def holder() -> str:
    """This process, as the holder of a lease: `host:pid`."""
    return f"{socket.gethostname()}:{os.getpid()}"


def free_dead_leases() -> int:
    """Ends the leases of processes of this machine that live no more; returns how many.

    So that a worker that was killed costs a second, not the rest of its lease. Those of other machines run out.
    """
    here = socket.gethostname() + ":"
    with door(Door.OUTBOX):
        held = Lane.unscoped.filter(lease_by__startswith=here).values_list("lease_by", flat=True).distinct()
        dead = [name for name in held if not _is_alive(int(name.removeprefix(here)))]
        return Lane.unscoped.filter(lease_by__in=dead).update(lease_token=None, lease_until=None, lease_by="")


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _record_failure(delivery: Delivery, error: Exception) -> None:
    now = timezone.now()
    attempts = delivery.attempts + 1
    is_parked = isinstance(error, ParkError) or attempts >= PARK_AFTER
    with door(Door.OUTBOX):
        if not Lane.unscoped.filter(pk=delivery.lane_id, lease_token=delivery.token).exists():
            return
        OutboxMessage.unscoped.filter(pk=delivery.message_id).update(
            attempts=attempts,
            last_error=f"{type(error).__name__}: {error}"[:2000],
            due_at=now + delay_after(attempts, spread=random.random()),
            parked_at=now if is_parked else None,
        )


def _release(lane_id: int, token: uuid.UUID) -> None:
    with door(Door.OUTBOX):
        # The lane's lock first, so that a message emitted meanwhile is either seen here or sets `due_at` after.
        held = Lane.unscoped.select_for_update().filter(pk=lane_id, lease_token=token)
        if held.first() is None:
            return
        waiting = OutboxMessage.unscoped.filter(lane_id=lane_id, parked_at=None).order_by("pk")
        failing = waiting.filter(attempts__gt=0).first()
        due = waiting.filter(Q(pk__lte=failing.pk) if failing else Q()).order_by("due_at").first()
        held.update(lease_token=None, lease_until=None, lease_by="", due_at=due.due_at if due else None)


def drain(*, limit: int = 10_000, now: datetime | None = None) -> int:
    """Works until nothing is due, at most `limit` messages; returns how many lanes were worked."""
    for done in range(limit):
        if not work_one(now=now):
            return done
    return limit


def rerun(message_id: int) -> None:
    """Puts a parked (or waiting) message back at the front of its lane. For the operator; opens its own door.

    Where a newer message of the same key waits, the parked one joins it: its news is the same.
    """
    now = timezone.now()
    with door(Door.OPERATOR):
        message = OutboxMessage.unscoped.select_related("lane").get(pk=message_id)
        Lane.unscoped.select_for_update().get(pk=message.lane_id)
        twin = OutboxMessage.unscoped.filter(
            lane_id=message.lane_id, topic=message.topic, key=message.key, parked_at=None
        ).exclude(pk=message_id)
        if message.key and twin.exists():
            twin.update(generation=F("generation") + 1, due_at=now)
            message.delete()
        else:
            OutboxMessage.unscoped.filter(pk=message_id).update(
                parked_at=None, attempts=0, due_at=now, generation=F("generation") + 1
            )
        Lane.unscoped.filter(pk=message.lane_id).update(due_at=now)
        transaction.on_commit(nudge, robust=True)


@dataclass(frozen=True, slots=True)
class Depth:
    """What waits: due messages by topic, the age in seconds of the oldest due one, and how many are parked."""

    due: Mapping[str, int]
    oldest_seconds: float
    parked: int


def depth(*, now: datetime) -> Depth:
    """Counts what is due; every topic is there, 0 included. Opens its own door."""
    due = dict.fromkeys(_TOPICS, 0)
    parked = 0
    with door(Door.METRICS), connection.cursor() as cursor:
        cursor.execute(
            "SELECT topic, count(*) FILTER (WHERE parked_at IS NULL AND due_at <= %(now)s),"
            " count(*) FILTER (WHERE parked_at IS NOT NULL) FROM workspaces_outboxmessage GROUP BY topic",
            {"now": now},
        )
        for topic, count, topic_parked in cursor.fetchall():
            due[topic] = count
            parked += topic_parked
        # Lanes, not messages: one that waits for its lane's failing head, or is being worked, is no backlog.
        cursor.execute(
            "SELECT min(due_at) FROM workspaces_lane"
            " WHERE due_at <= %(now)s AND (lease_until IS NULL OR lease_until < %(now)s)",
            {"now": now},
        )
        oldest = cursor.fetchone()[0] or now
    return Depth(due=due, oldest_seconds=(now - oldest).total_seconds(), parked=parked)
