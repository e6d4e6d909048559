"""One statement is one fact, whoever says it and how often; what changed is closed and stays readable."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from facts.models import Evidence, Fact, FactRevision, Tombstone
from facts.services.learn import apply_claims, decide_claims, learn
from facts.services.retire import restore_facts, retire_facts
from facts.services.tombstones import keyed_fingerprint
from facts.types import Claim, Outcome, Source, SourceKind
from recall.models import Record
from tests import factories
from tests.factories import World
from workspaces.errors import BadInput, Conflict
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

DAY = datetime(2026, 5, 4, 12, tzinfo=UTC)
_numbers = count(1)


def said(statement: str, *, at: datetime = DAY, root: str = "", **more: object) -> Claim:
    """A claim that a message of its own holds, unless told."""
    number = next(_numbers)
    source = Source(
        SourceKind.MESSAGE, root or f"message:{number}", at, quote=statement, message_id=number, speaker="Bob"
    )
    return Claim(statement, (source,), confidence=0.7, **more)


def tell(bucket: BucketRef, *claims: Claim) -> list[tuple[str, int | None]]:
    found = learn(bucket, claims, actor="job:test", now=DAY)
    return [(one.outcome.value, one.fact_id) for one in found]


def facts(bucket: BucketRef, **filters: object) -> list[Fact]:
    with tenant(bucket):
        return list(Fact.objects.of(bucket).filter(**filters).order_by("pk"))


def current(bucket: BucketRef) -> list[str]:
    return [fact.statement for fact in facts(bucket, retired_at=None)]


@pytest.fixture
def bucket(acme: World) -> BucketRef:
    return acme.personal(acme.bob.owner_key)


@pytest.mark.parametrize(
    "again",
    ["Bob lives in Berlin.", "bob  LIVES in berlin", "Ｂｏｂ lives in Berlin!"],
)
def test_a_statement_said_again_is_evidence_and_no_second_fact(bucket, again):
    [(_, first)] = tell(bucket, said("Bob lives in Berlin."))
    [(outcome, second)] = tell(bucket, said(again))
    assert (outcome, second) == ("confirmed", first)
    [fact] = facts(bucket)
    assert fact.trust > 0.7
    with tenant(bucket):
        assert Evidence.objects.of(bucket).count() == 2


def test_the_same_root_counts_once(bucket):
    tell(bucket, said("Bob lives in Berlin.", root="message:9"))
    [before] = facts(bucket)
    tell(bucket, said("Bob lives in Berlin!", root="message:9"))
    [after] = facts(bucket)
    assert after.trust == before.trust


@pytest.mark.parametrize(
    ("old", "new", "outcome", "left"),
    [
        # The same in other words.
        ("Bob has two cats named Mia and Leo.", "Bob has two cats, named Leo and Mia.", "confirmed", 1),
        # A part and the whole.
        ("Bob likes tea.", "Bob likes tea and coffee.", "updated", 1),
        ("Bob likes tea and coffee.", "Bob likes tea.", "confirmed", 1),
        # What may be true together.
        ("Bob works at Acme.", "Bob administers the wiki.", "added", 2),
        ("Bob likes tea.", "Bob likes coffee.", "added", 2),
        ("Bob has 2 cats.", "Bob has 3 cats.", "added", 2),
        ("Bob lives in Berlin.", "Bob wants to live in Berlin.", "added", 2),
        ("Bob speaks French.", "Bob does not speak French.", "added", 2),
        ("鲍勃喜欢喝茶", "鲍勃喜欢喝咖啡", "added", 2),
        ("鲍勃住在柏林", "鲍勃,住在柏林。", "confirmed", 1),
    ],
)
def test_what_is_alike_becomes_one_and_what_is_not_stays_two(bucket, old, new, outcome, left):
    tell(bucket, said(old))
    [(found, _)] = tell(bucket, said(new))
    assert (found, len(current(bucket))) == (outcome, left)


@pytest.mark.parametrize(
    ("old", "new", "more"),
    [
        (
            "Bob lives in Berlin.",
            "Bob moved from Berlin to Rome.",
            [{"predicate": "home", "object": "Berlin"}, {"predicate": "home", "object": "Rome"}],
        ),
        ("Bob likes tea.", "Bob does not like tea anymore.", [{}, {}]),
        ("鲍勃喜欢喝茶", "鲍勃不再喜欢喝茶", [{}, {}]),
        ("Bob smokes cigars.", "Bob no longer smokes cigars.", [{}, {}]),
    ],
)
def test_what_changed_is_closed_with_its_range_and_stays(bucket, old, new, more):
    later = DAY + timedelta(days=90)
    tell(bucket, said(old, valid_from=DAY, **more[0]))
    [(outcome, fresh)] = tell(bucket, said(new, at=later, **more[1]))
    assert outcome == "updated"
    before, after = facts(bucket)
    assert (before.valid_from, before.valid_to, before.retired_why) == (DAY, later, "superseded")
    assert (after.pk, after.valid_from, before.superseded_by_id) == (fresh, later, fresh)
    assert not Record.objects.filter(kind="fact", source_id=before.pk).exists()
    assert Record.objects.filter(kind="fact", source_id=after.pk).exists()


def test_two_values_without_a_word_of_change_both_stay(bucket):
    tell(bucket, said("Bob lives in Berlin.", predicate="home", object="Berlin"))
    tell(bucket, said("Bob lives in Rome.", at=DAY + timedelta(days=9), predicate="home", object="Rome"))
    assert current(bucket) == ["Bob lives in Berlin.", "Bob lives in Rome."]


def test_what_was_said_earlier_closes_nothing_that_was_said_later(bucket):
    tell(bucket, said("Bob likes tea.", at=DAY))
    tell(bucket, said("Bob no longer likes tea.", at=DAY - timedelta(days=400)))
    assert "Bob likes tea." in current(bucket)


def test_each_change_of_a_fact_can_be_read(bucket):
    tell(bucket, said("Bob likes tea."))
    tell(bucket, said("Bob does not like tea anymore.", at=DAY + timedelta(days=1)))
    with tenant(bucket):
        told = [
            (one.number, one.op, one.after.get("retired_why"))
            for one in FactRevision.objects.of(bucket).order_by("pk")
        ]
    assert told == [(1, "add", ""), (1, "add", ""), (2, "retire", "superseded")]


def test_a_closed_fact_opens_again_as_it_stood(bucket):
    tell(bucket, said("Bob likes tea."))
    [fact] = facts(bucket)
    with tenant(bucket):
        retire_facts(bucket, [fact], why=Fact.Retired.DELETED, actor="user:1", now=DAY, valid_to=DAY)
    assert current(bucket) == []
    with tenant(bucket):
        assert restore_facts(bucket, [fact], actor="user:1", now=DAY) == 1
    [again] = facts(bucket)
    assert (again.retired_at, again.retired_why, again.valid_to, again.revision) == (None, "", None, 3)
    assert Record.objects.filter(kind="fact", source_id=fact.pk).exists()


def test_a_closed_fact_does_not_open_beside_its_twin(bucket):
    tell(bucket, said("Bob likes tea."))
    [fact] = facts(bucket)
    with tenant(bucket):
        retire_facts(bucket, [fact], why=Fact.Retired.DELETED, actor="user:1", now=DAY)
    tell(bucket, said("Bob likes tea!"))
    with pytest.raises(Conflict, match="says"), tenant(bucket):
        restore_facts(bucket, [fact], actor="user:1", now=DAY)
    assert current(bucket) == ["Bob likes tea!"]


@pytest.mark.parametrize(
    "form", ["Bob owes me 40 euros.", "bob owes ME 40 euros", "Ｂｏｂ owes me 40 euros！"]
)
def test_what_was_forgotten_is_refused(bucket, form):
    with tenant(bucket):
        Tombstone.objects.create(
            workspace_id=bucket.workspace_id,
            bucket_id=bucket.id,
            fingerprint=keyed_fingerprint("Bob owes me 40 euros."),
            created_at=DAY,
        )
    assert tell(bucket, said(form)) == [("forgotten", None)]
    assert facts(bucket) == []


@pytest.mark.parametrize(
    ("statement", "told"),
    [("", "empty"), ("x" * 100_000, "100000"), ("a\x00b", "U\\+0000")],
)
def test_what_no_fact_can_be_is_told_and_nothing_is_written(bucket, statement, told):
    with pytest.raises(BadInput, match=told):
        tell(bucket, said("Bob likes tea."), said(statement))
    assert facts(bucket) == []


def test_a_claim_without_a_source_is_refused(bucket):
    with pytest.raises(BadInput, match="no source"):
        tell(bucket, replace(said("Bob likes tea."), sources=()))


def test_secrets_are_not_kept(bucket):
    tell(bucket, said("Bob's key is sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD."))
    [fact] = facts(bucket)
    assert "abcdefghijklmnop" not in fact.statement


def test_short_and_verbatim_facts_stand_beside_their_like(bucket):
    tell(bucket, said("Bob likes tea."))
    tell(bucket, said("Bob likes tea.", run_id="2026-05-04"))
    tell(bucket, said("Bob likes tea.", verbatim=True), said("Bob likes tea.", verbatim=True))
    assert len(current(bucket)) == 4


def test_a_derived_fact_follows_its_entry(bucket):
    tell(bucket, said("Drinks tea.", derived_from="entry:5"))
    [(outcome, _)] = tell(bucket, said("Drinks mate.", derived_from="entry:5"))
    assert (outcome, current(bucket)) == ("updated", ["Drinks mate."])


def test_what_was_learned_between_decision_and_application_is_found(bucket):
    mine, theirs = said("Bob has two cats named Mia and Leo."), said("Bob has two cats, named Leo and Mia.")
    decided = decide_claims(bucket, [mine], model="rules", now=DAY)
    tell(bucket, theirs)
    with tenant(bucket):
        [found] = apply_claims(bucket, decided, actor="job:test", now=DAY)
    assert found.outcome is Outcome.CONFIRMED
    assert len(facts(bucket)) == 1


def test_learning_costs_the_same_among_many(bucket):
    def queries(statement: str) -> int:
        with CaptureQueriesContext(connection) as seen:
            tell(bucket, said(statement))
        return len(seen)

    few = queries("Bob keeps bees behind the house.")
    tell(bucket, *(said(f"Bob read the book number {n} of the series {n % 7}.") for n in range(120)))
    assert queries("Bob paints old boats in winter.") == few


_RACERS = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
import django
django.setup()
from datetime import UTC, datetime
from django.db import connections
from facts.services.learn import learn
from facts.types import Claim, Source, SourceKind
from workspaces.types import BucketRef, Scope
given = json.load(sys.stdin)
connections["default"].settings_dict["NAME"] = given["database"]
bucket = BucketRef(given["bucket"], given["workspace"], Scope.PERSONAL)
now = datetime(2026, 5, 4, tzinfo=UTC)
def race(racer, statements):
    connections["default"].settings_dict["NAME"] = given["database"]
    for number, statement in enumerate(statements):
        source = Source(SourceKind.MESSAGE, f"message:{racer}-{number}", now)
        learn(bucket, [Claim(statement, (source,))], actor="job:race", now=now)
    connections.close_all()
with ThreadPoolExecutor(len(given["racers"])) as pool:
    for done in [pool.submit(race, *racer) for racer in given["racers"]]:
        done.result()
"""
_FORMS = ("{}.", "{}", " {}!", "{} .")


