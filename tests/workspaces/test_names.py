from __future__ import annotations

import unicodedata
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.deadline import deadline
from workspaces.errors import BadInput, TooLarge
from workspaces.logic.names import (
    BORN_ORDER,
    MAX_CONTENT_BYTES,
    check_content,
    clean_name,
    daily_note,
    is_daily_note,
    note_date,
)


@pytest.mark.parametrize(
    "name",
    [
        *BORN_ORDER,
        "memory/2024-02-29.md",
        "structured/user.md",
        "a..b.md",
        "..md.md",
        ".hidden.md",
        "notes 2024/my file.md",
        "笔记/北京.md",
        "a~b.md",
        "x" * 253 + ".md",
    ],
)
def test_a_good_name_is_kept_as_it_is(name):
    assert clean_name(name) == name


def test_a_name_is_brought_to_nfc():
    assert clean_name(unicodedata.normalize("NFD", "café.md")) == "café.md"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "empty part"),
        ("notes.txt", "end it in .md"),
        ("NOTES.MD", "end it in .md"),
        ("notes.Md", "end it in .md"),
        (".md", "at least one character"),
        ("memory/.md", "at least one character"),
        ("md", "end it in .md"),
        ("/etc/passwd.md", "not relative"),
        ("C:/notes.md", "not relative"),
        ("~/notes.md", "not relative"),
        ("~root/notes.md", "not relative"),
        ("../notes.md", "'..'"),
        ("memory/../../notes.md", "'..'"),
        ("memory/./notes.md", "'.'"),
        ("memory//notes.md", "empty part"),
        ("notes.md/", "empty part"),
        ("memory\\notes.md", "backslash"),
        ("no\0tes.md", "control"),
        ("no\ntes.md", "control"),
        ("notes.md\n", "control"),
        ("no\x7ftes.md", "control"),
        ("no\u202etes.md", "control or invisible"),
        ("no\u2028tes.md", "control or invisible"),
        ("no\ud800tes.md", "control or invisible"),
        (" notes.md", "space"),
        ("notes.md ", "space"),
        ("memory /notes.md", "space"),
        ("memory/\u3000notes.md", "space"),
        ("x" * 254 + ".md", "257 characters"),
    ],
)
def test_a_bad_name_is_refused_with_the_reason(name, reason):
    with pytest.raises(BadInput) as refused:
        clean_name(name)
    assert refused.value.code == "bad_file_name"
    assert reason in str(refused.value)


def test_the_refusal_names_the_value_but_not_a_megabyte_of_it():
    with pytest.raises(BadInput, match=r"'a/\.\./b\.md'"):
        clean_name("a/../b.md")
    with pytest.raises(BadInput) as refused:
        clean_name("x" * 1_000_000)
    assert len(str(refused.value)) < 300


def test_length_counts_after_nfc():
    decomposed = unicodedata.normalize("NFD", "é" * 253 + ".md")
    assert len(decomposed) > 256
    assert len(clean_name(decomposed)) == 256


@given(st.text(alphabet="aé./\\~ \0\u202eMd", max_size=20).map(lambda text: text + ".md"))
def test_what_is_accepted_is_safe_and_stays_accepted(raw):
    try:
        name = clean_name(raw)
    except BadInput:
        return
    assert clean_name(name) == name
    assert not name.startswith(("/", "~"))
    assert not {"", ".", ".."} & set(name.split("/"))
    assert not {"\\", "\0", "\u202e"} & set(name)


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("memory/2024-02-29.md", date(2024, 2, 29)),
        ("memory/2023-02-29.md", None),
        ("memory/2024-13-01.md", None),
        ("memory/0000-01-01.md", None),
        ("memory/2024-2-9.md", None),
        ("memory/٢٠٢٤-٠١-٠١.md", None),
        ("memory/2024-01-01.md\n", None),
        ("2024-01-01.md", None),
        ("x/memory/2024-01-01.md", None),
        ("MEMORY.md", None),
    ],
)
def test_a_daily_note_has_a_day_that_exists(name, day):
    assert note_date(name) == day
    assert is_daily_note(name) is (day is not None)


@given(st.dates())
def test_every_day_has_a_daily_note_with_a_good_name(day):
    name = daily_note(day)
    assert clean_name(name) == name
    assert note_date(name) == day


def test_the_daily_note_of_a_moment_is_that_of_its_day():
    assert daily_note(datetime(2024, 5, 1, 23, 59)) == "memory/2024-05-01.md"  # noqa: DTZ001


def test_newlines_are_normalised_and_a_byte_order_mark_is_dropped():
    assert check_content("\ufeff## a\r\nb\rc\n") == "## a\nb\nc\n"


@pytest.mark.parametrize("text", ["one\ntwo\0", "one\n\ud83d", "one\n\udc00x"])
def test_content_that_is_no_text_is_refused_with_its_line(text):
    with pytest.raises(BadInput, match="Line 2") as refused:
        check_content(text)
    assert refused.value.code == "bad_content"


def test_content_is_bounded_in_bytes_not_characters():
    assert check_content("a" * MAX_CONTENT_BYTES)
    with pytest.raises(TooLarge) as refused:
        check_content("é" * (MAX_CONTENT_BYTES // 2) + "a")
    assert refused.value.code == "file_too_large"
    assert refused.value.fields == {"size": MAX_CONTENT_BYTES + 1, "limit": MAX_CONTENT_BYTES}


def test_a_name_of_nothing_but_accents_is_refused_at_once():
    with deadline(), pytest.raises(BadInput, match="characters long"):
        clean_name("a" + "\u0301\u0316" * 125_000 + ".md")
