"""Whom a question names, and what time it is about."""

from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.logic.cues import asks_when, same_name, speakers_named
from recall.logic.times import MAX_CUES, DateCue, closeness, date_cues, days_of

ASKED = date(2024, 3, 13)  # a Wednesday
TIME_WORDS = (
    "last next week month 5000 years ago May 2 31 29 February 去年 二 月 上周 五 前 个 天 before of 9999"
)
PEOPLE = ("Anna Berg", "Anna Holm", "Melanie", "Will", "王芳", "Ömer")


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did Anna Berg paint?", ("Anna Berg",)),
        ("What did Berg paint?", ("Anna Berg",)),
        ("What did Anna paint?", ()),
        ("Where does Mel live?", ("Melanie",)),
        ("melanie's books", ("Melanie",)),
        ("Melanies", ()),
        ("Will she come?", ()),
        ("What did Will say?", ("Will",)),
        ("王芳去了哪里？", ("王芳",)),
        ("Did omer and Melanie meet?", ("Melanie", "Ömer")),
        ("", ()),
    ],
)
def test_a_question_names_those_it_cannot_mean_otherwise(question, named):
    assert speakers_named(question, PEOPLE) == named


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did I say about tea?", ("bob",)),
        ("我说过什么", ("bob",)),
        ("Which book did you recommend?", ("Agent",)),
        ("你推荐的书", ("Agent",)),
        ("Where are my keys?", ()),
    ],
)
def test_i_is_who_asks_and_you_the_agent(question, named):
    assert speakers_named(question, (), asker="bob", agent="Agent") == named


def test_names_are_compared_folded():
    assert same_name("ÖMER", "omer")
    assert not same_name(None, None)
    assert not same_name("Ann", "Anna")


@pytest.mark.parametrize(
    ("question", "expected"),
    [("When did she go?", True), ("How long has he had it?", True), ("什么时候去的", True), ("哪天出发", True),
     ("Wann war das?", True), ("Where did she go?", False), ("whenever", False)],
)  # fmt: skip
def test_questions_for_a_time_are_known(question, expected):
    assert asks_when(question) is expected


def span(first: str, last: str) -> DateCue:
    return DateCue(date.fromisoformat(first), date.fromisoformat(last))


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What happened on 2 May 2023?", "2023-05-02", "2023-05-02"),
        ("in May 2023", "2023-05-01", "2023-05-31"),
        ("in May", "2023-05-01", "2023-05-31"),
        ("in February", "2024-02-01", "2024-02-29"),
        ("on 14 March", "2023-03-14", "2023-03-14"),
        ("in 2022", "2022-01-01", "2022-12-31"),
        ("yesterday", "2024-03-12", "2024-03-12"),
        ("the day before yesterday", "2024-03-11", "2024-03-11"),
        ("last week", "2024-03-04", "2024-03-10"),
        ("this month", "2024-03-01", "2024-03-31"),
        ("last month", "2024-02-01", "2024-02-29"),
        ("last year", "2023-01-01", "2023-12-31"),
        ("last weekend", "2024-03-09", "2024-03-10"),
        ("last Friday", "2024-03-08", "2024-03-08"),
        ("on Wednesday", "2024-03-13", "2024-03-13"),
        ("last Wednesday", "2024-03-06", "2024-03-06"),
        ("next Monday", "2024-03-18", "2024-03-18"),
        ("3 days ago", "2024-03-10", "2024-03-10"),
        ("two weeks ago", "2024-02-25", "2024-03-02"),
        ("in the last 10 days", "2024-03-03", "2024-03-13"),
        ("last May", "2023-05-01", "2023-05-31"),
        ("last March", "2023-03-01", "2023-03-31"),
        ("last summer", "2023-06-01", "2023-08-31"),
        ("the week before 16 November 2023", "2023-11-09", "2023-11-15"),
        ("昨天", "2024-03-12", "2024-03-12"),
        ("上周五", "2024-03-08", "2024-03-08"),
        ("上星期天", "2024-03-10", "2024-03-10"),
        ("周一", "2024-03-11", "2024-03-11"),
        ("上周", "2024-03-04", "2024-03-10"),
        ("上个月", "2024-02-01", "2024-02-29"),
        ("去年五月", "2023-05-01", "2023-05-31"),
        ("去年5月2号", "2023-05-02", "2023-05-02"),
        ("去年", "2023-01-01", "2023-12-31"),
        ("前年", "2022-01-01", "2022-12-31"),
        ("三天前", "2024-03-10", "2024-03-10"),
        ("最近两周", "2024-02-28", "2024-03-13"),
        ("2023年5月2日", "2023-05-02", "2023-05-02"),
        ("5月2号", "2023-05-02", "2023-05-02"),
    ],
)
def test_times_are_resolved_against_the_day_of_asking(question, first, last):
    assert date_cues(question, asked_on=ASKED) == (span(first, last),)


@pytest.mark.parametrize(
    "question", ["", "I may go", "99999 years ago", "31 February 2023", "the last word", "a week"]
)
def test_what_is_no_time_gives_none(question):
    assert date_cues(question, asked_on=ASKED) == ()


def test_without_a_day_of_asking_relative_times_are_left_out_and_months_are_of_every_year():
    assert date_cues("last week") == ()
    (cue,) = date_cues("on 2 May")
    assert cue.is_yearly
    assert closeness(cue, date(2019, 5, 2)) == closeness(cue, date(2031, 5, 2)) == 1.0
    assert closeness(cue, date(2019, 6, 1)) < 0.1


def test_a_record_counts_less_the_farther_from_the_time_and_more_after_than_before():
    cue = span("2023-05-02", "2023-05-08")
    days = [date(2023, 5, 8) + timedelta(days=n) for n in range(40)]
    near = [closeness(cue, day) for day in days]
    assert near[0] == 1.0
    assert near == sorted(near, reverse=True)
    assert closeness(cue, date(2023, 4, 29)) < closeness(cue, date(2023, 5, 11)) < 1.0


def test_only_short_cues_are_looked_for_day_by_day():
    assert len(days_of([span("2023-05-01", "2023-05-07")])) == 7
    assert days_of([span("2023-05-01", "2023-05-31")]) == ()
    assert days_of([DateCue(date(2000, 5, 2), date(2000, 5, 2), is_yearly=True)]) == ()


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from(TIME_WORDS.split()),
        max_size=8,
    ),
    st.dates(),
)
def test_no_question_and_no_day_breaks_the_times(words, asked_on):
    cues = date_cues(" ".join(words), asked_on=asked_on)
    assert len(cues) <= MAX_CUES
    for cue in cues:
        assert cue.first <= cue.last
        assert 0.0 <= closeness(cue, asked_on) <= 1.0
    days_of(cues)
