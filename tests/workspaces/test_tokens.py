"""The token estimate."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.logic.tokens import cjk_share, estimate, estimate_message, estimate_messages


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("记忆", 2),
        ("覚えて", 3),
        ("기억", 2),
        ("，。", 2),
        ("\U00020000", 1),
        ("ééé", 2),
        ("привет", 4),
        ("记忆 ok", 3),
    ],
)
def test_each_script_has_its_price(text, tokens):
    assert estimate(text) == tokens


def test_a_message_costs_four_more():
    assert estimate_message("abcd") == 5
    assert estimate_messages(["abcd", "记忆"]) == 11
    assert estimate_message("abcd", count=len) == 8


@given(st.text(), st.text())
def test_two_texts_together_never_cost_more_than_apart_nor_less_than_either(first, second):
    assert (
        max(estimate(first), estimate(second))
        <= estimate(first + second)
        <= estimate(first) + estimate(second)
    )


def test_the_share_of_cjk_is_of_letters_only():
    assert cjk_share("记忆 12!") == 1.0
    assert cjk_share("ab记忆") == 0.5
    assert cjk_share("123") == 0.0
