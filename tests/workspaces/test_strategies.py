from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deadline import deadline
from workspaces.errors import BadInput
from workspaces.logic.sections import closed, index_of, split
from workspaces.logic.strategies import Strategy, apply

TEXTS = st.lists(
    st.sampled_from(["## A", "## B", "k: 1", "- **k**: 2", "名字：小明", "text", "", "```", "~~~"]),
    max_size=10,
).map("\n".join)


@pytest.mark.parametrize(
    ("current", "content", "text"),
    [
        ("", "- a\n", "- a\n"),
        ("- a", "- b", "- a\n\n- b\n"),
        ("- a\n\n\n", "\n- b\n\n", "- a\n\n- b\n"),
        ("- a\n", " \n", "- a\n"),
        ("- a\n", "```\nopen", "- a\n\n```\nopen\n```\n"),
    ],
)
def test_append_adds_at_the_end_after_a_blank_line(current, content, text):
    assert apply("append", current, content) == text


DOC = "# T\n\n## A\n- a\n\n## AB\n- ab\n\n## B\n```\n## A\n```\n"


@pytest.mark.parametrize(
    ("content", "heading", "text"),
    [
        ("## A\n- new\n", None, DOC.replace("- a\n", "- new\n")),
        ("- new", "A", DOC.replace("- a\n", "- new\n")),
        ("## A\n- new", "## A", DOC.replace("- a\n", "- new\n")),
        ("\n## A\n- new\n", "A", DOC.replace("- a\n", "- new\n")),
        ("## B\n- b", None, DOC.replace("```\n## A\n```\n", "- b\n")),
        ("## C\n- c", None, DOC + "\n## C\n- c\n"),
        ("- c", "C", DOC + "\n## C\n- c\n"),
        ("- c", None, DOC + "\n- c\n"),
        ("## A\n- 1\n## C\n- 2", None, DOC.replace("- a\n", "- 1\n") + "\n## C\n- 2\n"),
        ("", "A", DOC.replace("- a\n", "")),
        ("```\n## no\n```", "A", DOC.replace("- a\n", "```\n## no\n```\n")),
        ("```\nopen", "A", DOC.replace("- a\n", "```\nopen\n```\n")),
    ],
)
def test_a_section_is_replaced_by_its_whole_heading(content, heading, text):
    assert apply("replace_section", DOC, content, heading=heading) == text


def test_a_section_of_an_empty_file_is_appended():
    assert apply("replace_section", "", "- a", heading="A") == "## A\n- a\n"


@pytest.mark.parametrize(
    ("content", "heading", "code"),
    [
        ("intro\n## A\n- a", None, "text_before_heading"),
        ("intro\n## A\n- a", "A", "text_before_heading"),
        ("## B\n- b", "A", "heading_mismatch"),
        ("- a", " ", "bad_heading"),
        ("- a", "A\n## B", "bad_heading"),
    ],
)
def test_an_unclear_section_is_refused(content, heading, code):
    with pytest.raises(BadInput) as refused:
        apply("replace_section", DOC, content, heading=heading)
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("current", "content", "text"),
    [
        ("", "a: 1", "a: 1\n"),
        ("a: 1\nb: 2\n", "b: 3\na: 4", "a: 4\nb: 3\n"),
        ("a: 1\n", "b: 2\n\nc: 3\n", "a: 1\nb: 2\nc: 3\n"),
        ("- **Name**: Bob\n- x", "name: Alice", "- **Name**: Alice\n- x"),
        ("- **Name:** Bob", "- **name**: Alice", "- **Name:** Alice"),
        ("- 名字：小明\n", "名字: 小红", "- 名字：小红\n"),
        ("favourite colour: red\n", "Favourite  colour: blue", "favourite colour: blue\n"),
        ("a:\n", "a: 1", "a: 1\n"),
        ("a: 1\n", "a:", "a: \n"),
        ("a: 1\n", "a: http://x.org:80/y", "a: http://x.org:80/y\n"),
        ("see http://a: no", "http: yes", "see http://a: no\n\nhttp: yes\n"),
        ("```\na: 1\n```\n", "a: 2", "```\na: 1\n```\n\na: 2\n"),
        ("## A\n", "a: 1", "## A\na: 1\n"),
        ("prose\n", "a: 1", "prose\n\na: 1\n"),
        ("a: 1\n", "b: 2\nb: 3", "a: 1\nb: 3\n"),
        ("a: 1\na: 9\n", "a: 2", "a: 2\na: 9\n"),
    ],
)
def test_pairs_are_updated_in_place_or_appended(current, content, text):
    assert apply("upsert_kv", current, content) == text


