"""`manage.py replay FILE`: plays conversations through the HTTP API, as an integration would."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from memory.logic.replay import Played, read_conversations
from workspaces.errors import DomainError

BATCH: Final = 100
"""Messages of one request."""
TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True)
class Target:
    """The running product that a command calls."""

    url: str
    token: str = field(repr=False)
    agent: int

    @property
    def files(self) -> str:
        """The address of the agent's files."""
        return f"{self.url}/api/v1/agents/{self.agent}/workspace/files"

    @property
    def chat(self) -> str:
        """The address of a chat."""
        return f"{self.url}/api/v1/chat"

    def client(self) -> httpx.Client:
        """Calls the agent's memory: paths are below `/api/v1/memory/<agent>/`."""
        return httpx.Client(
            base_url=f"{self.url}/api/v1/memory/{self.agent}/",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=TIMEOUT_S,
        )


def add_target(parser: CommandParser) -> None:
    """The options that name the product to call."""
    parser.add_argument("--url", help="Default: that of first-run.json.")
    parser.add_argument("--token", help="Default: that of first-run.json.")
    parser.add_argument("--agent", type=int, help="Default: that of first-run.json.")


def target_of(options: Mapping[str, Any]) -> Target:
    """The product that the options name, else that of this data folder; raises CommandError when there is none."""
    known = _first_run(settings.DATA_DIR / "first-run.json")
    url = options["url"] or known.get("url")
    token = options["token"] or known.get("token")
    agent = options["agent"] or known.get("agentId")
    if not (url and token and agent):
        raise CommandError("Name --url, --token and --agent, or run `make run` once on this data folder.")
    return Target(str(url).rstrip("/"), str(token), int(agent))


class Command(BaseCommand):
    """Plays a file of conversations with their speakers and dates. Resumable: what was sent is not sent again."""

    help = "Plays a file of conversations through POST /turns, with their speakers and dates."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path)
        add_target(parser)
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
        target = target_of(options)
        state = State(settings.DATA_DIR / "replay", text=text, target=target)
        if options["restart"]:
            state.clear()
        with target.client() as client:
            self._play(client, conversations, state, summarize=options["summarize"])

    def _play(
        self, client: httpx.Client, conversations: list[Played], state: State, *, summarize: bool
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
                    stored += send(client, played, batch)["stored"]
                    state.note(played, start + len(batch))
                    progress.advance(bar, len(batch))
                if summarize and done < len(played.messages):
                    path = f"summarize/{quote(played.conversation_id, safe='')}"
                    call(client, "POST", path, json={"endUserId": played.end_user_id}, params={"wait": 60})
        self.stdout.write(f"{total} messages of {len(conversations)} conversations; {stored} were new.")


class State:
    """How far each conversation of a file was sent to a product; a file beside the data, written after each batch.

    One that is damaged counts as nothing sent: what was stored is not stored again.
    """

    def __init__(self, folder: Path, *, text: str, target: Target) -> None:
        name = hashlib.sha256(f"{target.url}\n{target.agent}\n{text}".encode()).hexdigest()[:16]
        self._path = folder / f"{name}.json"
        self._sent: dict[str, int] = {}
        if self._path.exists():
            try:
                self._sent = dict(json.loads(self._path.read_text("utf-8")))
            except (ValueError, TypeError):
                self._sent = {}

    def sent(self, played: Played) -> int:
        """How many messages of the conversation were sent."""
        return self._sent.get(self._key(played), 0)

    def note(self, played: Played, count: int) -> None:
        """Writes down that so many were sent."""
        self._sent[self._key(played)] = count
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".tmp")
        draft.write_text(json.dumps(self._sent), "utf-8")
        draft.replace(self._path)

    def clear(self) -> None:
        """Nothing was sent."""
        self._sent = {}

    @staticmethod
    def _key(played: Played) -> str:
        return f"{played.end_user_id}|{played.conversation_id}"


def send(client: httpx.Client, played: Played, batch: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Records some of a conversation's messages; the answer of `POST …/turns`."""
    body: dict[str, Any] = {
        "conversationId": played.conversation_id,
        "endUserId": played.end_user_id,
        "source": "import",
        "messages": list(batch),
    }
    if played.owner_name:
        body["ownerName"] = played.owner_name
    return call(client, "POST", "turns", json=body)


def call(client: httpx.Client, method: str, path: str, **request: Any) -> dict[str, Any]:
    """The JSON that the product answers; CommandError says what was wrong and what to do."""
    try:
        answer = client.request(method, path, **request)
    except httpx.HTTPError as error:
        raise CommandError(
            f"{client.base_url} cannot be reached ({str(error) or type(error).__name__}). "
            "Start the product with `make run`, then run this command again: it goes on where it was."
        ) from error
    if answer.is_error:
        raise CommandError(f"{answer.request.url} was answered {answer.status_code}: {answer.text[:500]}")
    return dict(answer.json())


def _first_run(path: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError) as error:
        raise CommandError(f"{path} cannot be read: {error}") from error
