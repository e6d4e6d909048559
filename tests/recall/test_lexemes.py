"""What text becomes in the index, and what a question looks for in it."""

from datetime import date

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recall.logic import lexemes as module
from recall.logic.folding import folded
from recall.logic.lexemes import (
    MAX_LEXEME_CHARS,
    MAX_LEXEMES,
    MAX_QUERY_TERMS,
    language_of,
    lexemes_of,
    name_terms,
    query_terms,
    size_of,
    speaker_lexemes,
)
from recall.logic.marks import ASKS, TIMED
from recall.logic.weights import Frequencies, idf, rare_terms, score, term_weights


def finds(question: str, text: str) -> bool:
    return bool(set(query_terms(question).terms) & lexemes_of(text).keys())


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("which hobbies", "My hobby is climbing."),
        ("咖啡", "我喜欢喝咖啡"),
        ("我的猫", "养了一只猫"),
        ("貓", "小猫病了"),
        ("喝茶", "喝了一杯茶"),
        ("iPhone", "我买了iPhone手机"),
        ("ＡＢＣ１２３", "abc123"),
        ("v1.2", "Released v1.2 today"),
        ("foo_bar", "call foo_bar(x)"),
        ("bar", "call foo_bar(x)"),
        ("bob@example.com", "mail bob@example.com"),
        ("request parser", "def parseRequest(body):"),
        ("example", "see https://example.com/docs?x=1"),
        ("C++", "We write C++ here."),
        ("1000", "It cost 1,000 euros"),
        ("email", "my e-mail"),
        ("Anna's", "Anna came"),
        ("Katzen", "Die Katzen und der Hund sind bei mir"),
        ("Wer hat eine Katze und wo ist sie?", "Die Katzen sind bei mir und nicht bei dir"),
        ("Où est mon école?", "Les écoles sont dans la ville"),
        ("кошка", "у меня две кошки"),
        ("naive", "a naïve idea"),
        ("한국", "한국어 공부"),
        ("🎉", "Party 🎉!"),
        ("to be or not to be", "to be or not to be"),
    ],
)
def test_a_question_finds_the_text(question, text):
    assert finds(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("When did she go?", "When it rains, did you see?"),
        ("What kind of tea?", "kind of you"),
        ("什么时候去爬山", "什么时候吃饭"),
        ("I will, won't I?", "They won"),
    ],
)
def test_words_of_asking_find_nothing(question, text):
    assert not finds(question, text)


@pytest.mark.parametrize(
    "written",
    [
        "2023-05-02", "2023/5/2", "2 May 2023", "2nd of May, 2023", "May 2, 2023", "May 2nd 2023",
        "2023年5月2日", "2023年5月2号", "二〇二三年五月二日", "2023年5月2號", "2. Mai 2023", "2 mai 2023",
        "2 de mayo de 2023", "2 мая 2023",
    ],
)  # fmt: skip
def test_a_date_is_one_lexeme_however_it_is_written(written):
    found = lexemes_of(f"Seen {written}!")
    assert {"d:2023-05-02", "md:05-02", "m:2023-05", "mon:05", "y:2023"} <= found.keys()
    assert set(query_terms(written).terms) <= lexemes_of("x", when=date(2023, 5, 2)).keys()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("in May", {"mon:05"}),
        ("五月", {"mon:05"}),
        ("5月2号", {"md:05-02", "mon:05"}),
        ("May 2023", {"m:2023-05", "mon:05", "y:2023"}),
        ("I may go", set()),
        ("the 31st of February", set()),
        ("2023-13-40", set()),
        ("version 1.2.3", set()),
        ("3个月", set()),
    ],
)
def test_dates_say_what_they_say_and_no_more(text, expected):
    assert {
        one for one in lexemes_of(text) if one.partition(":")[0] in ("d", "md", "m", "mon", "y")
    } == expected


@pytest.mark.parametrize(
    ("text", "weekday"), [("on Friday", "w:5"), ("上周五", "w:5"), ("星期天", "w:7"), ("礼拜一", "w:1")]
)
def test_weekdays_are_one_lexeme_in_every_language(text, weekday):
    assert weekday in lexemes_of(text)


