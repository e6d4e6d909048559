"""How candidates become a ranking that explains itself."""

import dataclasses
import math
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.logic.fusion import TUNING, Question
from recall.logic.times import DateCue
from tests.recall.candidates import Row, ranked

NOW = datetime(2024, 3, 13, 12, tzinfo=UTC)
FILLERS = tuple(Row(id=f"f{n}", dense=0.5, lexical=0.0, thread=f"other{n}") for n in range(20))


def ids(question: Question, *candidates: Row) -> list[str]:
    return [one.id for one in ranked(question, (*candidates, *FILLERS))]


def test_either_leg_alone_ranks_and_both_together_rank_better():
    words = Row(id="words", lexical=5.0, thread="t1")
    near = Row(id="near", dense=0.9, lexical=0.0, thread="t2")
    both = Row(id="both", dense=0.9, lexical=5.0, thread="t3")
    assert ids(Question(), words, near, both)[0] == "both"
    assert set(ids(Question(), words, near, both)[:3]) == {"words", "near", "both"}
    only_words = [dataclasses.replace(one, dense=None) for one in (words, both, *FILLERS)]
    assert {one.id for one in ranked(Question(), only_words)[:2]} == {"words", "both"}


def test_without_one_leg_the_other_has_all_the_weight():
    alone = ranked(Question(), [Row(id="a", lexical=1.0), Row(id="b", lexical=0.0)])
    assert alone[0].why["lexical"] == pytest.approx(1.0)
    assert "dense" not in alone[0].why


def test_a_record_is_lifted_by_its_neighbours_at_one_and_two():
    hit = Row(id="hit", dense=0.9, lexical=5.0, thread="t", position=5)
    others = [Row(id=f"p{n}", dense=0.5, lexical=0.0, thread="t", position=n) for n in (3, 4, 6, 9)]
    elsewhere = Row(id="p6elsewhere", dense=0.5, lexical=0.0, thread="u", position=6)
    order = ids(Question(), hit, elsewhere, *others)
    assert order[0] == "hit"
    assert set(order[1:3]) == {"p4", "p6"}
    assert order[3] == "p3"
    assert order.index("p9") < order.index("p6elsewhere")  # the thread's own best


def test_what_follows_a_matching_question_answers_it_and_asking_itself_tells_little():
    question = Row(id="q", dense=0.9, lexical=5.0, thread="t", position=1, asks=True)
    answer = Row(id="a", dense=0.5, lexical=0.0, thread="t", position=2)
    earlier = Row(id="e", dense=0.5, lexical=0.0, thread="t", position=0)
    by_id = {one.id: one for one in ranked(Question(), (question, answer, earlier, *FILLERS))}
    assert by_id["a"].score > by_id["e"].score
    assert by_id["q"].why["asking"] == TUNING.asking


def pair(**one: object) -> tuple[Row, Row]:
    """Two candidates alike but for what is told of the one called `it`."""
    base = {"dense": 0.7, "lexical": 1.0}
    return Row(id="other", thread="t1", **base), Row(**{"id": "it", "thread": "t2", **base, **one})


@pytest.mark.parametrize(
    ("question", "it", "why"),
    [
        (Question(names_speaker=True), {"said": True}, "speaker"),
        (Question(asks_when=True), {"timed": True}, "timed"),
        (Question(dates=(DateCue(NOW.date(), NOW.date()),)), {"at": NOW}, "date"),
        (Question(), {"trust": 0.9}, "trust"),
        (Question(asked_on=NOW.date()), {"at": NOW - timedelta(days=3)}, "recency"),
        (Question(weights=(2.0,)), {"terms": (0,)}, "coverage"),
        (Question(), {"size": 12}, "length"),
    ],
)
def test_each_cue_decides_between_equals_and_says_so(question, it, why):
    [first, *_] = ranked(question, (*pair(**it), *FILLERS))
    assert first.id == "it"
    assert first.why[why] > 0


def test_little_trust_counts_against():
    assert ids(Question(), *pair(trust=0.1))[0] == "other"


