"""The four ways in which `write_memory` puts content into a file."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NoReturn

from recall.logic.combining import nfkc
from workspaces.errors import BadInput
from workspaces.logic.sections import MARK, Section, closed, fences, index_of, join, spaced, split


class Strategy(StrEnum):
    APPEND = "append"
    REPLACE_SECTION = "replace_section"
    UPSERT_KV = "upsert_kv"
    OVERWRITE = "overwrite"


# `key: value`, `- key: value`, `- **key**: value`, `**key:** value`, with a full-width colon too. After an
# ASCII colon comes a space or nothing, so that neither a URL nor a time of day is a pair.
_PAIR = re.compile(
    r"(?P<lead>\s*(?:[-*+]\s+)?)"
    r"(?P<name>\*\*(?P<bold>[^*:：]+)(?:\*\*(?:：|:(?=\s|$))|(?:：|:)\*\*(?=\s|$))"
    r"|(?P<plain>[^\s*:：#>|`-][^*:：|`]{0,99})(?:：|:(?=\s|$)))"
    r"(?P<gap>\s*)(?P<value>.*)"
)


@dataclass(frozen=True, slots=True)
class _Pair:
    key: str  # as it is compared
    before: str  # the line up to its value
    value: str


def apply(strategy: str, current: str, content: str, *, heading: str | None = None) -> str:
    """The file's new text after `content` was written into `current`.

    - `append`: after a blank line at the end; `heading` is not used.
    - `replace_section`: the first section with this whole heading (`heading`, else the content's first `## `
      line) becomes the content; where there is none it is appended, also when no heading is given at all.
      Further `## ` sections of the content replace theirs likewise.
    - `upsert_kv`: each `key: value` line gives its value to the first line with its key (whatever its case),
      else is appended; within the section `heading` when given (made if missing).
    - `overwrite`: the content. `heading` is not used.

    All but `append` change nothing when repeated. Raises BadInput `unknown_strategy`, `bad_heading`,
    `heading_mismatch`, `text_before_heading`, `not_a_pair`.
    """
    try:
        chosen = Strategy(strategy)
    except ValueError:
        allowed = [one.value for one in Strategy]
        raise BadInput(
            "unknown_strategy",
            f"There is no strategy {strategy[:80]!r}; use one of {', '.join(allowed)}.",
            allowed=allowed,
        ) from None
    match chosen:
        case Strategy.APPEND:
            return _append(current, content)
        case Strategy.OVERWRITE:
            return content
        case Strategy.REPLACE_SECTION:
            return _replace_section(current, content, _bare_heading(heading))
        case Strategy.UPSERT_KV:
            return _upsert(current, content, _bare_heading(heading))


def _append(current: str, content: str) -> str:
    added = "".join(closed(section.text) for section in split(content.strip("\n"))).rstrip("\n")
    if not added.strip():
        return current
    return (spaced(current) if current.strip() else "") + added + "\n"


def _bare_heading(heading: str | None) -> str | None:
    if heading is None:
        return None
    bare = heading.strip().removeprefix(MARK).strip()
    if not bare or any(unicodedata.category(char) in {"Cc", "Zl", "Zp"} for char in bare):
        raise BadInput("bad_heading", f"The heading {heading[:80]!r} is no line of text; give one line.")
    return bare


def _replace_section(current: str, content: str, heading: str | None) -> str:
    head, *given = split(content)
    if heading is None and not given:
        return _append(current, content)
    if given and head.text.strip() and heading in {None, given[0].heading}:
        raise BadInput(
            "text_before_heading",
            f"There is text before the heading {MARK + str(given[0].heading)!r}: {head.text.strip()[:80]!r}; "
            "put it below the heading.",
        )
    if heading is not None and (head.text.strip() or not given):
        given = [Section(heading, 2, f"{MARK}{heading}\n{head.text.lstrip(chr(10))}", 1), *given]
    elif heading is not None and given[0].heading != heading:
        raise BadInput(
            "heading_mismatch",
            f"The content starts with the heading {given[0].heading!r}, but the section is {heading!r}; "
            "give the same heading, or content without one.",
        )
    sections = split(current)
    if "```" in content or "~~~" in content:
        # An open fence further up would take in the new section up to its first fence.
        sections = [replace(section, text=closed(section.text)) for section in sections]
    places = _places(sections)
    for section in given:
        _put(sections, places, replace(section, text=closed(section.text)))
    return join(sections)


def _places(sections: Sequence[Section]) -> dict[str | None, int]:
    """Where the first section of each heading stands."""
    return {section.heading: n for n, section in reversed(list(enumerate(sections)))}


def _put(sections: list[Section], places: dict[str | None, int], section: Section) -> None:
    at = places.get(section.heading)
    if at is None:
        last = sections[-1]
        sections[-1] = replace(last, text=spaced(last.text) if last.text.strip() else "")
        sections.append(section)
        at = places[section.heading] = len(sections) - 1
    tidy = section.text.rstrip("\n") + "\n"
    sections[at] = Section(section.heading, 2, spaced(tidy) if at + 1 < len(sections) else tidy, section.line)


def _upsert(current: str, content: str, heading: str | None) -> str:
    if heading is None:
        return _upsert_lines(current, content)
    sections = split(current)
    at = index_of(sections, heading)
    body = f"{MARK}{heading}\n" if at is None else sections[at].text
    text = _upsert_lines(body, content)
    if at is not None and text == body:
        return current
    _put(sections, _places(sections), Section(heading, 2, text, 1))
    return join(sections)


def _upsert_lines(current: str, content: str) -> str:
    lines = current.split("\n")
    code = {number for fence in fences(lines) for number in fence}
    places: dict[str, int] = {}
    for number, line in enumerate(lines):
        known = None if number in code else _pair(line)
        if known is not None:
            places.setdefault(known.key, number)
    added: dict[str, str] = {}
    for number, line in enumerate(content.split("\n"), start=1):
        if not line.strip():
            continue
        pair = _pair(line) or _no_pair(number, line)
        known = _pair(lines[places[pair.key]]) if pair.key in places else None
        if known is None:
            added[pair.key] = line.rstrip()
        elif known.value != pair.value:
            lines[places[pair.key]] = _with_value(known, pair.value)
    return _with_lines("\n".join(lines), list(added.values()))


def _with_value(known: _Pair, value: str) -> str:
    gap = "" if not value or known.before.endswith(("：", " ", "\t")) else " "
    return known.before + gap + value


def _with_lines(text: str, added: list[str]) -> str:
    if not added:
        return text
    kept = text.rstrip()
    last = kept.rpartition("\n")[2]
    if not kept:
        gap = ""
    elif _pair(last) is not None or last.startswith("#"):
        gap = "\n"
    else:
        gap = "\n\n"
    return kept + gap + "\n".join(added) + "\n"


def _pair(line: str) -> _Pair | None:
    found = _PAIR.fullmatch(line)
    if found is None:
        return None
    key = nfkc(found["bold"] or found["plain"]).casefold()
    return _Pair(" ".join(key.split()), line[: found.start("value")], found["value"].rstrip())


def _no_pair(number: int, line: str) -> NoReturn:
    raise BadInput(
        "not_a_pair",
        f"Line {number} of the content, {line[:80]!r}, is no pair; write `key: value` or `- **key**: value`.",
        line=number,
    )
