"""Text is folded for comparison, whatever it is made of."""

from __future__ import annotations

import pytest

from recall.logic.folding import folded, without_accents
from recall.logic.lexemes import lexemes_of, query_terms
from tests.deadline import deadline


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("ＡＢＣ１２", "abc12"),
        ("記憶", "记忆"),
        ("I’m", "i'm"),
        ("so\u00adft", "soft"),
        ("Straße", "strasse"),
    ],
)
def test_what_reads_the_same_is_folded_to_the_same(text, same):
    assert folded(text) == same


def test_accents_stay_for_the_stemmer_and_go_afterwards():
    assert folded("Café") == "café"
    assert without_accents(folded("Café")) == "cafe"


@pytest.mark.parametrize("text", ["a" + "\u0301\u0316" * 125_000, "\u0344" * 250_000, "é" * 250_000])
def test_folding_takes_linear_time(text):
    with deadline():
        folded(text)
        lexemes_of(text)
        query_terms(text)
