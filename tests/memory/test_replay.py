"""Replay: what files it reads, that it goes on where it was, and what it says of a bad file."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from memory.logic.replay import read_conversations
from memory.management.commands import replay
from tests.factories import World
from tests.memory.bridge import Bridge
from workspaces.errors import BadInput

OWN = {
    "conversationId": "c1",
    "endUserId": "pia",
    "ownerName": "Pia",
    "messages": [
        {"content": "I keep bees.", "at": "2025-05-04T10:00:00Z"},
        {"role": "assistant", "content": "How many hives?"},
        {"role": "user", "speaker": "Tom", "content": "She has nine.", "externalId": "tom-1"},
    ],
}
SESSIONS = {
    "sample_id": "talk-7",
    "conversation": {
        "speaker_a": "Pia",
        "speaker_b": "Tom",
        "session_2_date_time": "12:05 am on 1 March, 2024",
        "session_2": [{"speaker": "Tom", "dia_id": "D2:1", "text": "Still up?"}],
        "session_1_date_time": "9:30 pm on 29 February, 2024",
        "session_1": [
            {"speaker": "Pia", "dia_id": "D1:1", "text": "I have moved nine hives to the lime trees."},
            {"speaker": "Tom", "dia_id": "D1:2", "text": ""},
            {"speaker": "Pia", "dia_id": "D1:3", "text": "Look.", "blip_caption": "a photo of a beehive"},
        ],
        "session_3_date_time": "8:00 am on 2 March, 2024",
        "session_10": [],
        "session_10_date_time": "8:00 am on 9 March, 2024",
    },
    "qa": [{"question": "How many hives?", "answer": 9}],
}


# --- reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [json.dumps([OWN]), json.dumps(OWN), f"\n{json.dumps(OWN)}\n\n", json.dumps(OWN, indent=2)],
    ids=["a list", "an object", "a line", "an indented object"],
)
def test_our_own_form_is_read_from_a_list_an_object_and_lines(text: str) -> None:
    (played,) = read_conversations(text)
    assert (played.conversation_id, played.end_user_id, played.owner_name) == ("c1", "pia", "Pia")
    assert played.messages == (
        {"role": "user", "content": "I keep bees.", "at": "2025-05-04T10:00:00Z", "externalId": "replay:1"},
        {"role": "assistant", "content": "How many hives?", "externalId": "replay:2"},
        {"role": "user", "content": "She has nine.", "speaker": "Tom", "externalId": "tom-1"},
    )


def test_lines_are_conversations_of_their_own() -> None:
    other = OWN | {"conversationId": "c2"}
    played = read_conversations("\n".join(map(json.dumps, (OWN, other))))
    assert [one.conversation_id for one in played] == ["c1", "c2"]


def test_sessions_are_read_in_their_order_with_speakers_dates_and_pictures() -> None:
    first, second = read_conversations(json.dumps([SESSIONS]))
    assert (first.conversation_id, second.conversation_id) == ("talk-7:session_1", "talk-7:session_2")
    assert {first.end_user_id, second.end_user_id} == {"talk-7/Pia"}
    assert [(one["speaker"], one["content"], one["at"], one["externalId"]) for one in first.messages] == [
        ("Pia", "I have moved nine hives to the lime trees.", "2024-02-29T21:30:00+00:00", "talk-7:D1:1"),
        ("Pia", "Look. [shares a photo of a beehive]", "2024-02-29T21:31:00+00:00", "talk-7:D1:3"),
    ]
    assert second.messages[0]["at"] == "2024-03-01T00:05:00+00:00"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{'a': 1}", "Line 1 is not JSON"),
        (json.dumps(OWN) + "\n{half", "Line 2 is not JSON"),
        ("[1]", "Item 1 is int"),
        ("null", "Item 1 is NoneType"),
        (json.dumps([OWN, {"conversationId": "c2"}]), "Item 2 lacks endUserId, messages"),
        (json.dumps(OWN | {"messages": "hello"}), "Item 1 lacks a list of messages"),
        (
            json.dumps(OWN | {"messages": [{"content": "a"}, {"content": ""}]}),
            "Message 2 of item 1 has no content",
        ),
        (json.dumps(OWN | {"messages": ["hello"]}), "Message 1 of item 1 has no content"),
        (
            json.dumps(
                {"sample_id": "x", "conversation": {"session_1": [], "session_1_date_time": "yesterday"}}
            ),
            "Session 1 of x has the date 'yesterday'",
        ),
        (
            json.dumps({"sample_id": "x", "conversation": {"session_1": "hello"}}),
            "Session 1 of x is str; a list is wanted",
        ),
        (
            json.dumps(
                {
                    "sample_id": "x",
                    "conversation": {
                        "session_1": [{"text": "Hi."}],
                        "session_1_date_time": "9:30 pm on 29 February, 2024",
                    },
                }
            ),
            "Message 1 of session 1 of x has no speaker",
        ),
    ],
)
def test_a_bad_file_is_told_with_the_place(text: str, told: str) -> None:
    with pytest.raises(BadInput, match="^" + told.replace("(", r"\(")):
        read_conversations(text)


# --- playing ----------------------------------------------------------------------------------------------


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    monkeypatch.setattr(settings, "DATA_DIR", folder)
    return folder


def play(path: Path, world: World, **options) -> str:
    out = io.StringIO()
    call_command(
        "replay",
        path,
        url="http://product",
        token=world.bob.token,
        agent=world.agent_id,
        stdout=out,
        **options,
    )
    return out.getvalue()


def told(world: World, who: str, conversation: str) -> list[dict]:
    path = f"/api/v1/memory/{world.agent_id}/conversations/{conversation}"
    answer = world.bob.client().get(path, {"endUserId": who, "pageSize": 200})
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


def test_a_file_is_stored_with_its_speakers_and_dates_and_remembered(
    acme: World, data_dir, tmp_path, monkeypatch
):
    Bridge().install(monkeypatch)
    path = tmp_path / "talk.json"
    path.write_text(json.dumps([SESSIONS]))
    assert "3 messages of 2 conversations; 3 were new." in play(path, acme, summarize=True)
    stored = told(acme, "talk-7/Pia", "talk-7:session_1")
    assert [(row["speaker"], row["at"]) for row in stored] == [
        ("Pia", "2024-02-29T21:30:00Z"),
        ("Pia", "2024-02-29T21:31:00Z"),
    ]
    note = acme.bob.client().get(
        f"/api/v1/agents/{acme.agent_id}/workspace/files/memory/2024-02-29.md", {"endUserId": "talk-7/Pia"}
    )
    assert "21:30 Pia: I have moved nine hives to the lime trees." in note.json()["content"]


def test_a_product_that_dies_costs_one_batch_and_the_next_run_sends_the_rest_only(
    acme: World, data_dir, tmp_path, monkeypatch
):
    monkeypatch.setattr(replay, "BATCH", 2)
    messages = [{"content": f"Sentence number {number}."} for number in range(7)]
    path = tmp_path / "talk.jsonl"
    path.write_text(json.dumps(OWN) + "\n" + json.dumps(OWN | {"conversationId": "c2", "messages": messages}))
    bridge = Bridge(dies_after=3).install(monkeypatch)  # both batches of c1, the first of c2
    with pytest.raises(
        CommandError, match=r"cannot be reached \(Connection refused\).* goes on where it was"
    ):
        play(path, acme)
    assert len(told(acme, "pia", "c2")) == 2
    bridge.dies_after = None
    bridge.requests.clear()
    assert "10 messages of 2 conversations; 5 were new." in play(path, acme)
    sent = [json.loads(request.content) for request in bridge.requests]
    assert [(body["conversationId"], len(body["messages"])) for body in sent] == [
        ("c2", 2),
        ("c2", 2),
        ("c2", 1),
    ]
    assert [row["content"] for row in told(acme, "pia", "c2")] == [one["content"] for one in messages]
    bridge.requests.clear()
    assert "0 were new" in play(path, acme)
    assert not bridge.requests


def test_an_answer_that_was_lost_stores_nothing_twice(acme: World, data_dir, tmp_path, monkeypatch):
    bridge = Bridge().install(monkeypatch)
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(OWN))
    play(path, acme)
    (kept,) = (data_dir / "replay").iterdir()
    kept.write_text("{half")  # as after a full disk: it counts as nothing sent
    assert "0 were new" in play(path, acme)
    assert "0 were new" in play(path, acme, restart=True)
    assert len(bridge.requests) == 3
    assert len(told(acme, "pia", "c1")) == 3


def test_another_product_gets_all_of_it(acme: World, umbra: World, data_dir, tmp_path, monkeypatch):
    Bridge().install(monkeypatch)
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(OWN))
    assert "3 were new" in play(path, acme)
    out = io.StringIO()
    call_command(
        "replay", path, url="http://product", token=umbra.mallory.token, agent=umbra.agent_id, stdout=out
    )
    assert "3 were new" in out.getvalue()


def test_a_refusal_is_shown_with_its_reason(acme: World, data_dir, tmp_path, monkeypatch):
    Bridge().install(monkeypatch)
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(OWN | {"messages": [{"role": "wizard", "content": "Abracadabra"}]}))
    with pytest.raises(CommandError, match=r"was answered 400.*wizard"):
        play(path, acme)


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"caf\xe9", "cannot be read"), (b"[1]", "Item 1 is int"), (None, "No such file")],
    ids=["Latin-1", "no conversations", "no file"],
)
def test_a_file_that_cannot_be_played_is_named(acme: World, data_dir, tmp_path, content, reason):
    path = tmp_path / "talk.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CommandError, match=f"{path}.*{reason}"):
        play(path, acme)


def test_without_a_first_run_it_says_what_to_name(data_dir, tmp_path):
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(OWN))
    with pytest.raises(CommandError, match="make run"):
        call_command("replay", path)
