"""What a file keeps of its people's words, and where the rest goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.errors import BadInput
from workspaces.logic.ceiling import fit
from workspaces.logic.guard import Guarded, Held
from workspaces.logic.holding import (
    MOST_BETWEEN,
    MOST_FITTING,
    appended,
    fit_held,
    has_room,
    held_after,
    of_any_size,
    overflow_name,
    overflow_stem,
    standing,
    told,
    warned,
)
from workspaces.logic.names import MAX_CONTENT_BYTES, clean_name
from workspaces.logic.sections import section_hash, split
from workspaces.types import AuthorKind

MIB = MAX_CONTENT_BYTES
MINE = "## Rules\n- Never call before noon.\n"
RULES = Held("Rules", MINE)
BODIES = st.lists(st.sampled_from(["- a\n", "- b\n", "- 茶\n", "\n", "text\n"]), min_size=1, max_size=8)
FILES = st.lists(BODIES.map("".join), min_size=1, max_size=8).map(
    lambda bodies: "".join(f"## S{number}\n{body}" for number, body in enumerate(bodies))
)


# --- the overflow -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "number", "overflow"),
    [
        ("MEMORY.md", 1, "archive/MEMORY.md"),
        ("MEMORY.md", 2, "archive/MEMORY.2.md"),
        ("memory/2026-01-31.md", 10, "archive/memory/2026-01-31.10.md"),
        ("a.md.md", 2, "archive/a.md.2.md"),
    ],
)
def test_overflow_lies_below_the_archive_under_the_files_name(name: str, number: int, overflow: str):
    assert overflow_name(name, number) == overflow
    assert overflow.startswith(f"{overflow_stem(name)}.")


@given(
    st.text("ab /é", min_size=1, max_size=253).filter(lambda text: text == text.strip(" /")),
    st.integers(1, 999),
)
def test_overflow_of_a_good_name_has_a_good_name_of_its_own(stem: str, number: int):
    name = "/".join(part.strip() or "x" for part in stem.split("/")) + ".md"
    overflow = overflow_name(clean_name(name), number)
    assert clean_name(overflow) == overflow
    assert overflow != overflow_name(name, number + 1)


@pytest.mark.parametrize(
    ("content", "title", "after"),
    [
        ("", "", "- Tea.\n"),
        ("", "# Day", "# Day\n\n- Tea.\n"),
        ("# Day\n", "# Day", "# Day\n\n- Tea.\n"),
        ("# Day", "# Day", "# Day\n\n- Tea.\n"),
    ],
)
def test_an_append_is_the_next_paragraph(content: str, title: str, after: str):
    added = appended(content, "- Tea.", title=title)
    assert content + added == after
    assert title or len(added) <= len("- Tea.") + MOST_BETWEEN


def test_a_text_of_any_size_is_taken_if_it_is_a_text():
    assert of_any_size("\ufeffa\r\nb\r") == "a\nb\n"
    assert of_any_size("\ufeff" + "a\r\n" * MIB) == "a\n" * MIB
    for bad in ("\0", "\ud83d"):
        with pytest.raises(BadInput):
            of_any_size("x" * MIB + bad)


def test_room_is_counted_in_bytes():
    assert has_room("é" * (MIB // 2 - 1), "é")
    assert not has_room("é" * (MIB // 2), "x")


# --- the ceiling ------------------------------------------------------------------------------------------


@given(FILES, st.integers(60, 300))
def test_without_a_persons_words_the_ceiling_is_the_plain_one(text: str, cap: int):
    assert fit_held(text, [], cap=cap) == fit(text, cap=cap)


@given(FILES, st.sets(st.integers(0, 7)), st.integers(100, 400))
def test_what_a_person_wrote_stays_under_the_ceiling_when_it_fits(text: str, chosen: set[int], cap: int):
    held = [Held(one.heading, one.text) for one in split(text) if one.heading in {f"S{n}" for n in chosen}]
    fitted = fit_held(text, held, cap=cap)
    assert len(fitted.text) <= cap
    if fitted.cut is not None and sum(len(one.text) + 1 for one in held) + 100 < cap:
        assert standing(fitted.text, held) == held
    lines = [*fitted.text.split("\n"), *(fitted.cut or "").split("\n")]
    assert [line for line in text.split("\n") if line.strip() and line not in lines] == []


@pytest.mark.parametrize("cap", [0, MIB])
def test_what_no_file_can_hold_is_above_every_ceiling(cap: int):
    text = "- 茶\n" * (MIB // 6 + 1)
    fitted = fit_held(text, [], cap=cap)
    assert len(fitted.text) <= MOST_FITTING
    assert len(fitted.text.encode()) <= MIB
    assert fitted.cut is not None
    assert fitted.text.count("茶") + fitted.cut.count("茶") == text.count("茶")


# --- what is held -----------------------------------------------------------------------------------------


def test_the_ceilings_marker_makes_nobodys_words_another_text():
    cut = f"{MINE}<!-- cut to 300 characters; the rest is kept -->\n"
    assert standing(cut, [RULES]) == [RULES]
    assert standing(MINE, [Held("Rules", cut)]) == [Held("Rules", cut)]
    assert standing(MINE.replace("noon", "ten"), [RULES]) == []


@pytest.mark.parametrize(
    ("by", "is_append", "content", "held"),
    [
        (AuthorKind.PERSON, False, f"{MINE}\n## New\n- x\n", ["Rules", "New"]),
        (AuthorKind.PERSON, False, "## New\n- x\n", ["New"]),
        (AuthorKind.MACHINE, False, f"{MINE}\n## New\n- x\n", ["Rules"]),
        (AuthorKind.PROGRAM, False, MINE.replace("noon", "ten"), []),
        (AuthorKind.MACHINE, True, f"{MINE}- And never on Sunday.\n", ["Rules"]),
        (AuthorKind.MACHINE, True, f"{MINE}\n## New\n- x\n", ["Rules"]),
    ],
)
def test_only_a_person_makes_a_section_held(by: AuthorKind, is_append: bool, content: str, held: list[str]):
    after = held_after(MINE, content, [RULES], by=by, is_append=is_append)
    assert [one.heading for one in after] == held
    hashes = {section_hash(one.text) for one in split(content)}
    assert all(section_hash(one.text) in hashes for one in after)


# --- what is told -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("guarded", "notes"),
    [
        (Guarded("x", (), (), 0.0), ()),
        (Guarded("x", (), (), 0.5), ()),
        (
            Guarded("x", ("", "Rules"), ("- a", "- b"), 0.75),
            (
                "Kept word for word what a person wrote: the head of the file, Rules.",
                "2 lines were refused.",
                "75% of the earlier lines would have been lost; they were kept.",
            ),
        ),
    ],
)
def test_what_the_guards_did_is_told_in_words(guarded: Guarded, notes: tuple[str, ...]):
    assert told(guarded, max_loss=0.5) == notes


@pytest.mark.parametrize(("cap", "count"), [(0, 0), (5, 0), (4, 1)])
def test_a_person_is_warned_above_the_ceiling(cap: int, count: int):
    assert len(warned("MEMORY.md", "12345", cap=cap)) == count