@pytest.mark.parametrize(
    ("current", "text"),
    [
        ("k: 0\n\n## A\nk: 1\n\n## B\nk: 2\n", "k: 0\n\n## A\nk: 9\n\n## B\nk: 2\n"),
        ("k: 0\n\n## A\n\n## B\nk: 2\n", "k: 0\n\n## A\nk: 9\n\n## B\nk: 2\n"),
        ("k: 0\n", "k: 0\n\n## A\nk: 9\n"),
    ],
)
def test_pairs_can_be_kept_to_a_section(current, text):
    assert apply("upsert_kv", current, "k: 9", heading="A") == text


@pytest.mark.parametrize(
    "line", ["no pair", "## Heading", "```", "https://x.org", "12:30 lunch", ": x", "- x"]
)
def test_a_line_that_is_no_pair_is_named(line):
    with pytest.raises(BadInput) as refused:
        apply("upsert_kv", "", f"a: 1\n{line}\n")
    assert refused.value.code == "not_a_pair"
    assert repr(line) in str(refused.value)
    assert "Line 2" in str(refused.value)


def test_overwrite_is_the_content():
    assert apply("overwrite", DOC, "x") == "x"


def test_an_unknown_strategy_is_told_what_there_is():
    with pytest.raises(BadInput, match="append, replace_section, upsert_kv, overwrite") as refused:
        apply("merge", "", "")
    assert refused.value.code == "unknown_strategy"


@given(
    TEXTS, TEXTS, st.sampled_from(["replace_section", "overwrite", "upsert_kv"]), st.sampled_from([None, "A"])
)
def test_all_but_append_change_nothing_when_repeated(current, content, strategy, heading):
    if strategy == "replace_section" and heading is None and len(split(content)) == 1:
        return  # without any heading this is an append
    try:
        once = apply(strategy, current, content, heading=heading)
    except BadInput:
        return
    assert apply(strategy, once, content, heading=heading) == once


@given(TEXTS, TEXTS)
def test_append_keeps_all_that_was_there(current, content):
    assert apply(Strategy.APPEND, current, content).startswith(current.rstrip("\n"))


@given(TEXTS, st.sampled_from(["- x", "```\nx", "## A\n~~~\nx"]))
def test_replacing_a_section_leaves_the_others_alone(current, content):
    def others(text):
        """All but the first A; an open code fence may have been closed."""
        sections = split(text)
        at = index_of(sections, "A")
        return [closed(one.text).rstrip() for n, one in enumerate(sections) if n != at]

    assert others(apply("replace_section", current, content, heading="A")) == others(current)


def test_many_sections_are_replaced_in_linear_time():
    content = "".join(f"## {n}\nb\n" for n in range(20_000))
    with deadline():
        assert apply("replace_section", content.replace("b", "a"), content).count("\nb\n") == 20_000


@pytest.mark.parametrize("text", ["**" + " " * 250_000, " " * 250_000 + "x", "a" * 250_000, "- " * 125_000])
def test_a_pair_is_read_in_linear_time(text):
    with deadline(), suppress(BadInput):
        apply("upsert_kv", text, text)
