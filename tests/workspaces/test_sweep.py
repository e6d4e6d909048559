"""The sweep lives through what happens to it."""

from __future__ import annotations

import threading

from django.db import InterfaceError

from tests import factories
from workspaces import outbox, sweep
from workspaces.outbox import emit, register
from workspaces.tenancy import tenant

WAIT_S = 3.0


def test_the_worker_lives_while_the_sweep_works_something_long(committed, monkeypatch):
    world = factories.acme()
    beaten = threading.Event()
    working = threading.Event()
    done = threading.Event()
    found = []

    def handle(delivery):
        working.set()
        found.append(beaten.wait(WAIT_S))
        with delivery.finishing(world.team):
            pass
        done.set()

    real = sweep.beat

    def beat(kind):
        real(kind)
        if working.is_set():
            beaten.set()

    monkeypatch.setattr(sweep, "beat", beat)
    monkeypatch.setattr(outbox, "_TOPICS", dict(outbox._TOPICS))
    register("test.long", family="test", handle=handle)
    with tenant(world.team):
        emit(world.team, "test.long")
    swept = sweep.Sweep(every=0.02, beat_every=0.02)
    swept.start()
    assert done.wait(2 * WAIT_S)
    swept.stop()
    swept.join()
    assert found == [True]


def test_the_sweep_outlives_every_error_of_the_database(committed, monkeypatch):
    looked = threading.Event()
    errors = [InterfaceError("connection already closed")]

    def work_one(**_options):
        if errors:
            raise errors.pop()
        looked.set()
        return False

    monkeypatch.setattr(outbox, "work_one", work_one)
    monkeypatch.setattr(threading, "excepthook", lambda _args: None)
    swept = sweep.Sweep(every=0.02, beat_every=0.02)
    swept.start()
    is_alive = looked.wait(WAIT_S)
    swept.stop()
    swept.join()
    assert is_alive
