"""The embedded broker: whoever reads finds whole messages."""

from __future__ import annotations

import json
import threading
import uuid
from pathlib import Path

import pytest
from kombu import Connection, Exchange, Queue
from kombu.transport import filesystem

from config import broker


@pytest.fixture
def connection(tmp_path: Path):
    for name in ("queue", "control"):
        (tmp_path / name).mkdir()
    options = {
        "data_folder_in": str(tmp_path / "queue"),
        "data_folder_out": str(tmp_path / "queue"),
        "control_folder": str(tmp_path / "control"),
    }
    with Connection(broker.URL, transport_options=options) as made:
        yield made


@pytest.fixture
def queue(connection):
    # kombu remembers for the whole process which queues were bound: each test has its own.
    name = f"queue-{uuid.uuid4()}"
    return connection.SimpleQueue(Queue(name, Exchange("mate"), routing_key=name))


def test_a_message_arrives_as_it_was_sent(queue):
    queue.put({"n": 1, "text": "记住"})
    message = queue.get(block=False)
    assert message.payload == {"n": 1, "text": "记住"}
    message.ack()
    with pytest.raises(queue.Empty):
        queue.get(block=False)


def test_a_message_that_is_not_yet_written_is_not_there(queue, monkeypatch):
    """Looks for messages in the very moment between a file's making and its writing."""
    found = []

    def look():
        try:
            found.append(queue.get(block=False))
        except queue.Empty:
            found.append(None)

    real_lock, real_dumps = filesystem.lock, json.dumps

    def lock(file, flags):
        real_lock(file, flags)
        if "queue" in str(getattr(file, "name", "")):
            look()

    def dumps(content, **options):
        if isinstance(content, dict) and "body" in content:
            look()
        return real_dumps(content, **options)

    monkeypatch.setattr(filesystem, "lock", lock)
    monkeypatch.setattr(broker.json, "dumps", dumps)
    queue.put({"n": 1})
    assert found == [None]
    assert queue.get(block=False).payload == {"n": 1}


def test_all_who_bind_at_once_are_in_the_table(connection, tmp_path):
    def bind(number):
        with connection.clone() as own:
            channel = own.channel()
            Queue(f"q{number}", Exchange("mate"), routing_key="mate", channel=channel).declare()

    threads = [threading.Thread(target=bind, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = json.loads((tmp_path / "control" / "mate.exchange").read_text())
    assert {row[2] for row in table} >= {f"q{number}" for number in range(8)}
    assert not list((tmp_path / "control").glob("*.draft"))
