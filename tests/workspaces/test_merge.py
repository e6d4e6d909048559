from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deadline import deadline
from workspaces.logic.merge import merge3

TEXTS = st.lists(
    st.sampled_from(["- a", "- b", "- c", "- d", "", "## A", "## B", "text", "```"]), max_size=12
).map("\n".join)
POLICY = st.sampled_from(["ours", "union"])


@given(TEXTS, TEXTS, POLICY)
def test_when_one_side_stays_the_other_wins(base, other, policy):
    assert merge3(base, base, other, on_conflict=policy).text == other
    assert merge3(base, other, base, on_conflict=policy).text == other
    assert merge3(base, base, other, on_conflict=policy).conflicts == ()


@given(TEXTS, TEXTS, POLICY)
def test_when_both_sides_agree_that_is_the_result(base, both, policy):
    merged = merge3(base, both, both, on_conflict=policy)
    assert merged.text == both
    assert merged.conflicts == ()


@given(TEXTS, TEXTS, TEXTS)
def test_a_union_loses_no_new_line_of_either_side(base, ours, theirs):
    lines = set(merge3(base, ours, theirs, on_conflict="union").text.split("\n"))
    for side in (ours, theirs):
        assert {line for line in side.split("\n") if line.strip()} - set(base.split("\n")) <= lines


@given(TEXTS, TEXTS, TEXTS)
def test_ours_keeps_every_new_line_of_ours(base, ours, theirs):
    lines = set(merge3(base, ours, theirs, on_conflict="ours").text.split("\n"))
    assert set(ours.split("\n")) - set(base.split("\n")) <= lines


@given(st.data())
def test_changes_in_different_places_both_come_through(data):
    base = [f"line {n}" for n in range(20)]
    mine = data.draw(st.sets(st.integers(0, 9).map(lambda n: 2 * n), max_size=5))
    other = data.draw(st.sets(st.integers(0, 19), max_size=5)) - mine
    kind = data.draw(st.sampled_from(["changed", "doubled"]))
    ours = [f"ours {n}" if n in mine else line for n, line in enumerate(base)]
    theirs = [
        part
        for n, line in enumerate(base)
        for part in (
            ([f"theirs {n}"] if kind == "changed" else [line, f"theirs {n}"]) if n in other else [line]
        )
    ]
    merged = merge3("\n".join(base), "\n".join(ours), "\n".join(theirs), on_conflict="ours")
    expected = [
        f"ours {n}" if n in mine and line == f"line {n}" else line
        for line in theirs
        for n in [int(line.split()[1])]
    ]
    assert merged.text.split("\n") == expected
    assert merged.conflicts == ()


BASE = "# T\n\n## A\n- one\n- two\n\n## B\n- three\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        # Neighbouring lines.
        (
            BASE.replace("one", "one!"),
            BASE.replace("two", "two!"),
            BASE.replace("one", "one!").replace("two", "two!"),
        ),
        # A changed line, and one added below it.
        (
            BASE.replace("two", "two!"),
            BASE.replace("- two", "- two\n- new"),
            BASE.replace("two", "two!\n- new"),
        ),
        (
            BASE.replace("- two", "- two\n- new"),
            BASE.replace("two", "two!"),
            BASE.replace("two", "two!\n- new"),
        ),
        # One section goes, another one grows.
        (BASE.replace("## A\n- one\n- two\n\n", ""), BASE + "- four\n", "# T\n\n## B\n- three\n- four\n"),
        # The same change, and another one.
        (BASE + "- four\n", BASE.replace("one", "1") + "- four\n", BASE.replace("one", "1") + "- four\n"),
    ],
)
def test_what_does_not_disagree_merges_without_conflict(ours, theirs, merged):
    result = merge3(BASE, ours, theirs, on_conflict="ours")
    assert result.text == merged
    assert result.conflicts == ()


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "with_ours", "with_union"),
    [
        ("a\n", "b\n", "c\n", "b\n", "b\nc\n"),
        ("a", "a\nb", "a\nc", "a\nb", "a\nb\nc"),
        ("", "x", "y", "x", "x\ny"),
        ("", "x\n", "y\n", "x\n", "x\ny\n"),
        ("- a\n- b\n", "- a\n", "- a\n- b!\n", "- a\n", "- a\n- b!\n"),
        # What a side deleted does not come back with a union.
        ("- a\n- b\n", "", "- a\n- b\n- c\n", "", "- c\n"),
        # Under the heading that is there.
        (
            "",
            "## A\n- a\n\n## B\n- b\n",
            "## A\n- c\n",
            "## A\n- a\n\n## B\n- b\n",
            "## A\n- a\n- c\n\n## B\n- b\n",
        ),
    ],
)
def test_a_conflict_is_settled_as_asked(base, ours, theirs, with_ours, with_union):
    mine = merge3(base, ours, theirs, on_conflict="ours")
    both = merge3(base, ours, theirs, on_conflict="union")
    assert (mine.text, both.text) == (with_ours, with_union)
    assert len(mine.conflicts) == len(both.conflicts) == 1


def test_a_conflict_is_told_with_all_three_sides_and_its_line():
    (conflict,) = merge3("a\nb\nc", "a\nB\nc", "a\nbb\nc", on_conflict="ours").conflicts
    assert (conflict.line, conflict.base, conflict.ours, conflict.theirs) == (2, "b", "B", "bb")


def test_changes_that_all_meet_are_merged_in_linear_time():
    base = [f"- {n}" for n in range(1_900)]
    ours = "\n".join("- x" if n % 2 else line for n, line in enumerate(base))
    theirs = "\n".join("- y" if n % 3 else line for n, line in enumerate(base))
    with deadline():
        assert merge3("\n".join(base), ours, theirs, on_conflict="union").conflicts
