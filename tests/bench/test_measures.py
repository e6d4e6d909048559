import pytest

from bench.bm25 import Bm25, bigrams, english_words
from bench.measures import first_of_each, grade, hit, recall, reciprocal


def test_recall_counts_what_is_meant_among_the_first() -> None:
    ranked = ["a", "b", "c", "d"]
    assert recall(ranked, {"b", "d"}, 2) == 0.5
    assert recall(ranked, {"b", "d"}, 4) == 1
    assert recall(ranked, {"x"}, 4) == 0


def test_a_hit_and_the_reciprocal_rank_end_at_k() -> None:
    ranked = ["a", "b", "c"]
    assert hit(ranked, {"c"}, 2) == 0
    assert hit(ranked, {"c", "z"}, 3) == 1
    assert reciprocal(ranked, {"c", "b"}, 3) == 0.5
    assert reciprocal(ranked, {"c"}, 2) == 0


def test_sessions_are_counted_once_in_the_order_of_their_best_turn() -> None:
    assert first_of_each(["s2", "s1", "s2", "s3"]) == ["s2", "s1", "s3"]


def test_grades_are_means_over_questions() -> None:
    session_of = {"a": "1", "b": "1", "c": "2", "d": "3"}
    found = grade([["a", "b"], ["c"]], [("b",), ("d",)], session_of=session_of)
    assert (found.questions, found.at5, found.hit10, found.rank10) == (2, 0.5, 0.5, 0.25)
    assert found.sessions5 == 0.5


def test_rankings_and_questions_must_belong_together() -> None:
    with pytest.raises(ValueError):
        grade([["a"]], [("a",), ("b",)], session_of={"a": "1", "b": "1"})


def test_bm25_prefers_the_rare_word_and_leaves_out_what_shares_none() -> None:
    texts = {"1": "tea and tea", "2": "tea with lemons", "3": "a walk"}
    assert Bm25(texts, english_words).ranked("lemon tea", 9) == ["2", "1"]


def test_chinese_is_cut_into_pairs_and_latin_words_stay_whole() -> None:
    assert bigrams("我买了Kindle，3000块") == ["我买", "买了", "kindle", "3000", "块"]
