"""The one object in a model's answer, however it was wrapped; never a guess at what is missing."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator

from workspaces.types import UnusableAnswerError

MAX_ANSWER = 256 * 1024
"""Characters; an answer far beyond what was asked for is not worth reading."""

MAX_CANDIDATES = 32
MAX_DEPTH = 100
MAX_NESTED_STRINGS = 3

JsonObject = dict[str, object]


class UnusableAnswer(UnusableAnswerError):  # noqa: N818 - says what it is
    """The answer holds nothing that can be used. `reason` is a stable code; ask again, then park."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason


def load_object(raw: str, *, key: str) -> JsonObject:
    """The JSON object of `raw` that has `key`.

    Code fences, thinking, prose around, an enclosing list or string, trailing commas, bad escapes, raw line
    breaks, Python literals and lone surrogates are put right. An answer cut short is refused: half of a
    file must not replace a whole one. Raises `UnusableAnswer` (`empty`, `too_long`, `refusal`, `no_json`,
    `truncated`, `duplicate_keys`, `ambiguous`, `missing_key`).
    """
    if len(raw) > MAX_ANSWER:
        raise UnusableAnswer("too_long", f"{len(raw)} characters")
    text = _without_thinking(raw).strip().lstrip("\ufeff").strip()
    if not text:
        raise UnusableAnswer("empty")
    objects = list(_objects(text))
    wanted = [found for found in objects if key in found]
    if not wanted:
        raise UnusableAnswer(*_why_nothing(text, objects, key))
    if any(found != wanted[0] for found in wanted[1:]):
        raise UnusableAnswer("ambiguous", f"{len(wanted)} different answers")
    try:
        return {name: _clean(value) for name, value in wanted[0].items()}
    except RecursionError as error:
        raise UnusableAnswer("no_json", "nested too deep") from error


def _without_thinking(raw: str) -> str:
    """A thought that is never closed stays, and is not looked for: that would be a search for every opening."""
    end = max((mark.end() for mark in _THOUGHT.finditer(raw)), default=0)
    return _THINKING.sub("", raw[:end]) + raw[end:]


def ask_again(reason: str) -> str:
    """What to tell the model after an unusable answer."""
    return (
        f"Your last answer could not be read ({reason}). Answer again with exactly one complete JSON object "
        "of the shape described, no text before or after it."
    )


def _why_nothing(text: str, objects: list[JsonObject], key: str) -> tuple[str, str]:
    if objects:
        return "missing_key", f"{key} is not among {', '.join(sorted(objects[0])[:8])}"
    if _REFUSAL.search(text[:400]):
        return "refusal", text[:80]
    if "{" in text:
        return "truncated", f"no complete object in {len(text)} characters"
    return "no_json", text[:80]


def _objects(text: str) -> Iterator[JsonObject]:
    """Each complete object at the top of the text, or in a string or list that is all of it."""
    whole = _decoded(text)
    for _ in range(MAX_NESTED_STRINGS):
        if isinstance(whole, str):
            whole = _decoded(whole)
    if isinstance(whole, list):
        yield from (item for item in whole if isinstance(item, dict))
        return
    if isinstance(whole, dict):
        yield whole
        return
    position = 0
    for _ in range(MAX_CANDIDATES):
        start = text.find("{", position)
        if start < 0:
            return
        end = _closing(text, start)
        found = _decoded(text[start:end]) if end else None
        if isinstance(found, dict):
            yield found
        position = end if isinstance(found, dict) and end else start + 1


def _closing(text: str, start: int) -> int | None:
    """Where the object that begins at `start` ends, strings respected; None when it never does.

    A quotation mark whose partner is missing is none: what follows it counts, and all others there lack theirs
    too. What is nested deeper than `MAX_DEPTH` is no answer.
    """
    depth = 0
    marks = _MARKS.finditer(text, start)
    for mark in marks:
        if mark["open"] is not None:
            marks = _BRACES.finditer(text, mark.start())
            break
        depth += _STEP.get(mark[0], 0)
        if depth == 0 and mark[0] == "}":
            return mark.end()
        if depth > MAX_DEPTH:
            return None
    for mark in marks:
        depth += _STEP[mark[0]]
        if depth == 0:
            return mark.end()
    return None


def _decoded(text: str) -> object:
    """The value of `text`, with the usual slips put right; None when it is none."""
    for attempt in (text, _mended(text)):
        try:
            value: object = json.loads(attempt, strict=False, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            continue
        return value
    if len(text) < 65_536 and text.lstrip()[:2].replace(" ", "")[:2] in {"{'", '{"'}:
        try:
            literal: object = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
        return literal
    return None


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    found: JsonObject = {}
    for name, value in pairs:
        if name in found and found[name] != value:
            raise UnusableAnswer("duplicate_keys", name)
        found[name] = value
    return found


def _mended(text: str) -> str:
    """Escapes that JSON does not know are doubled, commas before a closing bracket dropped."""
    return _STRING_OR_COMMA.sub(_mended_part, text)


def _mended_part(part: re.Match[str]) -> str:
    if not part[0].startswith('"'):
        return part[1]
    return _ESCAPE.sub(lambda escape: "\\\\" if len(escape[0]) == 1 else escape[0], part[0])


def _clean(value: object) -> object:
    """`value` without half surrogate pairs and NULs, which neither Postgres nor UTF-8 can hold."""
    if isinstance(value, str):
        joined = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return joined.replace("\x00", "")
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _clean(item) for name, item in value.items()}
    return value


_THINKING = re.compile(r"<think(?:ing)?>.*?</think(?:ing)?>", re.DOTALL | re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:I['’]?m sorry|I (?:can['’]?t|cannot|won['’]?t)|I am (?:unable|not able)|as an AI)\b|"
    r"抱歉|对不起|我(?:不能|无法)",
    re.IGNORECASE,
)
_THOUGHT = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_MARKS = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|(?P<open>\\?\Z))|[{}]', re.DOTALL)
_BRACES = re.compile(r"[{}]")
_STEP = {"{": 1, "}": -1}
_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|,(\s*[}\]])', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:[\"\\/bfnrt]|u[0-9a-fA-F]{4})|\\")
