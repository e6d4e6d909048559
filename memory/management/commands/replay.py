"""`manage.py replay FILE`: plays conversations through the HTTP API, as an integration would."""

from __future__ import annotations

import hashlib
import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any, Final

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory.logic.replay import Played, read_conversations
from workspaces.errors import DomainError

BATCH: Final = 100
"""Messages of one request."""


class Command(BaseCommand):
    """Plays a file of conversations with their speakers and dates. Resumable: what was sent is not sent again."""

    help = "Plays a file of conversations through POST /turns, with their speakers and dates."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument("--url", help="Default: that of first-run.json.")
        parser.add_argument("--token", help="Default: that of first-run.json.")
        parser.add_argument("--agent", type=int, help="Default: that of first-run.json.")
        parser.add_argument(
            "--summarize", action="store_true", help="Extract each conversation as soon as it is sent."
        )
        parser.add_argument(
            "--restart", action="store_true", help="Send everything again; nothing is stored twice."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            text = path.read_text("utf-8")
            conversations = read_conversations(text)
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{path} cannot be read: {error}") from error
        except DomainError as error:
            raise CommandError(f"{path}: {error}") from error
        known = self._first_run()
        url = options["url"] or known.get("url")
        token = options["token"] or known.get("token")
        agent = options["agent"] or known.get("agentId")
        if not (url and token and agent):
            raise CommandError("Name --url, --token and --agent, or run `make run` once on this data folder.")
        state = _State(
            settings.DATA_DIR / "replay" / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"
        )
        if options["restart"]:
            state.clear()
        with httpx.Client(
            base_url=f"{url}/api/v1/memory/{agent}/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=120,
        ) as client:
            self._play(client, conversations, state, summarize=options["summarize"])

    def _play(
        self, client: httpx.Client, conversations: list[Played], state: _State, *, summarize: bool
    ) -> None:
        total = sum(len(played.messages) for played in conversations)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        stored = 0
        with Progress(*columns) as progress:
            bar = progress.add_task("messages", total=total)
            for played in conversations:
                progress.update(bar, description=played.conversation_id)
                done = state.sent(played)
                progress.advance(bar, done)
                for start in range(done, len(played.messages), BATCH):
                    batch = played.messages[start : start + BATCH]
                    stored += _send(client, played, batch)["stored"]
                    state.note(played, start + len(batch))
                    progress.advance(bar, len(batch))
                if summarize and done < len(played.messages):
                    _post(
                        client,
                        f"summarize/{played.conversation_id}?wait=60",
                        {"endUserId": played.end_user_id},
                    )
        self.stdout.write(f"{total} messages of {len(conversations)} conversations; {stored} were new.")

    def _first_run(self) -> dict[str, Any]:
        path = settings.DATA_DIR / "first-run.json"
        return dict(json.loads(path.read_text("utf-8"))) if path.exists() else {}


class _State:
    """How far each conversation of a file was sent; a file beside the data, written after each batch."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._sent: dict[str, int] = json.loads(path.read_text("utf-8")) if path.exists() else {}

    def sent(self, played: Played) -> int:
        return self._sent.get(self._key(played), 0)

    def note(self, played: Played, count: int) -> None:
        self._sent[self._key(played)] = count
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".tmp")
        draft.write_text(json.dumps(self._sent), "utf-8")
        draft.replace(self._path)

    def clear(self) -> None:
        self._sent = {}

    @staticmethod
    def _key(played: Played) -> str:
        return f"{played.end_user_id}|{played.conversation_id}"


def _send(client: httpx.Client, played: Played, batch: tuple[dict[str, Any], ...]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "conversationId": played.conversation_id,
        "endUserId": played.end_user_id,
        "source": "import",
        "messages": list(batch),
    }
    if played.owner_name:
        body["ownerName"] = played.owner_name
    return _post(client, "turns", body)


def _post(client: httpx.Client, path: str, body: dict[str, Any]) -> dict[str, Any]:
    try:
        answer = client.post(path, json=body)
    except httpx.HTTPError as error:
        raise CommandError(
            f"{client.base_url} cannot be reached: {error}. Run the command again to go on."
        ) from error
    if answer.is_error:
        raise CommandError(f"{path} was answered {answer.status_code}: {answer.text[:500]}")
    return dict(answer.json())
