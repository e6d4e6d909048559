"""What a markdown file states, line by line: `- **key**: value`, bullets and short sentences. Pure.

Code, quotations, tables, comments and bare links state nothing; what we mark ourselves is read as any other line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from workspaces.logic.sections import Section, fences, section_hash, split

MAX_STATEMENTS: Final = 200
"""Statements read from one section; a longer one is a document, not a memory."""
MAX_CHARS: Final = 400
"""Characters of one statement; a paragraph above is prose that is recalled as it is."""
DIGEST: Final = 32
"""Hex digits by which a section is known."""
NO_FACTS: Final = frozenset({"AGENTS.md", "SOUL.md", "DREAMS.md"})
"""Files that hold rules for the agent, or what a machine tells of itself."""

_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_BULLET: Final = re.compile(r"^(?P<indent>\s*)(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?(?P<text>.*)$")
_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+(?P<text>.*?)\s*#*$")
_SKIPPED: Final = re.compile(r"^\s*(?:>|\||[-*_=]{3,}\s*$|!\[|\[[^\]]*\]:)")
_LINK_ONLY: Final = re.compile(r"^\s*(?:<?https?://\S+>?|\[[^\]]*\]\([^)]*\))\s*$")
_PAIR: Final = re.compile(
    r"^(?:\*\*|__)(?P<bold>[^*_:：]{1,60})(?::|：)?(?:\*\*|__)\s*(?::|：|[-–—])?\s*(?P<bold_value>\S.*)$"
    r"|^(?P<key>[^\W\d][\w /'’-]{0,40}?)\s*(?::|：)\s*(?P<value>\S.*)$"
)
_MARKUP: Final = re.compile(r"\*\*|__|`|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)")
_ANCHOR: Final = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z])|(?<=[。！？])")
_STAMP: Final = re.compile(r"^(?:\d{1,2}:\d{2}|\d{4}-\d{2}-\d{2}(?: \d{1,2}:\d{2})?)\s+")
_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Stated:
    """One statement of a file. `predicate` and `object` are set for a pair of key and value."""

    statement: str
    predicate: str = ""
    object: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """One section of a file, what it states, and the digest by which an unchanged one is known."""

    heading: str
    digest: str
    statements: tuple[Stated, ...]


def read_file(content: str) -> list[Read]:
    """The sections of a file that state something, each digest once."""
    body = _FRONT_MATTER.sub("", content)
    found: dict[str, Read] = {}
    for section in split(body):
        read = read_section(section)
        if read.statements:
            found.setdefault(read.digest, read)
    return list(found.values())


def read_section(section: Section) -> Read:
    """What one section states."""
    shown = _COMMENT.sub(lambda gone: "\n" * gone[0].count("\n"), section.text)
    lines = shown.split("\n")
    code = {number for fence in fences(lines) for number in fence}
    context = section.heading or ""
    found: dict[str, Stated] = {}
    for number, line in enumerate(lines):
        if number in code or not line.strip() or _SKIPPED.match(line):
            continue
        heading = _HEADING.match(line)
        if heading:
            context = "" if line.startswith("# ") else heading["text"]
            continue
        for one in _of_line(line, context):
            found.setdefault(one.statement, one)
        if len(found) >= MAX_STATEMENTS:
            break
    return Read(
        section.heading or "", section_hash(section.text)[:DIGEST], tuple(found.values())[:MAX_STATEMENTS]
    )


def _of_line(line: str, context: str) -> list[Stated]:
    bullet = _BULLET.match(line)
    text = _STAMP.sub("", (bullet["text"] if bullet else line).strip())
    if _LINK_ONLY.match(text):
        return []
    pair = _PAIR.match(text)
    if pair is not None:
        key = _plain(pair["bold"] or pair["key"])
        value = _plain(pair["bold_value"] or pair["value"])
        is_key = bool(pair["bold"]) or len(key.split()) <= 4
        if is_key and value and len(value) <= MAX_CHARS and not value.startswith("//"):
            return [Stated(f"{key}: {value}", re.sub(r"\W+", "_", key.casefold()).strip("_")[:64], value)]
    parts = [text] if bullet else _SENTENCE.split(text)
    return [
        Stated(_in_context(plain, context))
        for part in parts
        if (plain := _plain(part))
        and len(plain) <= MAX_CHARS
        and not plain.endswith(("?", "？", ":", "：", "…"))
    ]


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub("", _ANCHOR.sub(r"\1", text)).split())


def _in_context(statement: str, context: str) -> str:
    """A line that says too little by itself, with its heading in front."""
    is_telling = len(statement.split()) >= 3 or (not statement.isascii() and len(statement) >= 5)
    return statement if is_telling or not context else f"{_plain(context)}: {statement}"
