"""What cannot both be true goes to the inbox, both kept; what may be stays out of it; a decision can be taken back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from facts.logic.contradictions import Side, contradiction_between
from facts.models import Contradiction, Fact
from facts.prompts.judge import Judge, JudgeGiven, Pair
from facts.services.contradictions import Ruling, resolve_contradiction, undo_decision
from facts.services.learn import learn
from tests.facts.pairs import additive, flips
from tests.facts.test_learn import DAY, current, facts, said
from workspaces.errors import BadInput, Conflict
from workspaces.logic.repair import UnusableAnswer
from workspaces.outbox import drain
from workspaces.tenancy import tenant
from workspaces.types import BucketRef

Decision = Contradiction.Decision


def tell(bucket: BucketRef, *statements: str) -> None:
    for n, statement in enumerate(statements):
        learn(bucket, [said(statement, at=DAY + timedelta(days=n))], actor="job:test", now=DAY)


def inbox(bucket: BucketRef) -> list[Contradiction]:
    with tenant(bucket):
        return list(Contradiction.objects.of(bucket).order_by("pk"))


def decide(bucket: BucketRef, decision: Decision, **more: object) -> Contradiction:
    [row] = inbox(bucket)
    with tenant(bucket):
        return resolve_contradiction(bucket, row.pk, Ruling(decision, **more), actor="user:1", now=DAY)


def take_back(bucket: BucketRef) -> None:
    [row] = inbox(bucket)
    with tenant(bucket):
        undo_decision(bucket, row.pk, actor="user:1", now=DAY)


@pytest.fixture
def bucket(acme) -> BucketRef:
    return acme.personal(acme.bob.owner_key)


@pytest.fixture
def torn(bucket, django_capture_on_commit_callbacks) -> BucketRef:
    with django_capture_on_commit_callbacks(execute=True):
        tell(bucket, "Bob lives in Berlin.", "Bob lives in Rome.")
    drain()
    return bucket


# --- by rules ---------------------------------------------------------------------------------------------


def test_no_pair_of_what_may_be_true_together_is_raised():
    pairs = additive()
    assert len(set(pairs)) == 200
    raised = [(a, b) for a, b in pairs if contradiction_between(Side(a), Side(b))]
    assert raised == []


def test_nearly_every_flip_is_found():
    pairs = flips()
    assert len(set(pairs)) == 100
    missed = [(a, b) for a, b in pairs if not contradiction_between(Side(a), Side(b))]
    assert len(missed) <= 5


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("Thomas lives in Graz.", "James lives in Cork."),
        ("My sister lives in Graz.", "Lives in Cork."),
        ("Bob works at Acme.", "Bob is not at work on Fridays."),
        ("Bob is 34 years old.", "Bob is 190 cm tall."),
    ],
)
def test_others_that_may_be_true_together_are_let_by(a, b):
    assert contradiction_between(Side(a), Side(b)) == ""


def test_two_homes_at_different_times_are_no_contradiction():
    first = Side("Bob lives in Berlin.", valid_to=DAY)
    assert contradiction_between(first, Side("Bob lives in Rome.", valid_from=DAY)) == ""
    assert contradiction_between(first, Side("Bob lives in Rome.", valid_from=DAY - timedelta(days=9)))


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "I cannot help with that.",
        '{"judgements": [{"pair": 1, "contradicts"',
        '{"judgements": []}',
        '{"judgements": [{"pair": 7, "contradicts": true}]}',
        '{"judgements": [{"pair": 1, "contradicts": true}, {"pair": 1, "contradicts": false}]}',
        '{"judgements": [{"pair": "one", "contradicts": true}]}',
        '{"judgements": "none"}',
        "x" * 1_000_000,
    ],
)
def test_a_broken_judgement_is_refused(raw):
    given = JudgeGiven((Pair(Side("Bob lives in Berlin."), Side("Bob lives in Rome.")),))
    with pytest.raises(UnusableAnswer):
        Judge(given).parse(raw)


def test_a_wrapped_judgement_is_read():
    given = JudgeGiven((Pair(Side("a"), Side("b")),))
    raw = 'Sure!\n```json\n{"judgements": [{"pair": 1, "contradicts": true, "reason": null}],}\n```'
    assert Judge(given).parse(raw).judgements[0].contradicts


# --- the inbox --------------------------------------------------------------------------------------------


def test_both_are_kept_until_somebody_decides(torn):
    [row] = inbox(torn)
    assert (row.decision, row.judged_by) == ("", "rules")
    assert current(torn) == ["Bob lives in Berlin.", "Bob lives in Rome."]


def test_a_pair_is_raised_once(torn, django_capture_on_commit_callbacks):
    with tenant(torn):
        Fact.objects.of(torn).update(checked=False)
    with django_capture_on_commit_callbacks(execute=True):
        tell(torn, "Bob keeps bees.")
    drain()
    assert len(inbox(torn)) == 1


@pytest.mark.parametrize(
    ("decision", "left"),
    [(Decision.KEEP_A, ["Bob lives in Berlin."]), (Decision.KEEP_B, ["Bob lives in Rome."])],
)
def test_one_is_kept_and_the_other_closed_and_that_can_be_taken_back(torn, decision, left):
    decide(torn, decision)
    assert current(torn) == left
    take_back(torn)
    assert current(torn) == ["Bob lives in Berlin.", "Bob lives in Rome."]
    assert inbox(torn)[0].decision == ""


def test_both_may_be_true_each_in_its_time(torn):
    later = DAY + timedelta(days=30)
    decide(torn, Decision.BOTH, a_to=later, b_from=later)
    a, b = facts(torn)
    assert (a.valid_to, b.valid_from) == (later, later)
    take_back(torn)
    a, b = facts(torn)
    assert (a.valid_to, b.valid_from) == (None, None)


def test_a_merged_text_takes_the_place_of_both(torn):
    decide(torn, Decision.MERGE, text="Bob lives half in Berlin and half in Rome.")
    assert current(torn) == ["Bob lives half in Berlin and half in Rome."]
    take_back(torn)
    assert current(torn) == ["Bob lives in Berlin.", "Bob lives in Rome."]


def test_a_merge_needs_a_text(torn):
    with pytest.raises(BadInput, match="text"):
        decide(torn, Decision.MERGE)
    assert len(current(torn)) == 2


def test_what_is_ignored_changes_no_fact(torn):
    decide(torn, Decision.IGNORE)
    assert len(current(torn)) == 2


def test_the_second_who_decides_is_told_who_was_first(torn):
    decide(torn, Decision.KEEP_A)
    with pytest.raises(Conflict, match="user:1") as told:
        decide(torn, Decision.KEEP_B)
    assert told.value.code == "already_decided"


def test_a_decision_is_not_taken_back_over_a_later_change(torn):
    later = DAY + timedelta(days=30)
    decide(torn, Decision.BOTH, a_to=later)
    with tenant(torn):
        Fact.objects.of(torn).update(revision=9)
    with pytest.raises(Conflict, match="changed after"):
        take_back(torn)
