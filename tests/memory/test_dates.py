"""Relative dates are read against the day they were said on."""

from datetime import date
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.logic.dates import annotate, has_absolute_date, resolve, shown
from tests.deadline import deadline

MONDAY = date(2023, 5, 8)
LEAP = date(2024, 2, 29)


@pytest.mark.parametrize(
    ("text", "phrase", "first", "last"),
    [
        ("I went yesterday.", "yesterday", "2023-05-07", "2023-05-07"),
        ("see you Tomorrow", "Tomorrow", "2023-05-09", "2023-05-09"),
        ("it rained last night", "last night", "2023-05-07", "2023-05-07"),
        ("this morning I ran", "this morning", "2023-05-08", "2023-05-08"),
        ("yesterday evening was fun", "yesterday evening", "2023-05-07", "2023-05-07"),
        ("the day before yesterday", "the day before yesterday", "2023-05-06", "2023-05-06"),
        ("the day after tomorrow", "the day after tomorrow", "2023-05-10", "2023-05-10"),
        ("my event last week", "last week", "2023-05-01", "2023-05-07"),
        ("this past week", "this past week", "2023-05-01", "2023-05-07"),
        ("last weekend", "last weekend", "2023-05-06", "2023-05-07"),
        ("next weekend", "next weekend", "2023-05-20", "2023-05-21"),
        ("Last Friday, I went", "Last Friday", "2023-05-05", "2023-05-05"),
        ("last Monday", "last Monday", "2023-05-01", "2023-05-01"),
        ("this Friday", "this Friday", "2023-05-12", "2023-05-12"),
        ("next friday", "next friday", "2023-05-19", "2023-05-19"),
        ("next month", "next month", "2023-06-01", "2023-06-30"),
        ("last month", "last month", "2023-04-01", "2023-04-30"),
        ("last year", "last year", "2022-01-01", "2022-12-31"),
        ("last June", "last June", "2022-06-01", "2022-06-30"),
        ("last May", "last May", "2022-05-01", "2022-05-31"),
        ("next June", "next June", "2023-06-01", "2023-06-30"),
        ("last summer", "last summer", "2022-06-01", "2022-08-31"),
        ("last winter", "last winter", "2022-12-01", "2023-02-28"),
        ("next winter", "next winter", "2023-12-01", "2024-02-29"),
        ("two weeks ago", "two weeks ago", "2023-04-24", "2023-04-30"),
        ("3 days ago", "3 days ago", "2023-05-05", "2023-05-05"),
        ("a month ago", "a month ago", "2023-04-01", "2023-04-30"),
        ("a couple of years ago", "a couple of years ago", "2021-01-01", "2021-12-31"),
        ("ten years ago", "ten years ago", "2013-01-01", "2013-12-31"),
        ("in two weeks", "in two weeks", "2023-05-22", "2023-05-28"),
        ("three days from now", "three days from now", "2023-05-11", "2023-05-11"),
        ("the week before last", "the week before last", "2023-04-24", "2023-04-30"),
        ("I moved in 2022.", "2022", "2022-01-01", "2022-12-31"),
        ("我昨天去了医院", "昨天", "2023-05-07", "2023-05-07"),
        ("前天下雨", "前天", "2023-05-06", "2023-05-06"),
        ("大后天出发", "大后天", "2023-05-11", "2023-05-11"),
        ("昨晚没睡好", "昨晚", "2023-05-07", "2023-05-07"),
        ("上周五开会", "上周五", "2023-05-05", "2023-05-05"),
        ("上個星期天爬山", "上個星期天", "2023-05-07", "2023-05-07"),
        ("下周一面试", "下周一", "2023-05-15", "2023-05-15"),
        ("下週末去露營", "下週末", "2023-05-20", "2023-05-21"),
        ("上上周", "上上周", "2023-04-24", "2023-04-30"),
        ("这周很忙", "这周", "2023-05-08", "2023-05-14"),
        ("下个月搬家", "下个月", "2023-06-01", "2023-06-30"),
        ("上个月辞职", "上个月", "2023-04-01", "2023-04-30"),
        ("三天前到的", "三天前", "2023-05-05", "2023-05-05"),
        ("三天前天气很好", "三天前", "2023-05-05", "2023-05-05"),
        ("两个星期前", "两个星期前", "2023-04-24", "2023-04-30"),
        ("十二年前", "十二年前", "2011-01-01", "2011-12-31"),
        ("3个月后", "3个月后", "2023-08-01", "2023-08-31"),
        ("去年结婚", "去年", "2022-01-01", "2022-12-31"),
        ("去年五月", "去年五月", "2022-05-01", "2022-05-31"),
        ("明年3月15日毕业", "明年3月15日", "2024-03-15", "2024-03-15"),
        ("2022年毕业", "2022年", "2022-01-01", "2022-12-31"),
    ],
)
def test_a_relative_date_is_read_against_its_own_day(text, phrase, first, last):
    [hit] = resolve(text, said_on=MONDAY)
    assert (hit.phrase, text[hit.start : hit.end]) == (phrase, phrase)
    assert (hit.first_day.isoformat(), hit.last_day.isoformat()) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "on Friday",
        "a few days ago",
        "recently",
        "he may come",
        "two weeks of work",
        "the last thing",
        "next to me",
        "9999 years ago",
        "",
    ],
)
def test_what_has_no_single_reading_is_left_alone(text):
    assert resolve(text, said_on=MONDAY) == []
    assert annotate(text, MONDAY) == text