def test_the_speaker_and_the_record_s_own_day_are_found_too():
    found = lexemes_of("We went there", when=date(2024, 1, 3), speaker="Anna Berg")
    assert {"d:2024-01-03", "s:anna_berg", "s:anna", "s:berg"} <= found.keys()
    assert query_terms("What did Anna do?", speakers=["Anna"]).speakers == ("s:anna",)
    assert query_terms("x", days=[date(2024, 1, 3)]).terms == ("x", "d:2024-01-03")
    assert speaker_lexemes("王芳") == ("s:王芳",)
    assert speaker_lexemes("  !") == ()


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Where were you?", {ASKS}),
        ("你去哪里了？", {ASKS}),
        ("你喜欢吗", {ASKS}),
        ("Nice, right? [image: a photo of a dog]", {ASKS}),
        ("I went yesterday.", {TIMED}),
        ("上周去了", {TIMED}),
        ("On 2 May 2023 we met", {TIMED}),
        ("Right? Yes.", set()),
    ],
)
def test_marks_tell_what_kind_of_thing_a_text_is(text, marks):
    assert {one for one in lexemes_of(text) if one.startswith("is:")} == marks


def test_counts_and_size():
    found = lexemes_of("tea, tea and coffee", when=date(2024, 1, 3), speaker="Bob")
    assert found["tea"] == 2
    assert size_of(found) == 2


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("where is the dog", "english"),
        ("Katzen", "english"),
        ("ich habe nicht viel zeit und du", "german"),
        ("je ne sais pas où est le chat", "french"),
        ("¿dónde está el perro de mi hermana?", "spanish"),
        ("non so dove è il gatto della nonna", "italian"),
        ("não sei onde está o gato da minha avó", "portuguese"),
    ],
)
def test_the_language_is_english_unless_another_is_clear(text, language):
    assert language_of(folded(text)) == language


def test_limits_hold_for_long_texts():
    assert len(lexemes_of(" ".join(f"word{n}" for n in range(9000)))) <= MAX_LEXEMES
    assert max(map(len, lexemes_of("a" * 16_000 + " b" * 50 + "-x" * 5000))) <= MAX_LEXEME_CHARS
    terms = query_terms("first " + " ".join(f"mid{n}" for n in range(3000)) + " last").terms
    assert len(terms) == MAX_QUERY_TERMS
    assert "first" in terms


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
def test_every_lexeme_can_be_stored_and_whole_text_finds_itself(text):
    found = lexemes_of(text, speaker=text)
    for lexeme in (*found, *query_terms(text).terms, *name_terms(text)):
        assert 1 <= len(lexeme) <= MAX_LEXEME_CHARS
        assert "\x00" not in lexeme
        lexeme.encode("utf-8")
    terms = set(query_terms(text).terms)
    assert not terms or terms & found.keys()


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "' OR 1=1 --", "a & b | !c:*", "\u200b"])
def test_odd_queries_give_terms_or_none_but_never_fail(text):
    assert all(query_terms(text).terms)


def test_stemming_keeps_nothing_between_words():
    assert [module.stemmed(word, "english") for word in ("running", "runs", "run")] == ["run"] * 3
    assert module.stemmed("кошки", "english") == module.stemmed("кошка", "english")


def test_rare_terms_choose_and_common_ones_only_when_alone():
    known = Frequencies(1000, {"common": 900, "usual": 400, "s:anna": 500, "y:2023": 1000}, unknown=2)
    assert rare_terms(("common", "zebra", "usual", "s:anna"), known) == ("zebra",)
    assert rare_terms(("common", "usual", "y:2023"), known) == ("usual", "common")
    assert rare_terms(("y:2023",), known) == ("y:2023",)
    assert rare_terms((), known) == ()


def test_a_named_speaker_counts_by_who_spoke_not_by_the_name_in_the_text():
    query = query_terms("What did Anna paint?", speakers=["Anna"])
    weights = term_weights(query, Frequencies(100, {"s:anna": 50}), name_terms=name_terms("Anna"))
    assert weights.keys() == {"paint", "s:anna"}
    alone = term_weights(query_terms("Anna?"), Frequencies(100, {}), name_terms=name_terms("Anna"))
    assert alone.keys() == {"anna"}


def test_rarer_terms_and_shorter_records_score_higher():
    assert idf(1, 100) > idf(50, 100) > idf(100, 100) > 0
    assert idf(500, 100) == idf(100, 100)
    weights = {"zebra": 3.0, "tea": 1.0}
    words = np.asarray([weights["zebra"], weights["tea"], weights["zebra"], 0.0])
    points = score(words, size=np.asarray([10, 10, 100, 10])).tolist()
    assert points[0] > points[1] > points[3] == 0.0
    assert points[0] > points[2]
