"""Which names and contents a memory file may have."""

from __future__ import annotations

import re
import unicodedata
from datetime import date
from typing import NoReturn

from workspaces.errors import BadInput, TooLarge

AGENTS = "AGENTS.md"
SOUL = "SOUL.md"
PROFILE = "PROFILE.md"
MEMORY = "MEMORY.md"
DREAMS = "DREAMS.md"

BORN_ORDER: tuple[str, ...] = (AGENTS, SOUL, PROFILE, MEMORY)
"""The files every agent is born with; a file's place here is its `sort_order`."""

MAX_NAME_CHARS = 256
MAX_CONTENT_BYTES = 1024 * 1024

_DAILY = re.compile(r"memory/([0-9]{4})-([0-9]{2})-([0-9]{2})\.md")
_DRIVE = re.compile(r"[A-Za-z]:")
# Control, invisible (bidi and zero-width), surrogate, line and paragraph separator: none shows in a list.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean_name(raw: str) -> str:
    """The NFC form of a good file name: a relative path that ends in `.md`, at most 256 characters.

    Raises BadInput `bad_file_name`.
    """
    if len(raw) > 4 * MAX_NAME_CHARS:
        # Before it is normalised, which takes quadratic time on nothing but accents.
        _refuse(raw, f"is {len(raw)} characters long; use at most {MAX_NAME_CHARS}")
    name = unicodedata.normalize("NFC", raw)
    if len(name) > MAX_NAME_CHARS:
        _refuse(raw, f"is {len(name)} characters long; use at most {MAX_NAME_CHARS}")
    if any(unicodedata.category(char) in _UNSEEN for char in name):
        _refuse(raw, "holds a control or invisible character; use visible characters only")
    if "\\" in name:
        _refuse(raw, "holds a backslash; separate folders with /")
    if name.startswith(("/", "~")) or _DRIVE.match(name):
        _refuse(raw, "is not relative; start with a folder or file name, without /, ~ or a drive")
    for segment in name.split("/"):
        _check_segment(raw, segment)
    if not name.endswith(".md") or name.endswith("/.md") or name == ".md":
        _refuse(raw, "is no markdown file name; end it in .md, in lower case, after at least one character")
    return name


def _check_segment(raw: str, segment: str) -> None:
    if not segment:
        _refuse(raw, "has an empty part; write one / between a folder and what is in it")
    if segment in {".", ".."}:
        _refuse(raw, f"has the part {segment!r}; name every folder itself")
    if segment != segment.strip():
        _refuse(raw, f"has a space at an end of {segment!r}; leave it out")


def _refuse(raw: str, reason: str) -> NoReturn:
    shown = raw if len(raw) <= 80 else raw[:80] + "…"
    raise BadInput("bad_file_name", f"The file name {shown!r} {reason}.", name=shown)


def note_date(name: str) -> date | None:
    """The day a daily note is about; None when `name` is not that of a daily note."""
    found = _DAILY.fullmatch(name)
    if found is None:
        return None
    year, month, day = (int(part) for part in found.groups())
    try:
        return date(year, month, day)
    except ValueError:
        return None


def is_daily_note(name: str) -> bool:
    """Whether `name` is `memory/YYYY-MM-DD.md` for a day that exists."""
    return note_date(name) is not None


def daily_note(day: date) -> str:
    """The name of the daily note of `day`."""
    return f"memory/{day.year:04d}-{day.month:02d}-{day.day:02d}.md"


def check_content(text: str) -> str:
    r"""The text as it is stored: newlines are `\n`, a leading byte order mark is gone.

    Raises BadInput `bad_content` for NUL and for half a surrogate pair, TooLarge `file_too_large` above
    1 MiB of UTF-8.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadInput("bad_content", f"Line {line} holds a NUL character; send plain text.", line=line)
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise BadInput(
            "bad_content", f"Line {line} holds half a surrogate pair; send valid Unicode.", line=line
        ) from None
    if size > MAX_CONTENT_BYTES:
        raise TooLarge(
            "file_too_large",
            f"The content is {size} bytes of UTF-8; a file holds at most {MAX_CONTENT_BYTES}.",
            size=size,
            limit=MAX_CONTENT_BYTES,
        )
    return text
