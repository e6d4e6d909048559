"""Entries as markdown and back, their keys, and the block of them that every prompt holds. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

from memory.logic.salience import is_instruction_shaped
from workspaces.errors import BadInput
from workspaces.logic.texts import storable
from workspaces.types import AuthorKind

TYPES: Final = ("user", "feedback", "project", "reference")
ALWAYS_ON: Final = ("user", "feedback")
"""The types that are part of every prompt (contract §4)."""
FOLDER: Final = "structured/"
MAX_KEY: Final = 64
MAX_CONTENT: Final = 8192
"""Characters of an entry: as many as a fact may have (contract §6)."""
_KEY: Final = re.compile(r"[a-z0-9]+(?:_[a-z0-9]+)*")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BREAKS: Final = re.compile(r"\r\n?|[\v\f\x1c-\x1e\x85\u2028\u2029]")


# --- keys and contents ------------------------------------------------------------------------------------


def key_of(text: str) -> str:
    """The key that `text` stands for: snake_case of its Latin letters and digits; of a text that has none, a
    short digest, so that the same words always give the same key."""
    made = re.sub(r"[^a-z0-9]+", "_", _HUMP.sub("_", text).casefold()).strip("_")[:MAX_KEY].strip("_")
    return made or f"k_{hashlib.sha256(text.strip().encode(errors='replace')).hexdigest()[:12]}"


def check_key(key: str) -> str:
    """`key` itself; raises `BadInput` "bad_key", which shows what would be right."""
    if _KEY.fullmatch(key) and len(key) <= MAX_KEY:
        return key
    raise BadInput(
        "bad_key",
        f"{key[:80]!r} is no key: lower-case letters, digits and single underscores, at most {MAX_KEY}; "
        f"{key_of(key)!r} would be right.",
        field="key",
    )


def check_type(kind: str) -> str:
    """`kind` itself; raises `BadInput` "bad_type"."""
    if kind in TYPES:
        return kind
    raise BadInput("bad_type", f"{kind[:80]!r} is no type; one of {', '.join(TYPES)}.", field="type")


def tidy(content: str) -> str:
    """Content as it is stored: line breaks as `\\n`, no blank ends, no blanks at the ends of lines."""
    lines = (line.rstrip() for line in _BREAKS.sub("\n", content).split("\n"))
    return "\n".join(lines).strip()


def check_content(content: str) -> str:
    """The tidied content; raises `BadInput` for an empty one, one that is too long or cannot be stored."""
    made = tidy(content)
    if not made:
        raise BadInput("empty_content", "The content is empty; delete the entry instead.", field="content")
    if len(made) > MAX_CONTENT:
        raise BadInput(
            "content_too_long",
            f"An entry holds at most {MAX_CONTENT} characters; this has {len(made)}.",
            field="content",
        )
    if storable(made) != made:
        raise BadInput(
            "bad_content", "The content holds a NUL character or half a surrogate pair.", field="content"
        )
    return made


# --- the view ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shown:
    """An entry as it is shown."""

    type: str
    key: str
    content: str
    source: str
    updated_at: datetime
    author_kind: str = AuthorKind.PERSON.value
    is_gated: bool = False
    """It came through the gate of extraction, with the owner's own words behind it."""


@dataclass(frozen=True, slots=True)
class Section:
    """An entry as a file spells it. `line` is that of its heading, from 1."""

    key: str
    content: str
    line: int


