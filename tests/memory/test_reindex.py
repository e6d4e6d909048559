"""The index can be made anew from what it stands for, and vectors by another embedder stand beside the old."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from integrations.clients.errors import ProviderError
from memory.management.commands import reembed
from memory.services.reindex import reindex_bucket
from recall.models import BucketCount, Record, Speaker, Vector
from recall.services.index import put_units
from recall.types import RecordKind, Unit
from tests import factories
from tests.memory.test_embedding import Fake, ask
from tests.memory.test_embedding import embedder as embedder  # noqa: PLC0414 - a fixture
from tests.memory.test_extract import tell
from workspaces.outbox import drain

SHOWN = (
    "kind",
    "source_id",
    "part",
    "thread",
    "position",
    "speaker",
    "at",
    "lexemes",
    "size",
    "content_hash",
)


def index() -> list[tuple]:
    return sorted(Record.objects.values_list(*SHOWN), key=str)


def test_what_is_made_anew_is_what_was_there(committed, embedder):
    world = factories.acme()
    opened = tell(world)
    tell(world, ("I keep bees.", "", "Nice.", "They sting."), conversation="c2", who="sven")
    drain()
    before, vectors = index(), set(Vector.objects.values_list("pk", flat=True))
    counts = dict(BucketCount.objects.values_list("pk", "records"))
    call_command("reindex")
    assert index() == before
    assert set(Vector.objects.values_list("pk", flat=True)) == vectors
    assert {pk: n for pk, n in BucketCount.objects.values_list("pk", "records") if n} == {
        pk: n for pk, n in counts.items() if n
    }
    Record.objects.all().delete()
    Speaker.objects.all().delete()
    call_command("reindex")
    assert index() == before
    drain()
    assert Vector.objects.count() == len(before)
    assert "peanuts" in ask(world, "peanuts", kinds=["message"])["results"][0]["text"]
    assert opened.own.id in dict(BucketCount.objects.values_list("pk", "records"))


def test_what_stands_for_nothing_goes_and_what_is_wrong_is_put_right(committed, embedder):
    world = factories.acme()
    opened = tell(world)
    drain()
    before = index()
    ghost = Unit(RecordKind.MESSAGE, 9_999_999, 0, "a ghost", 9_999_999, 0, speaker="Ghost")
    put_units(opened.own.id, [ghost, Unit(RecordKind.FILE, 9_999_998, 1, "a ghost", 9_999_998, 0)])
    spoilt = (
        Record.objects.filter(kind="message", bucket_id=opened.own.id).exclude(source_id=9_999_999).first()
    )
    Record.objects.filter(pk=spoilt.pk).update(content_hash="0" * 32, size=1, position=77)
    BucketCount.objects.update(records=12345)
    count = reindex_bucket(opened.own.id)
    assert index() == before
    assert (
        BucketCount.objects.get(pk=opened.own.id).records
        == count
        == Record.objects.filter(bucket_id=opened.own.id).count()
    )
    assert not Speaker.objects.filter(name="Ghost").exists()
    assert not Vector.objects.filter(record=spoilt.pk).exists()  # its text was another


def test_another_embedder_is_made_beside_and_the_old_is_dropped(
    committed, embedder, monkeypatch, settings, capsys
):
    world = factories.acme()
    tell(world)
    drain()
    count = Record.objects.count()
    other = Fake()
    other.name, other.dimensions = "other", 3
    monkeypatch.setattr(other, "_vector", lambda _text: [0.0, 0.6, 0.8])
    known = {"fake": embedder, "openai:other": other}
    monkeypatch.setattr(reembed, "embedder_named", lambda name, _timeout: known.get(name))
    call_command("reembed", "openai:other")
    assert (
        Vector.objects.filter(embedder="other").count()
        == Vector.objects.filter(embedder="fake").count()
        == count
    )
    assert "MATE_EMBEDDER=openai:other" in capsys.readouterr().out
    assert "peanuts" in ask(world, "nuts", kinds=["message"])["results"][0]["text"]  # the old one serves
    with pytest.raises(CommandError, match="in use"):
        call_command("reembed", "fake", "--drop")
    settings.MATE_EMBEDDER = "openai:other"
    call_command("reembed", "fake", "--drop")
    assert set(Vector.objects.values_list("embedder", flat=True)) == {"other"}


def test_an_embedder_that_goes_away_leaves_what_was_made(committed, embedder, monkeypatch):
    world = factories.acme()
    tell(world, [f"I visited town number {n}." for n in range(70)])
    other, real = Fake(), Fake.embed_passages
    other.name = "other"

    def embed(texts):
        if len(other.passages) >= 64:
            raise ProviderError("It is away.", retryable=True, kind="unavailable")
        return real(other, texts)

    monkeypatch.setattr(other, "embed_passages", embed)
    monkeypatch.setattr(reembed, "embedder_named", lambda _name, _timeout: other)
    with pytest.raises(CommandError, match="run it again"):
        call_command("reembed", "openai:other")
    made = Vector.objects.filter(embedder="other").count()
    assert 0 < made < Record.objects.count()
    monkeypatch.setattr(other, "embed_passages", lambda texts: real(other, texts))
    call_command("reembed", "openai:other")
    assert Vector.objects.filter(embedder="other").count() == Record.objects.count()


@pytest.mark.parametrize("name", ["none", "moon", "openai:"])
def test_a_name_of_no_embedder_is_refused(db, name):
    with pytest.raises(CommandError, match=name):
        call_command("reembed", name)
