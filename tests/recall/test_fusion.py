"""How candidates become a ranking that explains itself."""

import dataclasses
import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.logic.fusion import TUNING, Candidate, Question, missing_neighbours, rank
from recall.logic.marks import ASKS, TIMED
from recall.logic.times import DateCue

NOW = datetime(2024, 3, 13, 12, tzinfo=UTC)
FILLERS = tuple(Candidate(id=f"f{n}", dense=0.5, lexical=0.0, thread=f"other{n}") for n in range(20))


def ids(question: Question, *candidates: Candidate) -> list[str]:
    return [str(one.candidate.id) for one in rank(question, (*candidates, *FILLERS))]


def test_either_leg_alone_ranks_and_both_together_rank_better():
    words = Candidate(id="words", lexical=5.0, thread="t1")
    near = Candidate(id="near", dense=0.9, lexical=0.0, thread="t2")
    both = Candidate(id="both", dense=0.9, lexical=5.0, thread="t3")
    assert ids(Question(), words, near, both)[0] == "both"
    assert set(ids(Question(), words, near, both)[:3]) == {"words", "near", "both"}
    only_words = [dataclasses.replace(one, dense=None) for one in (words, both, *FILLERS)]
    assert {str(one.candidate.id) for one in rank(Question(), only_words)[:2]} == {"words", "both"}


def test_without_one_leg_the_other_has_all_the_weight():
    alone = rank(Question(), [Candidate(id="a", lexical=1.0), Candidate(id="b", lexical=0.0)])
    assert alone[0].why["lexical"] == pytest.approx(1.0)
    assert "dense" not in alone[0].why


def test_a_record_is_lifted_by_its_neighbours_at_one_and_two():
    hit = Candidate(id="hit", dense=0.9, lexical=5.0, thread="t", position=5)
    others = [Candidate(id=f"p{n}", dense=0.5, lexical=0.0, thread="t", position=n) for n in (3, 4, 6, 9)]
    elsewhere = Candidate(id="p6elsewhere", dense=0.5, lexical=0.0, thread="u", position=6)
    order = ids(Question(), hit, elsewhere, *others)
    assert order[0] == "hit"
    assert set(order[1:3]) == {"p4", "p6"}
    assert order[3] == "p3"
    assert order.index("p9") < order.index("p6elsewhere")  # the thread's own best


def test_what_follows_a_matching_question_answers_it_and_asking_itself_tells_little():
    question = Candidate(id="q", dense=0.9, lexical=5.0, thread="t", position=1, lexemes={ASKS: 1})
    answer = Candidate(id="a", dense=0.5, lexical=0.0, thread="t", position=2)
    earlier = Candidate(id="e", dense=0.5, lexical=0.0, thread="t", position=0)
    ranked = {str(one.candidate.id): one for one in rank(Question(), (question, answer, earlier, *FILLERS))}
    assert ranked["a"].score > ranked["e"].score
    assert ranked["q"].why["asking"] == TUNING.asking


def pair(**one: object) -> tuple[Candidate, Candidate]:
    """Two candidates alike but for what is told of the one called `it`."""
    base = {"dense": 0.7, "lexical": 1.0}
    return Candidate(id="other", thread="t1", **base), Candidate(
        **{"id": "it", "thread": "t2", **base, **one}
    )


@pytest.mark.parametrize(
    ("question", "it", "why"),
    [
        (Question(speaker="Anna"), {"speaker": "anna"}, "speaker"),
        (Question(asks_when=True), {"lexemes": {TIMED: 1}}, "timed"),
        (Question(dates=(DateCue(NOW.date(), NOW.date()),)), {"at": NOW}, "date"),
        (Question(), {"trust": 0.9}, "trust"),
        (Question(asked_at=NOW), {"at": NOW - timedelta(days=3)}, "recency"),
        (Question(weights={"tea": 2.0}), {"lexemes": {"tea": 1}}, "coverage"),
        (Question(), {"size": 12}, "length"),
    ],
)
def test_each_cue_decides_between_equals_and_says_so(question, it, why):
    ranked = rank(question, (*pair(**it), *FILLERS))
    assert ranked[0].candidate.id == "it"
    assert ranked[0].why[why] > 0