@dataclass(frozen=True, slots=True)
class Problem:
    """What could not be read, and in which line, from 1."""

    line: int
    reason: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a file holds. `mentioned` are all keys that stand in it, also of sections that could not be read."""

    sections: tuple[Section, ...]
    problems: tuple[Problem, ...]


_HEADING: Final = re.compile(r"##[ \t]+(\S.*)")
_FOOT: Final = re.compile(r"> Source: .*\| Updated: \d{4}-\d{2}-\d{2}\s*")
_MARKER: Final = re.compile(r"\\*(?:#{1,2}(?:[ \t]|$)|> Source:)")
"""What would be taken for a heading or for the line below an entry; stands behind a backslash in a file."""


def name_of(kind: str) -> str:
    """The file that shows entries of that type."""
    return f"{FOLDER}{kind}.md"


def type_of(name: str) -> str | None:
    """The type whose entries that file shows; None for any other file."""
    kind = name.removeprefix(FOLDER).removesuffix(".md")
    return kind if kind in TYPES and name == name_of(kind) else None


def render(entries: Iterable[Shown]) -> str:
    """The file of those entries, in their order; empty for none. `parse` reads the same keys and contents."""
    return "\n".join(_section(one) for one in entries)


def foot_of(source: str, updated: date) -> str:
    """The line below an entry."""
    plain = " ".join(source.replace("|", "/").split()) or "unknown"
    return f"> Source: {plain} | Updated: {updated:%Y-%m-%d}"


def _section(entry: Shown) -> str:
    body = "\n".join(f"\\{line}" if _MARKER.match(line) else line for line in entry.content.split("\n"))
    return f"## {entry.key}\n\n{body}\n\n{foot_of(entry.source, entry.updated_at.date())}\n"


def parse(text: str) -> Parsed:
    """Reads a file of entries. What cannot be read is told by its line and left out; nothing is guessed."""
    reader = _Reader()
    for number, line in enumerate(_BREAKS.sub("\n", text.removeprefix("\ufeff")).split("\n"), start=1):
        reader.read(number, line.rstrip())
    reader.close()
    return Parsed(tuple(reader.sections), tuple(sorted(reader.problems, key=lambda one: one.line)))


class _Reader:
    """Goes through a file, line by line."""

    def __init__(self) -> None:
        self.sections: list[Section] = []
        self.problems: list[Problem] = []
        self._heading: tuple[int, str] | None = None
        self._body: list[str] = []
        self._is_over = False

    def read(self, number: int, line: str) -> None:
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            self.close()
            self._heading = (number, heading[1].strip())
        elif self._heading is None:
            # A title is welcome, and is not kept.
            if line.strip() and not line.startswith("# "):
                self._tell(number, "it stands before the first `## key` heading and was not stored.")
        elif _FOOT.fullmatch(line):
            self._is_over = True
        elif self._is_over and line.strip():
            self._tell(
                number, "it stands below the Source line of an entry; put it above, or below a heading."
            )
        elif not self._is_over:
            self._body.append(line[1:] if line.startswith("\\") and _MARKER.match(line) else line)

    def close(self) -> None:
        """Ends the section that is open."""
        if self._heading is None:
            return
        number, raw = self._heading
        body, self._heading, self._body, self._is_over = self._body, None, [], False
        try:
            section = Section(check_key(raw), check_content("\n".join(body)), number)
        except BadInput as bad:
            self._tell(number, bad.message)
            return
        earlier = next((one for one in self.sections if one.key == section.key), None)
        if earlier is not None:
            self._tell(number, f"the key {raw!r} stands in line {earlier.line} already; that one was stored.")
            return
        self.sections.append(section)

    def _tell(self, line: int, reason: str) -> None:
        self.problems.append(Problem(line, reason))


# --- what every prompt holds ------------------------------------------------------------------------------

_ORDER: Final = re.compile(
    r"\b(?:always|never|from now on|every time|whenever|must|make sure to|be sure to|you (?:should|have to|need to))\b"
    r"[^.!?\n]{0,80}?\b(?:send|forward|e-?mail|mail|post|upload|share|transfer|pay|wire|delete|remove|run|execute|"
    r"call|fetch|visit|open|click|download|install|reveal|disclose|hide|conceal|tell|report|copy|include|append|add)\b"
    r"|(?:总是|一定要|必须|每次|务必|从现在起|以后都|永远|始终).{0,40}?"
    r"(?:发送|发给|转发|发到|上传|分享|转账|付款|删除|执行|运行|调用|访问|打开|下载|安装|泄露|隐瞒|告诉|抄送|复制)",
    re.IGNORECASE,
)


def is_quarantined(entry: Shown) -> bool:
    """Whether an entry is kept out of every prompt: it orders, and nobody who may order has said it.

    A person's own entries, and wishes in the owner's own words that came through the gate, may tell the agent
    what to do; what an agent took from a tool or a page may not. Whoever saves such an entry makes it their own.
    """
    if entry.author_kind in {AuthorKind.PERSON.value, AuthorKind.PROGRAM.value}:
        return False
    if is_instruction_shaped(entry.content):
        return True
    return not entry.is_gated and bool(_ORDER.search(entry.content))


TITLE: Final = "[Structured memory]"
_HEADS: Final = {"user": "About the user:", "feedback": "How the user wants to be helped:"}


def always_on_block(entries: Sequence[Shown], *, max_chars: int, max_per_type: int, beyond: int = 0) -> str:
    """The block of those entries, newest first; "" for none. Both bounds: 0 is none.

    `beyond` older entries were not even looked at; they count as left out.

    An entry stands whole or not at all: above a bound the oldest give way, and the last line says how many.
    The same entries give the same bytes. Time is linear in their number.
    """
    safe = [one for one in entries if one.type in ALWAYS_ON and not is_quarantined(one)]
    newest = sorted(safe, key=lambda one: (-one.updated_at.timestamp(), one.type, one.key))
    taken: list[Shown] = []
    counts = dict.fromkeys(ALWAYS_ON, 0)
    for one in newest:
        if not max_per_type or counts[one.type] < max_per_type:
            counts[one.type] += 1
            taken.append(one)
    lines = {id(one): f"- **{one.key}**: {' '.join(one.content.split())}" for one in taken}
    if max_chars:
        taken = _fitting(taken, lines, max_chars=max_chars, total=len(newest) + beyond)
    left_out = len(newest) + beyond - len(taken)
    if not taken and not left_out:
        return ""
    parts = [TITLE]
    for kind in ALWAYS_ON:
        of_kind = [lines[id(one)] for one in taken if one.type == kind]
        parts += [_HEADS[kind], *of_kind] if of_kind else []
    return "\n".join([*parts, *([_foot(left_out)] if left_out else [])])


def _foot(left_out: int) -> str:
    are = "entry is" if left_out == 1 else "entries are"
    return f"({left_out} older {are} not shown; recall_structured finds them.)"


def _fitting(newest: Sequence[Shown], lines: dict[int, str], *, max_chars: int, total: int) -> list[Shown]:
    """As many of the newest as fit with headings and the line that says what is left out."""
    taken: list[Shown] = []
    used = len(TITLE)
    heads: set[str] = set()
    for one in newest:
        cost = len(lines[id(one)]) + 1
        if one.type not in heads:
            cost += len(_HEADS[one.type]) + 1
        left = total - len(taken) - 1
        room = max_chars - (len(_foot(total)) + 1 if left else 0)
        if used + cost > room:
            break
        used += cost
        heads.add(one.type)
        taken.append(one)
    return taken
