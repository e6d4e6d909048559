"""Text is put into one form in linear time."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.logic.combining import MOST_MARKS, nfkc
from tests.deadline import deadline

MARKS = st.text(alphabet="a\u0301\u0316\u05b0 é\u3099か", max_size=25)


@given(st.one_of(st.text(), MARKS))
def test_text_as_people_write_it_is_in_nfkc(text):
    assert nfkc(text) == unicodedata.normalize("NFKC", text)


def test_of_a_long_run_of_marks_the_first_stay():
    assert len(nfkc("x" + "\u0316" * 500 + "y")) == MOST_MARKS + 2


@pytest.mark.parametrize("text", ["a" + "\u0301\u0316" * 125_000, "\u0344" * 250_000])
def test_a_run_of_marks_takes_linear_time(text):
    with deadline():
        nfkc(text)