def test_little_trust_counts_against():
    assert ids(Question(), *pair(trust=0.1))[0] == "other"


def test_newer_wins_over_older_and_a_future_day_is_no_better_than_today():
    first = Candidate(id="old", dense=0.7, at=NOW - timedelta(days=300), thread="a")
    then = Candidate(id="new", dense=0.7, at=NOW - timedelta(days=2), thread="b")
    ranked = rank(Question(asked_at=NOW), (first, then))
    assert [one.candidate.id for one in ranked] == ["new", "old"]
    future = rank(Question(asked_at=NOW), (Candidate(id="f", at=NOW + timedelta(days=900)),))
    assert future[0].why["recency"] == TUNING.recency


def test_a_record_without_a_thread_is_not_behind_for_having_none():
    fact = Candidate(id="fact", dense=0.9, lexical=5.0)
    message = Candidate(id="message", dense=0.9, lexical=5.0, thread="t", position=1)
    assert ids(Question(), fact, message)[0] == "fact"


def test_duplicates_are_folded_into_the_best_by_root_and_by_content():
    same = [
        Candidate(id="m1", dense=0.9, root="r1", thread="a"),
        Candidate(id="m2", dense=0.8, root="r1", content_hash="h", thread="b"),
        Candidate(id="m3", dense=0.7, content_hash="h", thread="c"),
        Candidate(id="m4", dense=0.6, thread="d"),
    ]
    assert [one.candidate.id for one in rank(Question(), same)] == ["m1", "m4"]


def test_missing_neighbours_are_asked_for_once_and_never_before_the_start():
    found = [
        Candidate(id=1, thread="t", position=0, lexical=2.0),
        Candidate(id=2, thread="t", position=1, dense=0.5),
        Candidate(id=3, dense=0.9),
    ]
    assert sorted(missing_neighbours(found)) == [("t", 2), ("t", 3)]
    assert missing_neighbours([]) == []
    assert missing_neighbours(found, best=0) == []


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_broken_score_counts_as_the_least(value):
    ranked = rank(
        Question(),
        (Candidate(id="broken", dense=value), Candidate(id="ok", dense=0.9), Candidate(id="low", dense=0.1)),
    )
    assert ranked[0].candidate.id == "ok"
    assert not any(math.isnan(one.score) for one in ranked)


def test_nothing_gives_nothing_and_the_limit_holds():
    assert rank(Question(), ()) == []
    assert len(rank(Question(), FILLERS, limit=3)) == 3


candidates = st.lists(
    st.builds(
        Candidate,
        id=st.integers(0, 10**6),
        thread=st.sampled_from([None, "a", "b"]),
        position=st.integers(0, 6),
        speaker=st.sampled_from([None, "Anna", "Bob"]),
        at=st.sampled_from([None, NOW, NOW - timedelta(days=9)]),
        dense=st.none() | st.floats(-1, 1),
        lexical=st.none() | st.floats(0, 30),
        lexemes=st.sampled_from([{}, {"tea": 1}, {ASKS: 1, "tea": 2}, {TIMED: 1}]),
        size=st.integers(0, 50),
        trust=st.none() | st.floats(0, 1),
        root=st.sampled_from([None, "r"]),
    ),
    max_size=12,
    unique_by=(lambda one: one.id, lambda one: (one.thread, one.position) if one.thread else one.id),
)


@settings(max_examples=100, deadline=None)
@given(candidates, st.randoms(use_true_random=False))
def test_a_ranking_adds_up_and_does_not_depend_on_the_order_of_candidates(given_ones, shuffler):
    question = Question(weights={"tea": 1.5}, speaker="Anna", asks_when=True, asked_at=NOW)
    ranked = rank(question, given_ones)
    shuffled = list(given_ones)
    shuffler.shuffle(shuffled)
    assert rank(question, shuffled) == ranked
    for one in ranked:
        assert one.score == pytest.approx(sum(one.why.values()))
    assert [one.score for one in ranked] == sorted((one.score for one in ranked), reverse=True)
