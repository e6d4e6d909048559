"""Files of conversations, as `manage.py replay` plays them. Pure.

Three forms are read: our own (a list, or one JSON object a line), of
`{conversationId, endUserId, ownerName?, messages: [{role?, speaker?, content, at?, externalId?}]}`; a single such
object; and the sessions form of public long-conversation sets: `{sample_id, conversation: {speaker_a, speaker_b,
session_1, session_1_date_time, …}}`, where speaker_a is taken for the owner.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from workspaces.errors import BadInput

_SESSION: Final = re.compile(r"^session_(\d+)$")
_SAID_AT: Final = "%I:%M %p on %d %B, %Y"
_BETWEEN: Final = timedelta(seconds=30)
"""Between two messages of a session, of which only the start is told."""


@dataclass(frozen=True, slots=True)
class Played:
    """One conversation to play. `messages` are bodies for `POST …/turns`, each with an `externalId`."""

    conversation_id: str
    end_user_id: str
    owner_name: str
    messages: tuple[dict[str, Any], ...]


def read_conversations(text: str) -> list[Played]:
    """The conversations of a file, in order; raises `BadInput` naming what is wrong and where."""
    return [played for index, raw in enumerate(_objects(text), start=1) for played in _played(raw, index)]


def _objects(text: str) -> list[Any]:
    try:
        whole = json.loads(text)
    except ValueError:
        return [_line(line, number) for number, line in enumerate(text.splitlines(), start=1) if line.strip()]
    return whole if isinstance(whole, list) else [whole]


def _line(line: str, number: int) -> Any:
    try:
        return json.loads(line)
    except ValueError as bad:
        raise BadInput("bad_replay", f"Line {number} is not JSON: {bad}.") from bad


def _played(raw: Any, index: int) -> Iterator[Played]:
    if not isinstance(raw, dict):
        raise BadInput("bad_replay", f"Item {index} is {type(raw).__name__}; an object is wanted.")
    if isinstance(raw.get("conversation"), dict):
        yield from _sessions(raw, index)
        return
    missing = [name for name in ("conversationId", "endUserId", "messages") if not raw.get(name)]
    if missing or not isinstance(raw["messages"], list):
        raise BadInput("bad_replay", f"Item {index} lacks {', '.join(missing) or 'a list of messages'}.")
    messages = tuple(_message(one, index, number) for number, one in enumerate(raw["messages"], start=1))
    yield Played(str(raw["conversationId"]), str(raw["endUserId"]), str(raw.get("ownerName", "")), messages)


def _message(raw: Any, index: int, number: int) -> dict[str, Any]:
    if not isinstance(raw, dict) or not isinstance(raw.get("content"), str) or not raw["content"]:
        raise BadInput("bad_replay", f"Message {number} of item {index} has no content.")
    kept = {name: raw[name] for name in ("speaker", "at") if raw.get(name)}
    return {"role": raw.get("role", "user"), "content": raw["content"], **kept} | {
        "externalId": str(raw.get("externalId") or f"replay:{number}")
    }


def _sessions(raw: dict[str, Any], index: int) -> Iterator[Played]:
    told = raw["conversation"]
    name = str(raw.get("sample_id") or f"conversation-{index}")
    owner = str(told.get("speaker_a", ""))
    numbers = sorted(int(match.group(1)) for key in told if (match := _SESSION.match(key)))
    for number in numbers:
        lines = told[f"session_{number}"]
        if not isinstance(lines, list):
            raise BadInput(
                "bad_replay", f"Session {number} of {name} is {type(lines).__name__}; a list is wanted."
            )
        start = _when(told.get(f"session_{number}_date_time"), name, number)
        messages = tuple(
            {
                "role": "user",
                "speaker": _speaker(line, f"Message {position + 1} of session {number} of {name}"),
                "content": _with_picture(line),
                "at": (start + position * _BETWEEN).isoformat(),
                "externalId": f"{name}:{line.get('dia_id', position)}",
            }
            for position, line in enumerate(lines)
            if not isinstance(line, dict) or line.get("text")
        )
        if messages:
            yield Played(f"{name}:session_{number}", f"{name}/{owner}", owner, messages)


def _speaker(line: Any, where: str) -> str:
    speaker = line.get("speaker") if isinstance(line, dict) else None
    if not isinstance(speaker, str) or not speaker:
        raise BadInput("bad_replay", f"{where} has no speaker.")
    return speaker


def _when(raw: Any, name: str, number: int) -> datetime:
    try:
        return datetime.strptime(str(raw), _SAID_AT).replace(tzinfo=UTC)
    except ValueError as bad:
        raise BadInput("bad_replay", f"Session {number} of {name} has the date {raw!r}.") from bad


def _with_picture(line: dict[str, Any]) -> str:
    caption = line.get("blip_caption")
    return f"{line['text']} [shares {caption}]" if caption else str(line["text"])
