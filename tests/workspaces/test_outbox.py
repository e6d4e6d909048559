"""The outbox: nothing lost, nothing done twice, order within a lane."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone

from tests import factories
from workspaces import outbox
from workspaces.logic.backoff import PARK_AFTER, delay_after
from workspaces.models import File, Lane, OutboxMessage
from workspaces.outbox import LeaseLostError, ParkError, drain, emit, register, rerun, work_one
from workspaces.tenancy import Door, door, tenant


@pytest.fixture
def seen():
    """What the handlers of the test topics did, in order."""
    return []


@pytest.fixture
def topic(seen, monkeypatch):
    """Registers `test.work`, whose handler does what the test puts into `topic.handle`."""

    class Handler:
        bucket = None

        def __init__(self):
            self.handle = self.finish

        def finish(self, delivery):
            with delivery.finishing(self.bucket):
                seen.append(delivery.payload.get("n"))

        def __call__(self, delivery):
            self.handle(delivery)

    handler = Handler()
    monkeypatch.setattr(outbox, "_TOPICS", dict(outbox._TOPICS))
    register("test.work", family="test", handle=handler)
    return handler


def send(bucket, n=None, **options):
    with tenant(bucket):
        emit(bucket, "test.work", payload={"n": n}, **options)


def waiting():
    with door(Door.OPERATOR):
        return list(OutboxMessage.unscoped.order_by("pk"))


def test_a_message_is_worked_and_gone(acme, topic, seen):
    topic.bucket = acme.team
    send(acme.team, 1)
    assert drain() == 1
    assert seen == [1]
    assert waiting() == []
    assert drain() == 0


def test_messages_of_a_lane_are_worked_in_order(acme, topic, seen):
    topic.bucket = acme.team
    for n in range(5):
        send(acme.team, n)
    drain()
    assert seen == [0, 1, 2, 3, 4]


def test_a_change_that_is_rolled_back_sends_no_news(acme, topic, seen):
    topic.bucket = acme.team

    def broken():
        with tenant(acme.team):
            emit(acme.team, "test.work")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert drain() == 0


def test_news_outside_a_transaction_is_refused(committed, topic):
    world = factories.acme()
    with pytest.raises(RuntimeError, match="commit together"):
        emit(world.team, "test.work")


def test_a_key_coalesces_what_waits_and_counts_the_generation(acme, topic, seen):
    topic.bucket = acme.team
    send(acme.team, 1, key="same")
    send(acme.team, 2, key="same")
    send(acme.team, 3, key="other")
    assert [(one.generation, one.payload["n"]) for one in waiting()] == [(2, 2), (1, 3)]
    drain()
    assert seen == [2, 3]


def test_news_during_a_run_causes_another_run(acme, topic, seen):
    topic.bucket = acme.team

    def handle(delivery):
        if not seen:
            send(acme.team, 2, key="same")
        topic.finish(delivery)

    topic.handle = handle
    send(acme.team, 1, key="same")
    drain()
    assert seen == [1, 2]
    assert waiting() == []


def test_a_failure_keeps_the_message_and_its_place(acme, topic, seen):
    topic.bucket = acme.team

    def handle(delivery):
        if delivery.payload["n"] == 1 and not delivery.attempts:
            raise ValueError("broken once")
        topic.finish(delivery)

    topic.handle = handle
    send(acme.team, 1)
    send(acme.team, 2)
    drain()
    assert seen == []
    assert waiting()[0].attempts == 1
    assert "broken once" in waiting()[0].last_error
    drain(now=timezone.now() + delay_after(1, spread=1.0))
    assert seen == [1, 2]


def test_a_message_that_keeps_failing_is_parked_and_the_lane_goes_on(acme, topic, seen):
    topic.bucket = acme.team

    def handle(delivery):
        if delivery.payload["n"] == 1:
            raise ValueError("always broken")
        topic.finish(delivery)

    topic.handle = handle
    send(acme.team, 1)
    send(acme.team, 2)
    for _ in range(PARK_AFTER):
        drain(now=timezone.now() + timedelta(hours=1))
    assert seen == [2]
    [parked] = waiting()
    assert parked.parked_at is not None
    assert outbox.depth(now=timezone.now()).parked == 1


def test_a_parked_message_can_be_run_again(acme, topic, seen):
    topic.bucket = acme.team
    topic.handle = lambda delivery: (_ for _ in ()).throw(ParkError("no cure"))
    send(acme.team, 1, key="same")
    drain()
    [parked] = waiting()
    assert parked.parked_at is not None
    topic.handle = topic.finish
    rerun(parked.pk)
    drain()
    assert seen == [1]


def test_running_a_parked_message_again_joins_the_one_that_waits(acme, topic, seen):
    topic.bucket = acme.team
    topic.handle = lambda delivery: (_ for _ in ()).throw(ParkError("no cure"))
    send(acme.team, 1, key="same")
    drain()
    send(acme.team, 2, key="same")
    topic.handle = topic.finish
    rerun(waiting()[0].pk)
    drain()
    assert seen == [2]
    assert waiting() == []


def test_a_message_put_off_lets_others_pass_and_comes_back(acme, topic, seen):
    topic.bucket = acme.team
    later = timezone.now() + timedelta(minutes=5)

    def handle(delivery):
        if delivery.payload["n"] == 1 and not seen:
            with delivery.deferring(acme.team, until=later):
                seen.append("put off")
            return
        topic.finish(delivery)

    topic.handle = handle
    send(acme.team, 1)
    send(acme.team, 2)
    drain()
    assert seen == ["put off", 2]
    drain(now=later + timedelta(seconds=1))
    assert seen == ["put off", 2, 1]


def test_a_worker_that_lost_its_lease_changes_nothing(acme, topic, seen):
    topic.bucket = acme.team

    def handle(delivery):
        with door(Door.OUTBOX):  # Another worker takes over while this one thinks.
            Lane.unscoped.update(lease_token=None, lease_until=None)
        topic.finish(delivery)

    topic.handle = handle
    send(acme.team, 1)
    work_one()
    assert len(waiting()) == 1
    with tenant(acme.team):
        assert not File.objects.of(acme.team).filter(name="never.md").exists()
    topic.handle = topic.finish
    drain(now=timezone.now() + timedelta(hours=1))
    assert seen[-1] == 1


def test_what_a_fenced_step_wrote_is_rolled_back(acme, topic, seen):
    topic.bucket = acme.team

    def handle(delivery):
        with door(Door.OUTBOX):
            Lane.unscoped.update(lease_token=None)
        with pytest.raises(LeaseLostError), delivery.step(acme.team):
            seen.append("must not get here")
        raise LeaseLostError

    topic.handle = handle
    send(acme.team, 1)
    work_one()
    assert seen == []


def test_a_handler_that_does_not_finish_is_parked_with_the_reason(acme, topic):
    topic.handle = lambda delivery: None
    send(acme.team, 1)
    drain()
    assert "without finishing" in waiting()[0].last_error
    assert waiting()[0].parked_at is not None


def test_an_unknown_topic_is_parked(acme, topic):
    send(acme.team, 1)
    del outbox._TOPICS["test.work"]
    drain()
    assert "No handler" in waiting()[0].last_error


def test_leases_of_dead_processes_are_freed_and_those_of_the_living_kept(acme, topic, seen):
    topic.bucket = acme.team
    host = outbox.holder().rpartition(":")[0]
    dead, alive, elsewhere = f"{host}:999999999", outbox.holder(), "another-machine:1"
    send(acme.team, 1)
    for name, freed in ((alive, 0), (elsewhere, 0), (dead, 1)):
        with door(Door.OPERATOR):
            Lane.unscoped.update(lease_by=name, lease_until=timezone.now() + timedelta(hours=1))
        assert outbox.free_dead_leases() == freed
    drain()
    assert seen == [1]


def test_depth_counts_what_is_due_for_every_topic(acme, topic):
    topic.bucket = acme.team
    send(acme.team, 1)
    send(acme.team, 2, due_at=timezone.now() + timedelta(hours=1))
    depth = outbox.depth(now=timezone.now() + timedelta(seconds=30))
    assert depth.due["test.work"] == 1
    assert depth.due["memory.extract"] == 0
    assert 29 < depth.oldest_seconds < 40


def test_a_renewed_lease_is_longer_and_a_lost_one_cannot_be_renewed(acme, topic, seen):
    topic.bucket = acme.team

    def handle(delivery):
        with door(Door.OUTBOX):
            Lane.unscoped.update(lease_until=timezone.now())
        delivery.renew()
        with door(Door.OUTBOX):
            renewed = Lane.unscoped.get(pk=delivery.lane_id).lease_until
            assert renewed is not None
            assert renewed > timezone.now() + timedelta(seconds=60)
            Lane.unscoped.update(lease_token=None)
        with pytest.raises(LeaseLostError):
            delivery.renew()
        seen.append("checked")

    topic.handle = handle
    send(acme.team, 1)
    work_one()
    assert seen == ["checked"]


def test_many_workers_do_every_message_once_and_in_order(committed, topic):
    world = factories.acme()
    buckets = [world.personal(f"api:{n}") for n in range(4)]
    done: dict[int, list[int]] = {bucket.id: [] for bucket in buckets}

    def handle(delivery):
        bucket = next(one for one in buckets if one.id == delivery.bucket_id)
        with delivery.finishing(bucket):
            done[bucket.id].append(delivery.payload["n"])

    topic.handle = handle
    for n in range(25):
        for bucket in buckets:
            send(bucket, n)

    def work():
        drain()
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert done == {bucket.id: list(range(25)) for bucket in buckets}


def test_ids_follow_commit_order_within_a_lane(committed, topic):
    """A second writer waits for the first: else "second" could be worked while "first" is not yet committed."""
    world = factories.acme()
    entered = threading.Event()
    order: list[str] = []

    def second():
        entered.wait()
        send(world.team, 2)
        order.append("second")
        connection.close()

    other = threading.Thread(target=second)
    other.start()
    with transaction.atomic(), tenant(world.team):
        emit(world.team, "test.work", payload={"n": 1})
        entered.set()
        with connection.cursor() as cursor:  # The other one is seen waiting for the lane's lock.
            for _ in range(2000):
                cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
                if cursor.fetchone()[0]:
                    break
            else:
                pytest.fail("the second writer did not wait")
        order.append("first")
    other.join()
    assert order == ["first", "second"]
    assert [one.payload["n"] for one in waiting() if one.topic == "test.work"] == [1, 2]
