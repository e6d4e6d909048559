from datetime import UTC, datetime

import pytest

from bench.locomo import SORTS, messages, places_in, questions_of, said_at

TALK = {
    "sample_id": "c1",
    "conversation": {
        "speaker_a": "Ann",
        "speaker_b": "Bo",
        "session_2_date_time": "1:05 am on 25 May, 2023",
        "session_2": [{"speaker": "Bo", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a kite"}],
        "session_10_date_time": "7:48 pm on 21 May, 2023",
        "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Hello"}],
        "session_11_date_time": "7:48 pm on 22 May, 2023",
    },
    "qa": [
        {"question": "What?", "category": 4, "evidence": ["D2:01"]},
        {"question": "Where?", "category": 1, "evidence": ["D99:9"]},
        {"question": "Who?", "category": 5},
    ],
}


def test_turns_keep_their_session_date_speaker_and_picture() -> None:
    first, second = messages(TALK)
    assert (first.key, first.conversation, first.speaker) == ("c1:D2:1", "c1:2", "Bo")
    assert first.text == "Look! [image: a kite]"
    assert (first.at, second.key) == ("2023-05-25T01:05:00+00:00", "c1:D10:1")


def test_questions_without_an_answer_in_the_sample_are_left_out() -> None:
    (question,) = questions_of(TALK)
    assert (question.who, question.sort, question.meant) == ("c1/Ann", SORTS[4], ("c1:D2:1",))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("D1:3", ["D1:3"]),
        ("D8:6; D9:17", ["D8:6", "D9:17"]),
        ("D:11:26", ["D11:26"]),
        ("D30:05", ["D30:5"]),
        ("D", []),
    ],
)
def test_evidence_is_read_as_it_is_meant(written: str, meant: list[str]) -> None:
    assert places_in(written) == meant


def test_a_sessions_date() -> None:
    assert said_at("12:09 am on 13 September, 2023") == datetime(2023, 9, 13, 0, 9, tzinfo=UTC)
