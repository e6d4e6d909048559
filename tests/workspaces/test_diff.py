from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.logic.diff import MAX_DIFF_BYTES, edits, unified

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "## H", "- x", "--- y", "+z"]), max_size=20).map(
    "\n".join
)


def _unified(before: str, after: str) -> str:
    return unified(before, after, before_name="a.md", after_name="b.md")


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


def _patched(before: str, diff: str) -> str:
    """`before` with the diff applied, as `patch` would do it, every context and removed line checked."""
    old, result, at = _lines(before), [], 0
    diff = diff.replace("\n\\ No newline at end of file\n", "")
    for hunk in re.split(r"^(?=@@ )", diff, flags=re.MULTILINE)[1:]:
        header, _, body = hunk.partition("\n")
        numbers = re.fullmatch(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", header)
        assert numbers
        start, length = int(numbers[1]), int(numbers[2] or 1)
        start = start - 1 if length else start
        result += old[at:start]
        at = start
        for line in re.findall(r"[ +-][^\n]*(?:\n|$)", body):
            # Two lines without an end stand one after the other when their notices are taken out.
            assert line[0] == "+" or old[at].rstrip("\n") == line[1:].rstrip("\n")
            at += line[0] != "+"
            if line[0] != "-":
                result.append(line[1:])
    return "".join(result + old[at:])


@given(TEXTS.map(lambda text: text + "\n"), TEXTS.map(lambda text: text + "\n"))
def test_applying_the_diff_to_the_old_text_gives_the_new_one(before, after):
    assert _patched(before, _unified(before, after)) == after


@given(TEXTS, TEXTS)
def test_the_edits_rebuild_the_new_text(before, after):
    old, new = before.split("\n"), after.split("\n")
    rebuilt, at = [], 0
    for edit in edits(old, new):
        assert edit.lo > at or edit.lo == 0  # something in common stands between two edits
        rebuilt += old[at : edit.lo] + new[edit.new_lo : edit.new_hi]
        at = edit.hi
    assert rebuilt + old[at:] == new


def test_equal_texts_have_no_diff():
    assert _unified("a\nb\n", "a\nb\n") == ""


def test_the_diff_reads_as_usual():
    before = "".join(f"line {n}\n" for n in range(1, 21))
    after = before.replace("line 2\n", "line two\n").replace("line 20\n", "line 20\nline 21\n")
    assert _unified(before, after) == (
        "--- a.md\n+++ b.md\n"
        "@@ -1,5 +1,5 @@\n line 1\n-line 2\n+line two\n line 3\n line 4\n line 5\n"
        "@@ -18,3 +18,4 @@\n line 18\n line 19\n line 20\n+line 21\n"
    )


@pytest.mark.parametrize(
    ("before", "after", "body"),
    [
        ("", "a\n", "@@ -0,0 +1 @@\n+a\n"),
        ("a\n", "", "@@ -1 +0,0 @@\n-a\n"),
        ("a", "a\n", "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"),
        ("a\n", "a\nb", "@@ -1 +1,2 @@\n a\n+b\n\\ No newline at end of file\n"),
    ],
)
def test_ends_of_files_are_told(before, after, body):
    assert _unified(before, after) == "--- a.md\n+++ b.md\n" + body


@pytest.mark.parametrize(
    "after",
    [
        "".join(f"新的一行 {n}\n" for n in range(30_000)),
        "x" * 1_000_000,
        "\n" * 300_000,
    ],
)
def test_a_large_diff_is_cut_and_says_so(after):
    diff = _unified("a\nb\n", after)
    assert len(diff.encode()) <= MAX_DIFF_BYTES
    assert "the diff is cut" in diff.rstrip("\n").rpartition("\n")[2]


def test_a_diff_within_the_bound_is_whole():
    assert "the diff is cut" not in _unified("", "x\n" * 60_000)


def test_lines_that_recur_thousands_of_times_are_no_burden():
    before = "".join(f"- item {n}\n\n" for n in range(1000))
    after = "".join(f"- item {n}\n\n" for n in range(0, 1000, 2))
    changed = edits(before.split("\n"), after.split("\n"))
    assert sum(edit.hi - edit.lo for edit in changed) - sum(e.new_hi - e.new_lo for e in changed) == 1000