@pytest.mark.parametrize(
    ("said_on", "text", "expected"),
    [
        (LEAP, "a year ago", "a year ago (2023)"),
        (LEAP, "next month", "next month (2024-03)"),
        (date(2024, 1, 31), "a month ago", "a month ago (2023-12)"),
        (date(2024, 1, 1), "last week", "last week (2023-12-25 to 2023-12-31)"),
        (
            MONDAY,
            "I met Bob last week and Ann yesterday.",
            "I met Bob last week (2023-05-01 to 2023-05-07) and Ann yesterday (2023-05-07).",
        ),
        (MONDAY, "上周五开会，昨天出差。", "上周五（2023-05-05）开会，昨天（2023-05-07）出差。"),
        (MONDAY, "上周很忙", "上周（2023-05-01 至 2023-05-07）很忙"),
        (MONDAY, "I went today.", "I went today."),
        (MONDAY, "yesterday, 7 May 2023, it rained", "yesterday, 7 May 2023, it rained"),
        (MONDAY, "yesterday (2023-05-07)", "yesterday (2023-05-07)"),
        (MONDAY, "I moved in 2022.", "I moved in 2022."),
    ],
)
def test_the_absolute_date_follows_the_phrase(said_on, text, expected):
    assert annotate(text, said_on) == expected


def test_a_line_gets_only_a_few_dates():
    line = "yesterday, tomorrow, last week, next month"
    assert annotate(line, MONDAY, per_line=2).count("(") == 2
    assert annotate(f"{line}\n{line}", MONDAY, per_line=2).count("(") == 4


def test_an_absolute_date_is_recognised():
    assert has_absolute_date("on May 3rd")
    assert has_absolute_date("5月3日")
    assert not has_absolute_date("I have 2000 books and may come on the 3rd floor")
    assert shown(date(2023, 1, 1), date(2023, 12, 31)) == "2023"


PIECES = [
    "last ",
    "week",
    "yesterday",
    " two ",
    "weeks ago",
    "上周",
    "五",
    "三天前",
    "去年",
    "五月",
    "in ",
    "2022",
    "(",
    "\n",
]


@settings(max_examples=200)
@given(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=6)), max_size=10),
    st.dates(min_value=date(1, 1, 1), max_value=date(9999, 12, 31)),
)
def test_annotating_twice_changes_nothing_and_loses_nothing(parts, said_on):
    text = "".join(parts)
    once = annotate(text, said_on)
    assert annotate(once, said_on) == once
    hits = resolve(text, said_on=said_on)
    assert all(hit.first_day <= hit.last_day for hit in hits)
    assert all(first.end <= second.start for first, second in pairwise(hits))
    remaining = iter(once)
    assert all(char in remaining for char in text)


@pytest.mark.parametrize(
    "text", ["上" * 75_000, "下" * 75_000, "two" + " " * 75_000, "yesterday" + " " * 75_000]
)
def test_dates_are_found_in_linear_time(text):
    with deadline():
        resolve(text, said_on=MONDAY)
        annotate(text, MONDAY)