@pytest.mark.slow
@pytest.mark.usefixtures("committed")
def test_twenty_workers_that_learn_the_same_at_once_make_one_row_each():
    """In four processes of five threads, each with a connection of its own."""
    acme = factories.acme()
    bucket = acme.personal(acme.bob.owner_key)
    things = [f"Bob once repaired the engine of the {name} ferry" for name in _ships(50)]
    racers = []
    for racer in range(20):
        order = random.Random(racer).sample(things, len(things))
        racers.append(
            (racer, [_FORMS[(racer + n) % len(_FORMS)].format(thing) for n, thing in enumerate(order)])
        )
    processes = []
    for start in range(0, 20, 5):
        process = subprocess.Popen(
            [sys.executable, "-c", "import tests.environment\n" + _RACERS],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        given = {
            "database": connection.settings_dict["NAME"],
            "bucket": bucket.id,
            "workspace": bucket.workspace_id,
            "racers": racers[start : start + 5],
        }
        process.stdin.write(json.dumps(given))
        process.stdin.close()
        processes.append(process)
    for process in processes:
        with process:
            told = process.stderr.read()
        assert process.returncode == 0, told
    rows = facts(bucket)
    assert len(rows) == len(things)
    with tenant(bucket):
        assert Evidence.objects.of(bucket).count() == 20 * len(things)


def _ships(many: int) -> list[str]:
    syllables = ("ka", "lo", "mi", "ra", "tu", "ven", "zo", "bel", "dor", "fin")
    return [f"{a}{b}{c}".capitalize() for a in syllables for b in syllables[::3] for c in syllables[1::4]][
        :many
    ]
