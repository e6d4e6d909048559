"""Replies without a model: from what is remembered, and nothing else."""

# ruff: noqa: E501 - a row of a table is one line
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.prompts.reply import Reply, ReplyGiven, relevant
from tests.deadline import deadline

RECALLED = (
    "--- PROFILE.md ---\n# Profile\n\n## About\n\n- **Home**: Berlin (2024-05-01)\n- **Work**: nurse (2024-05-01)",
    "- Likes jasmine tea (2024-05-01)\n- Allergic to peanuts (2024-05-01)\n- 喜欢喝茉莉花茶（2024-05-01）\n- **生日**：5月3日（2024-05-01）",
    "- (2024-05-03) I'm flying to Rome next week (2024-05-06 to 2024-05-12).",
)


def reply(message, recalled=RECALLED):
    return Reply().rules(ReplyGiven("system", recalled, (), message)).text


@pytest.mark.parametrize(
    ("message", "line"),
    [
        ("Which tea do I like?", "Likes jasmine tea (2024-05-01)"),
        ("What am I allergic to?", "Allergic to peanuts (2024-05-01)"),
        ("Where do I live?", "**Home**: Berlin (2024-05-01)"),
        ("What is my job?", "**Work**: nurse (2024-05-01)"),
        ("When do I fly to Rome?", "(2024-05-03) I'm flying to Rome next week (2024-05-06 to 2024-05-12)."),
        ("我喜欢喝什么茶？", "喜欢喝茉莉花茶（2024-05-01）"),
        ("我的生日是什么时候？", "**生日**：5月3日（2024-05-01）"),
        ("我住在哪里？", "**Home**: Berlin (2024-05-01)"),
    ],
)
def test_the_best_recalled_line_is_quoted_with_its_date(message, line):
    answer = reply(message)
    quoted = [part[2:] for part in answer.splitlines() if part.startswith("- ")]
    assert quoted[0] == line
    assert ("我的记录" in answer) == (not message.isascii())
    assert ("没有接入模型" in answer) or ("No model is connected" in answer)


@pytest.mark.parametrize(
    "message", ["What's the capital of France?", "写一首关于春天的诗", "Who won the cup?"]
)
def test_what_is_not_on_record_is_not_answered(message):
    answer = reply(message)
    assert not any(part.startswith("- ") for part in answer.splitlines())
    assert "nothing on record" in answer or "没有关于这一点" in answer


def test_nothing_recalled_is_nothing_told():
    assert "nothing on record" in reply("Where do I live?", recalled=())


def test_everything_known_can_be_asked_for():
    assert "**Home**: Berlin" in reply("What do you know about me?")
    assert "**Home**: Berlin" in reply("你知道关于我的什么？")


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        ("Please remember that I hate mint.", "Noted, to be kept in memory: I hate mint."),
        ("请记住我讨厌薄荷", "好的，会记入记忆：我讨厌薄荷"),
        ("Remember this.", "What should I remember?"),
        ("I moved to Paris.", "Understood."),
        ("我住在上海。", "明白。"),
        ("Hello!", "Hello."),
        ("你好", "你好。"),
    ],
)
def test_what_is_told_is_acknowledged(message, answer):
    assert reply(message, recalled=()).startswith(answer)


@given(st.text(max_size=80), st.lists(st.text(max_size=60), max_size=5))
def test_every_quoted_line_was_recalled(message, recalled):
    lines = {line.strip() for block in recalled for line in block.splitlines()}
    assert set(relevant(message, tuple(recalled))) <= lines
    assert reply(message, tuple(recalled))


def test_the_question_to_a_model_is_what_was_assembled():
    given_turn = ReplyGiven("the system text", RECALLED, (), "hi")
    assert (Reply().system(given_turn), Reply().user(given_turn)) == ("the system text", "hi")


@pytest.mark.parametrize(
    "text", ["a. " * 43_500, "I ate. " * 18_500, "I" + " " * 130_000, "我" * 130_000, "e\u0301" * 65_000]
)
def test_a_very_long_message_is_answered_in_linear_time(text):
    with deadline():
        assert reply(text)
