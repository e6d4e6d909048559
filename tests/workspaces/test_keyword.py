from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.logic import folding
from tests.deadline import deadline
from workspaces.errors import BadInput
from workspaces.logic.keyword import Searchable, fold, score_passages, search, terms


def _lines(text: str, query: str, name: str = "MEMORY.md") -> list[int]:
    return [hit.line for hit in search([Searchable(name, text)], query)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("北京", ("北京",)),
        ("我喜欢北京", ("我喜", "喜欢", "欢北", "北京")),
        ("猫", ("猫",)),
        ("我的猫", ("我的", "的猫", "猫")),
        ("猫 和 狗", ("猫", "和", "狗")),
        ("北京 北京", ("北京",)),
        ("サーバー", ("サー", "ーバ", "バー")),
        ("ｶﾞｽ", ("ガス",)),
        ("서울여행", ("서울", "울여", "여행")),
        (unicodedata.normalize("NFD", "서울"), ("서울",)),
        ("台灣", ("台湾",)),
        ("Python编程", ("python", "编程")),
        ("１２３", ("123",)),
        ("foo_bar", ("foo_bar", "foo", "bar")),
        ("v1.2", ("v1.2", "v1", "2")),
        ("e-mail", ("e-mail", "e", "mail", "email")),
        ("bob@example.com", ("bob@example.com", "bob", "example", "com")),
        ("Alice’s CAFÉ", ("alice", "cafe")),
        ("C++", ("c++", "c")),
        ("What is the name of my dog?", ("name", "dog")),
        ("what is the", ("what", "is", "the")),
        ("☕", ("☕",)),
        ("हिन्दी", ("हिन्दी",)),
        ("กรุงเทพ", ("กร", "รุ", "ุง", "งเ", "เท", "ทพ")),
        ("", ()),
        ("\u200b", ()),
    ],
)
def test_a_query_is_taken_apart(query, found):
    assert terms(query) == found


CJK = (
    "我在北京大学学习计算机\n東京でラーメンを食べた\n서울에서 친구를 만났다\n我养了一只猫\n電話は１２３４です"
)


@pytest.mark.parametrize(
    ("query", "line"),
    [
        ("北京", 1),
        ("京", 1),
        ("计算机科学", 1),
        ("計算機", 1),
        ("北京大学的学习", 1),
        ("东京", 2),
        ("ラーメン", 2),
        ("ﾗｰﾒﾝ", 2),
        ("麺", None),
        ("친구", 3),
        ("서울", 3),
        ("서울친구", 3),
        ("猫", 4),
        ("我的猫", 4),
        ("貓", 4),
        ("1234", 5),
        ("１２３４", 5),
        ("电话", 5),
    ],
)
def test_one_two_and_more_characters_without_spaces_are_found(query, line):
    found = _lines(CJK, query)
    assert found[:1] == ([line] if line else [])


@given(st.text(alphabet="一二三四五東京大学あいうカキク가나다", min_size=1, max_size=12), st.data())
def test_any_stretch_of_a_text_without_spaces_finds_it(text, data):
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    assert _lines(f"x\n{text}\ny", text[start:end]) == [2]


@pytest.mark.parametrize(
    ("line", "query"),
    [
        ("Her hobby is tennis", "hobbies"),
        ("Her hobbies are many", "hobby"),
        ("She likes running", "run"),
        ("She ran and runs", "running"),
        ("He preferred tea", "prefers"),
        ("two boxes", "boxing"),
        ("moved house", "moves"),
        ("uses vim", "used"),
        ("send an e-mail", "email"),
        ("send an email", "e-mail"),
        ("set foo_bar to 3", "foo"),
        ("set foo_bar to 3", "foo_bar"),
        ("at bob@example.com", "bob@example.com"),
        ("at bob@example.com", "example"),
        ("on v1.2 now", "v1.2"),
        ("in a café", "cafe"),
        ("in a cafe", "Café"),
        ("Straße 5", "STRASSE"),
        ("ёлка", "елка"),
        ("Bob’s dog", "bob's"),
        ("so\u00adft hy\u200bphen", "soft hyphen"),
        ("a ☕ please", "☕"),
    ],
)
def test_a_word_is_found_in_its_other_forms(line, query):
    assert _lines(line, query) == [1]


@pytest.mark.parametrize(
    ("line", "query"),
    [("concatenate", "cat"), ("the string", "str"), ("tearoom", "tea"), ("king", "k")],
)
def test_a_part_of_a_word_is_no_match(line, query):
    assert _lines(line, query) == []


def test_terms_are_alternatives_and_more_of_them_rank_higher():
    text = "tea and cake\nonly tea\nonly cake\nneither"
    assert _lines(text, "tea cake biscuits") == [1, 2, 3]


def test_rare_terms_count_more_than_frequent_ones():
    text = "\n".join(["project review"] * 8 + ["project kickoff"])
    assert _lines(text, "kickoff project")[0] == 9


def test_the_word_itself_ranks_above_another_form_of_it():
    assert _lines("the hobby\nx\nthe hobbies", "hobbies") == [3, 1]


def test_files_of_the_agent_rank_above_notes_and_newer_notes_first():
    names = ["memory/2024-01-01.md", "memory/2024-03-01.md", "notes.md", "SOUL.md", "PROFILE.md"]
    hits = search([Searchable(name, "likes tea") for name in names], "tea")
    assert [hit.name for hit in hits] == [
        "PROFILE.md",
        "SOUL.md",
        "notes.md",
        "memory/2024-03-01.md",
        "memory/2024-01-01.md",
    ]


