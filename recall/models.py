"""Tables of the recall app. They stand outside row-level security, since under a policy Postgres cannot use the
index of words; they hold no text and give ids only, and every read names its buckets."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models
from pgvector.django import HalfVectorField


class Record(models.Model):
    """One recallable unit of a bucket. `lexemes` holds its words, what kind of thing it is, and its bucket."""

    bucket_id = models.BigIntegerField()
    kind = models.CharField(max_length=8)
    source_id = models.BigIntegerField()
    part = models.IntegerField()
    thread = models.BigIntegerField(null=True)
    position = models.IntegerField()
    speaker = models.CharField(max_length=128, blank=True, default="")
    at = models.DateTimeField(null=True)
    lexemes = SearchVectorField()
    size = models.PositiveIntegerField(help_text="Different words.")
    trust = models.FloatField(null=True)
    trusted_at = models.DateTimeField(null=True, help_text="From when trust decays; NULL: it does not.")
    root = models.BigIntegerField(null=True)
    content_hash = models.CharField(max_length=32)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "source_id", "part"], name="record_once"),
            models.CheckConstraint(
                name="record_kind", condition=models.Q(kind__in=["message", "file", "entry", "fact"])
            ),
        ]
        indexes = [
            GinIndex(fields=["lexemes"], name="record_words", fastupdate=False),
            models.Index(fields=["bucket_id"], name="record_of_bucket"),
            models.Index(fields=["kind", "thread", "position"], name="record_neighbours"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.source_id}/{self.part}"


class Vector(models.Model):
    """What an embedder made of a record; never updated in place.

    `store` is empty where the value stands here; else the name of the store that holds it, or `NOWHERE` for a record
    that has nothing to embed.
    """

    NOWHERE = "none"

    record = models.ForeignKey(Record, on_delete=models.CASCADE, related_name="vectors")
    bucket_id = models.BigIntegerField()
    kind = models.CharField(
        max_length=8, help_text="Its record's, so that a search for one kind reads no other table."
    )
    embedder = models.CharField(max_length=128)
    store = models.CharField(max_length=255, blank=True, default="", db_default="")
    value = HalfVectorField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["embedder", "record"], name="vector_once"),
            models.CheckConstraint(
                name="vector_somewhere",
                condition=models.Q(store="", value__isnull=False)
                | (~models.Q(store="") & models.Q(value=None)),
            ),
        ]
        indexes = [models.Index(fields=["embedder", "bucket_id"], name="vector_of_bucket")]

    def __str__(self) -> str:
        return f"vector of {self.record_id} by {self.embedder}"


class Gone(models.Model):
    """A vector that another store holds still, and that was deleted here; filled by a trigger."""

    record_id = models.BigIntegerField()
    embedder = models.CharField(max_length=128)
    store = models.CharField(max_length=255)

    def __str__(self) -> str:
        return f"vector of {self.record_id} by {self.embedder} in {self.store}"


class Speaker(models.Model):
    """Who speaks in a bucket's records, so that a question that names one is understood."""

    bucket_id = models.BigIntegerField()
    name = models.CharField(max_length=128)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["bucket_id", "name"], name="speaker_once")]

    def __str__(self) -> str:
        return self.name


class BucketCount(models.Model):
    """How many records a bucket has: the code chooses how to search by it, since the planner chooses wrong."""

    bucket_id = models.BigIntegerField(primary_key=True)
    records = models.IntegerField(default=0)

    def __str__(self) -> str:
        return f"{self.records} records of bucket {self.bucket_id}"
