from datetime import date

import numpy as np
import pytest

from bench.loading import record_lexemes
from bench.synthetic import OWNERS, SMALLEST, TOPIC_WORDS, WORDS, Corpus, share_of, sizes_of, vector_of
from recall.logic.lexemes import lexemes_of


@pytest.mark.parametrize("records", [10_000, 100_000, 1_000_000])
def test_sizes_add_up_and_are_like_zipfs(records: int) -> None:
    sizes = sizes_of(records)
    assert len(sizes) == OWNERS + 1
    assert sizes.sum() == records
    assert sizes[OWNERS - 1] == SMALLEST
    assert sizes[0] == sizes[:OWNERS].max() >= records / 20


def test_a_million_records_have_an_owner_of_fifty_thousand() -> None:
    assert sizes_of(1_000_000)[0] >= 50_000


def test_the_same_corpus_comes_each_time() -> None:
    first, second = Corpus(10_000).chunk(1, 500), Corpus(10_000).chunk(1, 500)
    assert first.texts == second.texts
    assert np.array_equal(first.vectors, second.vectors)
    assert np.array_equal(first.owners, second.owners)
    assert first.texts != Corpus(10_000).chunk(2, 500).texts


def test_places_number_an_owners_records() -> None:
    corpus = Corpus(10_000)
    places = corpus.place_of[corpus.owner_of == 3]
    assert places.tolist() == list(range(corpus.sizes[3]))


def test_vectors_are_unit_and_near_those_of_their_topic() -> None:
    one = vector_of(f"[1 May 2024] {TOPIC_WORDS[4]} {WORDS[7]}")
    same, other = vector_of(f"{TOPIC_WORDS[4]} {WORDS[9]}"), vector_of(f"{TOPIC_WORDS[5]} {WORDS[7]}")
    assert np.linalg.norm(one) == pytest.approx(1)
    assert one @ same > 0.35 > abs(one @ other) + 0.1


def test_common_words_are_common() -> None:
    texts = Corpus(10_000).chunk(0, 5000).texts
    for word in (WORDS[0], WORDS[20]):
        found = sum(word in text.split() for text in texts) / len(texts)
        assert found == pytest.approx(share_of(word), rel=0.25)


def test_loaded_records_have_the_lexemes_that_recall_would_give_them() -> None:
    when = date(2024, 5, 2)
    for text in Corpus(10_000).chunk(0, 300).texts:
        assert record_lexemes(text, when, "Ada") == {*lexemes_of(text, when=when, speaker="Ada")}
