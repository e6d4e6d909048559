"""`manage.py demo`: a short conversation in English and Chinese, what is remembered of it, and two questions each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
from django.core.management.base import BaseCommand, CommandParser

from memory.logic.replay import Played, read_conversations
from memory.management.commands.replay import Target, add_target, call, send, target_of

TALK: Final = Path(__file__).resolve().parents[2] / "demo" / "talk.json"
WAIT_S: Final = 60
"""Seconds that the demo waits for an extraction."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A conversation to play, and what to ask afterwards in another one."""

    played: Played
    questions: tuple[str, ...]


class Command(BaseCommand):
    """Plays the bundled conversations over HTTP. Played again, it stores nothing twice."""

    help = "Plays a short conversation, shows what was remembered of it, and asks about it."

    def add_arguments(self, parser: CommandParser) -> None:
        add_target(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        target = target_of(options)
        with target.client() as client:
            for scene in scenes(TALK.read_text("utf-8")):
                self._play(client, scene.played)
                self._show_files(client, target, scene.played.end_user_id)
                for question in scene.questions:
                    self._ask(client, target, question, scene.played.end_user_id)

    def _play(self, client: httpx.Client, played: Played) -> None:
        asked = {"endUserId": played.end_user_id}
        is_new = bool(send(client, played, played.messages)["stored"])
        self._head(f"{played.owner_name} talks, as the end user {played.end_user_id!r}")
        for message in played.messages:
            who = played.owner_name if message["role"] == "user" else "Agent"
            self.stdout.write(f"  {message['at'][:16].replace('T', ' ')}  {who}: {message['content']}")
        name = quote(played.conversation_id, safe="")
        call(client, "POST", f"summarize/{name}", json=asked, params={"wait": WAIT_S})
        # The turn's own extraction may have been faster than the one asked for: what counts is what was stored.
        stored = call(client, "GET", "runs", params=asked | {"status": "stored"})["results"]
        files = ", ".join(stored[0]["written"]["files"]) if stored else "nothing"
        by = f", by {stored[0]['model']}" if stored else ""
        again = "" if is_new else " (It had been played before.)"
        self.stdout.write(f"\n  Extraction wrote {files}{by}.{again}")

    def _show_files(self, client: httpx.Client, target: Target, who: str) -> None:
        base, own = target.files, {"endUserId": who, "bucket": "personal"}
        for row in call(client, "GET", base, params=own)["results"]:
            self._head(f"Remembered: {row['name']}")
            content = call(client, "GET", f"{base}/{quote(row['name'])}", params=own)["content"]
            for line in content.strip().splitlines():
                self.stdout.write(f"  {line}".rstrip())

    def _ask(self, client: httpx.Client, target: Target, question: str, who: str) -> None:
        body = {"agentId": target.agent, "message": question, "endUserId": who}
        answer = call(client, "POST", target.chat, json=body)
        self._head(f"Asked in a new conversation: {question}")
        self.stdout.write("  " + answer["reply"].strip().replace("\n", "\n  "))
        self.stdout.write(f"\n  Recalled for it ({answer['model']} answered):")
        for item in answer["recalled"]:
            said = f"{item['at']}, " if item["at"] else ""
            self.stdout.write(f"    - {item['text']}  [{said}{item['source'].get('file', item['kind'])}]")

    def _head(self, text: str) -> None:
        self.stdout.write(f"\n{self.style.MIGRATE_HEADING(text)}")


def scenes(text: str) -> list[Scene]:
    """The scenes of a file in the form of `replay`, each conversation with its `questions`."""
    questions = [tuple(one["questions"]) for one in json.loads(text)]
    return [Scene(*pair) for pair in zip(read_conversations(text), questions, strict=True)]
