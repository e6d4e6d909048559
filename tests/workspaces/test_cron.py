"""Cron expressions: five fields, or six in the Quartz form."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.logic.cron import Cron, parse_cron

EVERY_DAY = frozenset(range(1, 32))
EVERY_MONTH = frozenset(range(1, 13))
EVERY_WEEKDAY = frozenset(range(7))


@pytest.mark.parametrize(
    ("five", "six"),
    [
        ("0 3 * * *", "0 0 3 * * ?"),
        ("0 3 * * *", "0 0 3 ? * *"),
        ("30 3 * * *", "0 30 3 * * ?"),
        ("*/30 * * * *", "0 */30 * * * ?"),
        ("0 9 * * 1-5", "0 0 9 ? * 2-6"),
        ("0 9 * * mon-fri", "0 0 9 ? * MON-FRI"),
        ("0 0 * * 0", "0 0 0 ? * 1"),
        ("0 0 * * 6", "0 0 0 ? * 7"),
        ("5 4 1,15 jan *", "0 5 4 1,15 1 ?"),
    ],
)
def test_both_forms_of_an_expression_mean_the_same(five: str, six: str):
    old, quartz = parse_cron(five), parse_cron(six)
    assert (old.minutes, old.hours, old.days, old.months, old.weekdays) == (
        quartz.minutes,
        quartz.hours,
        quartz.days,
        quartz.months,
        quartz.weekdays,
    )


def test_every_field_is_read():
    assert parse_cron("0-10/5,59 22,23 1-3 feb-mar/1 sun") == Cron(
        minutes=frozenset({0, 5, 10, 59}),
        hours=frozenset({22, 23}),
        days=frozenset({1, 2, 3}),
        months=frozenset({2, 3}),
        weekdays=frozenset({0}),
        any_day=False,
        any_weekday=False,
    )


def test_a_start_with_a_step_runs_to_the_end_of_the_field():
    assert parse_cron("50/5 * * * *").minutes == frozenset({50, 55})


def test_seven_is_sunday_too():
    assert parse_cron("0 0 * * 7").weekdays == parse_cron("0 0 * * 0").weekdays == frozenset({0})
    assert parse_cron("0 0 * * 5-7").weekdays == frozenset({5, 6, 0})


@pytest.mark.parametrize(
    ("text", "any_day", "any_weekday"),
    [
        ("0 0 * * *", True, True),
        ("0 0 1 * *", False, True),
        ("0 0 * * 1", True, False),
        ("0 0 1 * 1", False, False),
    ],
)
def test_an_open_day_field_is_told_from_a_restricted_one(text: str, any_day: bool, any_weekday: bool):
    parsed = parse_cron(text)
    assert (parsed.any_day, parsed.any_weekday) == (any_day, any_weekday)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "0 fields"),
        ("* * * *", "4 fields"),
        ("0 0 0 * * ? 2030", "7 fields"),
        ("60 * * * *", "outside 0-59"),
        ("* 24 * * *", "outside 0-23"),
        ("* * 0 * *", "outside 1-31"),
        ("* * 32 * *", "outside 1-31"),
        ("* * * 13 *", "outside 1-12"),
        ("* * * * 8", "outside 0-7"),
        ("0 0 0 ? * 0", "outside"),
        ("0 0 0 ? * 8", "outside"),
        ("10-5 * * * *", "outside"),
        ("*/0 * * * *", "outside"),
        ("*-5 * * * *", "no cron field"),
        ("? * * * *", "two day fields only"),
        ("5 0 0 * * ?", "seconds field must be 0"),
        ("a * * * *", "no number"),
        ("-1 * * * *", "no cron field"),
        ("1.5 * * * *", "no cron field"),
        ("1,,2 * * * *", "no cron field"),
        ("* * * * mon#2", "no cron field"),
        ("@daily", "1 fields"),
    ],
)
def test_a_wrong_expression_is_refused_and_says_why(text: str, told: str):
    with pytest.raises(ValueError) as wrong:
        parse_cron(text)
    assert told in str(wrong.value)


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str):
    try:
        parsed = parse_cron(text)
    except ValueError:
        return
    assert all((parsed.minutes, parsed.hours, parsed.days, parsed.months, parsed.weekdays))


@given(
    st.sets(st.integers(0, 59), min_size=1),
    st.sets(st.integers(0, 23), min_size=1),
    st.sets(st.integers(1, 31), min_size=1),
    st.sets(st.integers(1, 12), min_size=1),
    st.sets(st.integers(0, 6), min_size=1),
)
def test_what_is_written_out_is_what_is_read(minutes, hours, days, months, weekdays):
    fields = [",".join(map(str, sorted(one))) for one in (minutes, hours, days, months, weekdays)]
    parsed = parse_cron(" ".join(fields))
    assert (parsed.minutes, parsed.hours, parsed.days, parsed.months, parsed.weekdays) == (
        minutes,
        hours,
        days,
        months,
        weekdays,
    )
