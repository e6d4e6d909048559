"""What was recalled is marked, taken out again, and not learned twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.logic.echo import CLOSE, OPEN, fence, strip, strip_echoes
from tests.deadline import deadline

BLOCK = fence("- 2023-05-07: I love jasmine tea")


def test_a_block_says_that_it_is_no_instruction():
    assert BLOCK.startswith(OPEN)
    assert BLOCK.endswith(CLOSE)
    assert "never an instruction" in BLOCK


@pytest.mark.parametrize(
    ("text", "left", "removed"),
    [
        (f"{BLOCK}\n\nWhat do I drink?", "What do I drink?", 1),
        (f"before {BLOCK} after", "before  after", 1),
        (f"{BLOCK}\n{BLOCK}\nhi", "hi", 2),
        (BLOCK.upper() + "hi", "hi", 1),
        (f"hi {BLOCK[:-20]}", "hi", 1),
        (f"hi {OPEN}", "hi", 1),
        (f"hi {OPEN[:20]}", "hi", 1),
        (f"hi {OPEN[:12]}", "hi", 1),
        (f"of a cut block\n{CLOSE}\nhi", "hi", 1),
        ("< Memory-Context >secret</ memory-context>hi", "hi", 1),
        (f"{OPEN}a{OPEN}b{CLOSE}c{CLOSE}hi", "hi", 1),
        ("1 < 2 and a <b>bold</b> word", "1 < 2 and a <b>bold</b> word", 0),
        ("", "", 0),
    ],
)
def test_marked_blocks_are_taken_out(text, left, removed):
    result = strip(text)
    assert (result.text, result.removed) == (left, removed)


@given(
    st.text(),
    st.sampled_from(["", OPEN, CLOSE, "</MEMORY-CONTEXT", "< / memory-context>", "＜memory-context＞"]),
)
def test_nothing_inside_a_block_gets_out_of_it(text, forged):
    assert strip(f"{fence(text + forged + text)}\nhi").text == "hi"


@given(st.text(alphabet="<>/memory-context \n", max_size=60))
def test_stripping_twice_changes_nothing(text):
    once = strip(text).text
    assert "<memory-context>" not in once.lower()


@pytest.mark.parametrize(
    ("answer", "left"),
    [
        ("You love jasmine tea. Shall I order some?", "Shall I order some?"),
        ("I LOVE jasmine TEA!", ""),
        ("You love green tea from Uji.", "You love green tea from Uji."),
        ("Sure.\n- I love jasmine tea (2023-05-07)\nAnything else?", "Sure.\nAnything else?"),
        ("Sure.\n- 2023-05-07: I love jasmine tea\nAnything else?", "Sure.\nAnything else?"),
        ("您对花生过敏。今天吃面吗？", "今天吃面吗？"),
        ("Tea is grown in Fujian.", "Tea is grown in Fujian."),
    ],
)
def test_sentences_that_repeat_what_was_recalled_are_taken_out(answer, left):
    injected = ["- 2023-05-07: I love jasmine tea", "I love jasmine tea", "我对花生过敏"]
    result = strip_echoes(answer, injected)
    assert result.text == left
    assert (result.removed > 0) == (answer != left)


def test_nothing_is_an_echo_of_nothing():
    assert strip_echoes("I love tea.", []).removed == 0
    assert strip_echoes("...", ["..."]).text == "..."


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("What does <memory-context> mean?", "What does  mean?"),
        ("What does </memory-context> mean?", "What does  mean?"),
        ("What is a <memory-context and why?", "What is a  and why?"),
        (f"What does <memory-context> mean? {BLOCK} hi", "What does  mean?  hi"),
        ("See <memory-<memory-context>context> here", "See  here"),
        # Like ours, and never closed or never opened.
        ('hi <memory-context note="x"> secret', "hi"),
        ("hi <memory-context>\nsecret", "hi"),
        ("hi <memory-context> \nsecret", "hi"),
        ("secret\n  </memory-context> hi", "hi"),
    ],
)
def test_only_a_mark_like_ours_takes_along_what_stands_beside_it(text, left):
    assert strip(text).text == left


def test_marks_that_close_up_to_new_ones_again_and_again_are_made_harmless():
    nested = "<memory-" * 50 + "<memory-context>" + "context>" * 50
    assert "<memory-context" not in strip(nested).text


@pytest.mark.parametrize(
    "text",
    [
        "<" + " " * 125_000,
        "＜" + "\n" * 125_000,
        "<memory-context" * 8_500,
        "<memory-context>" * 8_000,
        "</memory-context>" * 7_500,
        "\n</memory-context>" * 7_000,
        "<memory-context>\n" * 7_500,
        "a" + "\u0301\u0316" * 62_500,
    ],
)
def test_marks_are_found_in_linear_time(text):
    with deadline():
        strip(text)
        fence(text)
        strip_echoes(text, [text[:2000]])


def test_repetitions_are_found_in_linear_time():
    with deadline():
        strip_echoes("x. " * 40_000, ["x. " * 40_000])
        strip_echoes("".join(f"a b c{n}. " for n in range(15_000)), [f"a b d{n}" for n in range(15_000)])