def test_newer_wins_over_older_and_a_future_day_is_no_better_than_today():
    first = Row(id="old", dense=0.7, at=NOW - timedelta(days=300), thread="a")
    then = Row(id="new", dense=0.7, at=NOW - timedelta(days=2), thread="b")
    placed = ranked(Question(asked_on=NOW.date()), (first, then))
    assert [one.id for one in placed] == ["new", "old"]
    future = ranked(Question(asked_on=NOW.date()), (Row(id="f", at=NOW + timedelta(days=900)),))
    assert future[0].why["recency"] == TUNING.recency


def test_a_record_without_a_thread_is_not_behind_for_having_none():
    fact = Row(id="fact", dense=0.9, lexical=5.0)
    message = Row(id="message", dense=0.9, lexical=5.0, thread="t", position=1)
    assert ids(Question(), fact, message)[0] == "fact"


def test_duplicates_are_folded_into_the_best_by_root_and_by_content():
    same = [
        Row(id="m1", dense=0.9, root="r1", thread="a"),
        Row(id="m2", dense=0.8, root="r1", content="h", thread="b"),
        Row(id="m3", dense=0.7, content="h", thread="c"),
        Row(id="m4", dense=0.6, thread="d"),
    ]
    assert [one.id for one in ranked(Question(), same)] == ["m1", "m4"]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_a_broken_score_counts_as_the_least(value):
    placed = ranked(
        Question(),
        (Row(id="broken", dense=value), Row(id="ok", dense=0.9), Row(id="low", dense=0.1)),
    )
    assert placed[0].id == "ok"
    assert not any(math.isnan(one.score) for one in placed)


def test_nothing_gives_nothing_and_the_limit_holds():
    assert ranked(Question(), ()) == []
    assert len(ranked(Question(), FILLERS, limit=3)) == 3


candidates = st.lists(
    st.builds(
        Row,
        id=st.integers(0, 10**6).map(lambda n: f"{n:07d}"),
        thread=st.sampled_from([None, "a", "b"]),
        position=st.integers(0, 6),
        said=st.booleans(),
        at=st.sampled_from([None, NOW, NOW - timedelta(days=9)]),
        dense=st.none() | st.floats(-1, 1),
        lexical=st.none() | st.floats(0, 30),
        terms=st.sampled_from([(), (0,)]),
        asks=st.booleans(),
        timed=st.booleans(),
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
    question = Question(weights=(1.5,), names_speaker=True, asks_when=True, asked_on=NOW.date())
    placed = ranked(question, given_ones)
    shuffled = list(given_ones)
    shuffler.shuffle(shuffled)
    again = ranked(question, shuffled)
    assert [one.id for one in again] == [one.id for one in placed]
    assert [one.score for one in again] == pytest.approx([one.score for one in placed])
    for one in placed:
        assert one.score == pytest.approx(sum(one.why.values()))
    scores = [round(one.score, 6) for one in placed]
    assert scores == sorted(scores, reverse=True)


def test_a_chance_word_counts_less_than_one_that_the_question_is_about():
    meant = Row(id="meant", dense=0.9, lexical=0.0, thread="a")
    chance = Row(id="chance", dense=0.55, lexical=1.0, terms=(0,), thread="b")

    def lead(question: Question) -> float:
        """How far what is meant stands before what shares a word."""
        scores = {one.id: one.score for one in ranked(question, (meant, chance, *FILLERS))}
        return scores["meant"] - scores["chance"]

    of_ten_words, of_one_word = Question(weights=(1.0,) * 10), Question(weights=(1.0,))
    assert lead(of_ten_words) > lead(of_one_word) + TUNING.coverage
    assert lead(of_ten_words) > 0


def test_what_may_not_be_shown_still_lends():
    asked = Row(id="q", dense=0.9, lexical=5.0, thread="t", position=1, asks=True)
    answer = Row(id="a", dense=0.5, lexical=0.0, thread="t", position=2)
    rows = (asked, answer, *FILLERS)
    showable = np.asarray([row.id != "q" for row in rows])
    placed = ranked(Question(), rows, showable=showable, limit=1)
    assert [one.id for one in placed] == ["a"]
    assert placed[0].why["neighbours"] > 0
