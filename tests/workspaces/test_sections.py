from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deadline import deadline
from workspaces.logic.sections import (
    blocks,
    closed,
    find,
    index_of,
    join,
    section_hash,
    spaced,
    split,
    union,
)

MARKDOWN = st.lists(
    st.sampled_from(
        ["## A", "## B", "### C", "# T", "- x", "text", "", "```", "```py", "~~~", "````", "  ```", "## "]
    ),
    max_size=14,
).map("\n".join)


@given(st.one_of(MARKDOWN, st.text()))
def test_joining_what_was_split_gives_the_text_back(text):
    assert join(split(text)) == text


@given(MARKDOWN)
def test_lines_are_numbered_as_in_the_file(text):
    lines = text.split("\n")
    for section in split(text)[1:]:
        assert lines[section.line - 1].startswith("## ")
        assert section.text.startswith(lines[section.line - 1])


@given(MARKDOWN)
def test_a_section_that_is_closed_stays_one_section_whatever_follows(text):
    last = closed(split(text)[-1].text)
    before = len(split(last))
    assert len(split(spaced(last) + "## Z\n```\n## no\n```\n")) == before + 1


def _headings(text: str) -> list[str | None]:
    return [section.heading for section in split(text)]


@pytest.mark.parametrize(
    ("text", "headings"),
    [
        ("", [None]),
        ("just text", [None]),
        ("## A", [None, "A"]),
        ("# Title\n\n## A\nx\n## B\n", [None, "A", "B"]),
        ("## A\n### deeper\n# top\n## B", [None, "A", "B"]),
        ("##A\n #\n## A  ", [None, "A"]),
        ("## A\n```\n## no\n```\n## B", [None, "A", "B"]),
        ("## A\n~~~ text\n## no\n```\n## no\n~~~\n## B", [None, "A", "B"]),
        ("````\n```\n## no\n````\n## B", [None, "B"]),
        ("```\n## no\n``` not closing\n## no\n```\n## B", [None, "B"]),
        ("```\n## no\n  ```  \n## B", [None, "B"]),
        ("``` a`b\n## A", [None, "A"]),
        ("    ```\n## A\n    ```", [None, "A"]),
    ],
)
def test_sections_start_at_second_level_headings_outside_code(text, headings):
    assert _headings(text) == headings


def test_a_fence_that_is_never_closed_hides_no_heading():
    assert _headings("## A\n```\n## B\n~~~\n## C") == [None, "A", "B", "C"]


def test_many_open_fences_do_not_take_quadratic_time():
    # Each opening is looked up once; 200,000 lines would otherwise take minutes.
    assert _headings("```x\n" * 200_000 + "## A")[-1] == "A"


@pytest.mark.parametrize(
    ("heading", "found"),
    [
        ("Work", "Work"),
        ("## Work", "Work"),
        (" Work ", "Work"),
        ("Wor", None),
        ("work", None),
        ("Work log", "Work log"),
    ],
)
def test_a_section_is_found_by_its_whole_heading(heading, found):
    sections = split("## Work log\na\n## Work\nb\n")
    section = find(sections, heading)
    assert (section.heading if section else None) == found


def test_the_first_of_two_equal_headings_is_found():
    assert index_of(split("## A\n1\n## A\n2"), "A") == 1


def test_the_hash_ignores_only_trailing_blanks():
    assert section_hash("## A\nx  \n\n") == section_hash("## A\nx")
    assert section_hash("## A\n x") != section_hash("## A\nx")
    assert section_hash("## A\n\nx") != section_hash("## A\nx")


def test_blocks_keep_fenced_code_in_one_piece():
    assert list(blocks(["a", "```", "b", "```", "```", "```", "c"])) == [
        ("a",),
        ("```", "b", "```"),
        ("```", "```"),
        ("c",),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "both"),
    [
        ("## A\n- a\n\n## B\n- b\n", "## A\n- a2\n\n## B\n- b2\n", "## A\n- a\n- a2\n\n## B\n- b\n- b2\n"),
        ("## A\n- a\n", "## N\n- n\n", "## A\n- a\n\n## N\n- n\n"),
        ("- a", "- b", "- a\n- b"),
        ("", "## N\n- n\n", "## N\n- n\n"),
        ("## A\n### X\n- x\n\n## B\n", "## A\n### X\n- y\n", "## A\n### X\n- x\n- y\n\n## B\n"),
        ("## A\n- a\n\n## B\n", "## A\n### New\n- y\n", "## A\n- a\n\n### New\n- y\n\n## B\n"),
        ("## A\n- a\n", "## B\n- a\n", "## A\n- a\n\n## B\n"),
        ("## A\n```\nx\n```\n", "## A\n```\ny\n```\n", "## A\n```\nx\n```\n```\ny\n```\n"),
    ],
)
def test_a_union_adds_new_lines_under_their_headings(ours, theirs, both):
    assert "\n".join(union(ours.split("\n"), theirs.split("\n"))) == both


@given(MARKDOWN, MARKDOWN)
def test_a_union_keeps_every_line_of_both_and_the_order_of_ours(ours, theirs):
    merged = union(ours.split("\n"), theirs.split("\n"))
    solid = [line.rstrip() for line in merged if line.strip()]
    rest = iter(solid)
    assert all(line.rstrip() in rest for line in ours.split("\n") if line.strip())
    assert {line.rstrip() for line in theirs.split("\n") if line.strip()} <= set(solid)


@given(MARKDOWN)
def test_a_union_with_itself_adds_nothing(text):
    lines = text.split("\n")
    assert [x for x in union(lines, lines) if x.strip()] == [x for x in lines if x.strip()]


def test_a_union_leaves_out_what_it_is_told_to():
    assert union(["- a"], ["- old", "- new"], without=["- old"]) == ["- a", "- new"]


@pytest.mark.parametrize(
    "lines",
    [
        [f"## {n}" for n in range(24_000)],
        [line for n in range(8_000) for line in ("## a", f"### {n}", "x")],
        ["```"] * 24_000,
        ["`" * n for n in range(500, 3, -1)] + ["```"] * 16_000,
    ],
)
def test_parts_are_joined_in_linear_time(lines):
    with deadline():
        assert len(union(["## z"], lines)) >= len(set(lines))
        assert len(union(lines, ["## z", "y"])) > len(lines)


def test_many_lines_for_a_part_with_many_blank_lines_take_linear_time():
    ours = ["## a", *[""] * 40_000]
    theirs = [line for n in range(8_000) for line in ("## b", "## a", f"- {n}")]
    with deadline():
        assert union(ours, theirs)[1] == "- 0"
