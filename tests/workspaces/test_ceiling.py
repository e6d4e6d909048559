from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.logic.ceiling import MARKER_LINE, default_marker, fit

TEXTS = st.lists(
    st.sampled_from(
        ["## A", "## B", "- a line of some length", "x", "", "```", "字" * 30, default_marker(9)]
    ),
    max_size=30,
).map("\n".join)
MARK = "<!-- more -->"


def test_zero_is_no_ceiling():
    fitted = fit("x" * 10_000, cap=0)
    assert (len(fitted.text), fitted.cut) == (10_000, None)


def test_what_fits_is_left_alone():
    assert fit("## A\nx", cap=6).text == "## A\nx"


@given(TEXTS, st.integers(1, 400), st.sampled_from([None, MARK]))
def test_the_result_is_within_the_ceiling_with_its_marker_once(text, cap, marker):
    fitted = fit(text, cap=cap, marker=marker)
    assert len(fitted.text) <= cap
    if fitted.cut is not None and cap > 120:
        line = marker or default_marker(cap)
        assert fitted.text.endswith(line + "\n")
        assert (
            sum(MARKER_LINE.fullmatch(one) is not None or one == line for one in fitted.text.split("\n")) == 1
        )


@given(TEXTS, st.integers(1, 400), st.sampled_from([None, MARK]))
def test_cutting_twice_changes_nothing(text, cap, marker):
    once = fit(text, cap=cap, marker=marker)
    twice = fit(once.text, cap=cap, marker=marker)
    assert (twice.text, twice.cut) == (once.text, None)


@given(TEXTS.filter(lambda text: "<!--" not in text), st.integers(20, 400))
def test_what_was_kept_and_what_was_cut_are_the_text(text, cap):
    fitted = fit(text, cap=cap, marker=MARK)
    if fitted.cut is None:
        assert fitted.text == text
    else:
        kept = fitted.text.removesuffix(MARK + "\n")
        assert text in {kept + fitted.cut, kept.removesuffix("\n") + fitted.cut}


HEAD = "# Title\n\n"
A, B, C = ("## A\n- a\n- aa\n\n", "## B\n- b\n- bb\n\n", "## C\n- c\n" + "- cc\n" * 9)
ROOM = len(MARK) + 2


@pytest.mark.parametrize(
    ("text", "room", "kept"),
    [
        (HEAD + A + B + C, len(HEAD + A + B), HEAD + A + B),
        (HEAD + A + B + C, len(HEAD + A + B) + 9, HEAD + A + B),
        (HEAD + A + B + C, len(HEAD + A), HEAD + A),
        # Not even the first section: at a line.
        (HEAD + A + B + C, len(HEAD + "## A\n- a\n") + 2, HEAD + "## A\n- a\n"),
        (HEAD + A + B + C, len(HEAD), HEAD),
        ("one\ntwo\nthree and more of it, as there is so much to tell\n", 9, "one\ntwo\n"),
        # Not even a line.
        ("x" * 100, 10, "x" * 10 + "\n"),
        ("字" * 100, 10, "字" * 10 + "\n"),
        # A heading in code is no place to cut.
        (A + "## B\n```\n## no\nx\n```\n" + C, len(A) + 15, A),
        # Nor is the middle of code.
        ("intro\n```\n1\n2\n3\n```\n" + "y" * 60, 12, "intro\n"),
        ("```\n1\n2\n3\n```\n" + "y" * 60, 6, "```\n1\n"),
        # An accent stays with its letter.
        ("e" * 9 + "e\u0301" * 40, 10, "e" * 9 + "\n"),
    ],
)
def test_the_cut_is_at_the_best_place_that_fits(text, room, kept):
    fitted = fit(text, cap=room + ROOM, marker=MARK)
    assert fitted.text == kept + MARK + "\n"
    assert fitted.cut is not None
    assert text.endswith(fitted.cut)


def test_a_marker_of_an_earlier_cut_moves_to_the_new_end():
    once = fit(HEAD + A + B + C, cap=150)
    grown = once.text + "\n## New\n" + "- new\n" * 40
    again = fit(grown, cap=150)
    assert again.text.count("<!--") == 1
    assert again.text.endswith(default_marker(150) + "\n")
    assert again.cut is not None
    assert "<!--" not in again.cut


def test_without_its_old_marker_a_text_may_fit_whole():
    text = "## A\n" + MARK + "\n" + "- a\n" * 3 + MARK + "\n"
    fitted = fit(text, cap=len(text) - 1, marker=MARK)
    assert fitted.text == "## A\n- a\n- a\n- a\n" + MARK + "\n"
    assert fitted.cut is None


def test_a_ceiling_too_small_for_the_marker_leaves_it_away():
    fitted = fit("abcdefghij", cap=4)
    assert (fitted.text, fitted.cut) == ("abcd", "efghij")
