"""The demo: the bundled conversations are played, remembered in both languages, and asked about."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from memory.management.commands.demo import TALK, scenes
from tests.factories import World
from tests.journeys.product import free_port
from tests.memory.bridge import Bridge


def demo(world: World, **options) -> str:
    out = io.StringIO()
    call_command(
        "demo",
        **({"url": "http://product", "token": world.bob.token, "agent": world.agent_id} | options),
        stdout=out,
        no_color=True,
    )
    return out.getvalue()


def test_what_was_said_is_remembered_and_answers_the_questions_in_both_languages(acme: World, monkeypatch):
    Bridge().install(monkeypatch)
    shown = demo(acme)
    assert "Allergic to shellfish (2026-03-02)" in shown
    assert "- **姓名**：林晓（2026-03-03）" in shown
    assert shown.count("Remembered: memory/2026-03-0") == 2
    answers = shown.split("\nAsked in a new conversation: ")[1:]
    assert len(answers) == 4
    replies = [answer.split("Recalled for it (rules answered):")[0] for answer in answers]
    for reply, known in zip(replies, ("shellfish", "2026-03-13", "花生", "2026-03-11"), strict=True):
        assert known in reply
    assert "Allergic to shellfish (2026-03-02)  [PROFILE.md]" in answers[0]
    assert "shellfish" not in "".join(answers[2:]), "one person's memory was shown to another"


def test_played_again_nothing_is_stored_twice(acme: World, monkeypatch):
    Bridge().install(monkeypatch)
    demo(acme)
    shown = demo(acme)
    assert shown.count("It had been played before.") == 2
    for known in ("- Allergic to shellfish", "08:16 Maya: Please remember"):
        files = shown.split("Asked in a new conversation")[0].split("Remembered:", 1)[1]
        assert files.count(known) == 1


def test_when_nothing_runs_it_says_so_and_what_to_do(acme: World):
    with pytest.raises(CommandError, match=r"cannot be reached.*make run"):
        demo(acme, url=f"http://127.0.0.1:{free_port()}")


def test_the_first_runs_address_is_used_and_a_damaged_file_is_told(
    acme: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(settings, "DATA_DIR", tmp_path)
    bridge = Bridge().install(monkeypatch)
    first_run = tmp_path / "first-run.json"
    first_run.write_text(
        json.dumps({"url": "http://product:8230", "token": acme.bob.token, "agentId": acme.agent_id})
    )
    call_command("demo", stdout=io.StringIO())
    assert {request.url.host for request in bridge.requests} == {"product"}
    first_run.write_text("{half")
    with pytest.raises(CommandError, match=r"first-run.json cannot be read"):
        call_command("demo", stdout=io.StringIO())


def test_the_bundled_talk_is_in_english_and_chinese_with_two_questions_each():
    english, chinese = scenes(TALK.read_text("utf-8"))
    assert len(english.questions) == len(chinese.questions) == 2
    assert all(message["content"].isascii() for message in english.played.messages)
    assert not any(message["content"].isascii() for message in chinese.played.messages)