def test_a_much_better_match_in_a_note_still_wins():
    files = [Searchable("MEMORY.md", "tea"), Searchable("memory/2024-01-01.md", "green tea from Uji")]
    assert search(files, "green tea Uji")[0].name == "memory/2024-01-01.md"


def test_the_order_does_not_depend_on_that_of_the_files():
    files = [Searchable(f"{name}.md", "tea\ntea") for name in "cab"]
    assert search(files, "tea") == search(files[::-1], "tea")


def test_hits_are_limited_in_a_file_and_in_all():
    files = [Searchable(f"{n}.md", "tea\n" * 10) for n in range(10)]
    assert len(search(files, "tea")) == 20
    assert len(search(files, "tea", limit=7)) == 7
    assert len(search(files[:1], "tea")) == 5
    assert len(search(files[:1], "tea", per_file=2)) == 2


@pytest.mark.parametrize(
    ("line", "query", "snippet"),
    [
        ("She likes Tea a lot", "tea", "She likes [[Tea]] a lot"),
        ("我住在北京大学旁边", "北京大学", "我住在[[北京大学]]旁边"),
        ("茶茶茶 x 茶茶", "茶茶", "[[茶茶茶]] x [[茶茶]]"),
        ("ＴＥＡ and ｶﾞｽ", "tea ガス", "[[ＴＥＡ]] and [[ｶﾞｽ]]"),
        ("im Café\u0301 Straße", "strasse", "im Café\u0301 [[Straße]]"),
        ("x" * 100 + " tea " + "y" * 100, "tea", None),
        ("tea " + "y" * 100, "tea", None),
        ("x" * 100 + " tea", "tea", None),
        ("茶" * 200, "茶茶", None),
        ("tea " + "x " * 100 + "green tea from Uji", "green tea Uji", None),
    ],
)
def test_the_snippet_shows_the_match_on_the_original_text(line, query, snippet):
    (hit,) = search([Searchable("a.md", line)], query)
    if snippet is not None:
        assert hit.snippet == snippet
    bare = hit.snippet.replace("[[", "").replace("]]", "")
    assert "[[" in hit.snippet
    assert len(bare) <= 80
    assert bare.strip("…").strip() in line


def test_the_snippet_is_around_the_best_place_of_a_long_line():
    line = "tea " + "x " * 100 + "green tea from Uji " + "y " * 100
    (hit,) = search([Searchable("a.md", line)], "green tea Uji")
    assert "[[green]] [[tea]] from [[Uji]]" in hit.snippet


@given(
    st.text(alphabet="abé ß北京ｶﾞİ\u200b'-_.猫ﬁ가\u1100\u1161", max_size=120),
    st.text(alphabet="abé ß北京ｶﾞİ'-_.猫ﬁ가", min_size=1, max_size=12),
)
def test_snippets_are_always_a_stretch_of_the_line_with_marks(line, query):
    if not query.strip():
        return
    for hit in search([Searchable("a.md", line)], query):
        bare = hit.snippet.replace("[[", "").replace("]]", "")
        assert re.search(r"\[\[.+?\]\]", hit.snippet)
        assert bare.removeprefix("…").removesuffix("…") in line
        assert len(bare) <= 80


@given(st.text(max_size=60))
def test_folding_is_stable_and_every_word_finds_its_own_line(text):
    assert fold(fold(text)) == fold(text)
    line = text.replace("\n", " ")
    if terms(line) and line.strip():
        assert _lines(line, line) == [1]


@pytest.mark.parametrize("query", ["", "   ", "x" * 513])
def test_a_query_without_a_sensible_length_is_refused(query):
    with pytest.raises(BadInput, match="1 to 512") as refused:
        search([], query)
    assert refused.value.code == "bad_query"


def test_a_query_of_512_characters_is_searched():
    assert _lines("tea", "tea " * 128) == [1]


def test_a_query_of_nothing_visible_finds_nothing():
    assert _lines("tea", "\u200b") == []


def test_passages_are_scored_by_what_they_answer():
    passages = ["## Food\n- likes green tea", "## Work\n- chemist", "## Drinks\n- coffee, sometimes tea", ""]
    scores = score_passages(passages, "Does she like green tea?")
    assert scores[0] > scores[2] > 0
    assert scores[1] == scores[3] == 0.0


def test_passages_are_scored_in_chinese_too():
    scores = score_passages(["我喜欢喝绿茶", "我在北京工作", "他喜欢足球"], "你喜歡什麼茶?")
    assert scores[0] > scores[2] > scores[1] == 0.0


@pytest.mark.parametrize("query", ["", "x" * 1_000_000, "?!"])
def test_any_message_may_be_scored_against(query):
    assert score_passages(["likes tea"], query) == [0.0]


def test_the_question_at_the_end_of_a_long_message_counts():
    assert score_passages(["likes tea"], "lorem ipsum " * 10_000 + "tea?")[0] > 0


def test_scoring_no_passages_gives_no_scores():
    assert score_passages([], "tea") == []


def test_the_table_of_traditional_characters_is_sound():
    traditional, simplified = folding.TRADITIONAL[::2], folding.TRADITIONAL[1::2]
    assert len(traditional) == len(simplified) > 1000
    assert len(set(traditional)) == len(traditional)
    assert not set(traditional) & set(simplified)  # a fold is final
    simplified.encode("gb2312")  # fails on a character that is not in use in simplified text


@pytest.mark.parametrize(
    "text",
    [
        "a" + "\u0301\u0316" * 60_000,
        "\u0928" + "\u093c" * 120_000,
        "tea " * 30_000,
        "茶" * 120_000,
        "1-" * 60_000,
    ],
)
def test_a_text_is_searched_in_linear_time(text):
    with deadline():
        search([Searchable("a.md", text)], "tea 茶茶")
        score_passages([text], text)
