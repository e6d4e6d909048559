"""What a file keeps of its people's words when a machine or a ceiling is at it, and where the rest goes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from workspaces.errors import TooLarge, Unprocessable
from workspaces.logic.ceiling import MARKER_LINE, Fitted, default_marker, fit
from workspaces.logic.guard import Guarded, Held, held_sections
from workspaces.logic.names import MAX_CONTENT_BYTES, MAX_NAME_CHARS, check_content
from workspaces.logic.sections import section_hash, spaced, split
from workspaces.types import AuthorKind

OVERFLOW_FOLDER: Final = "archive/"
"""Where what a file has no room for goes: same bucket, same name below this folder; recallable."""
MOST_FITTING: Final = MAX_CONTENT_BYTES // 4
"""Characters that fit in a file whatever they are: UTF-8 takes four bytes for one at most."""

MOST_BETWEEN: Final = 3
"""Newlines that `appended` puts around a text at most."""


def overflow_name(name: str, number: int) -> str:
    """The file that takes the `number`th part (from 1) of what `name` has no room for; always a good name."""
    ending = ".md" if number == 1 else f".{number}.md"
    return overflow_stem(name)[: MAX_NAME_CHARS - len(ending)] + ending


def overflow_stem(name: str) -> str:
    """How the names of all those files begin."""
    return OVERFLOW_FOLDER + name.removesuffix(".md")


def appended(content: str, text: str, *, title: str = "") -> str:
    """What is added to `content` to make `text` its next paragraph; an empty one begins with `title`."""
    if content:
        return ("\n" if content.endswith("\n") else "\n\n") + text + "\n"
    return f"{title}\n\n{text}\n" if title else f"{text}\n"


def of_any_size(text: str) -> str:
    """The text as it is stored, also above what a file holds; otherwise raises what `check_content` does."""
    try:
        return check_content(text)
    except TooLarge:  # which it looks for last
        return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def has_room(content: str, added: str) -> bool:
    """Whether a file of that content can take what is added."""
    return len(content.encode()) + len(added.encode()) <= MAX_CONTENT_BYTES


def fit_held(text: str, held: Sequence[Held], *, cap: int) -> Fitted:
    """Like `fit`, but what a person wrote is the last to go: only if it does not fit by itself.

    What a file cannot hold is above the ceiling, whatever `cap` says.
    """
    if len(text.encode()) > MAX_CONTENT_BYTES:
        cap = min(cap or MOST_FITTING, MOST_FITTING)
    plain = fit(text, cap=cap)
    if plain.cut is None or len(standing(plain.text, held)) == len(standing(text, held)):
        return plain
    marker = default_marker(cap)
    known = _keys(held)
    sections = split(text)
    theirs = [(one.heading, _hash(one.text)) in known for one in sections]
    room = cap - len(marker) - 2
    room -= sum(len(spaced(one.text)) for one, is_theirs in zip(sections, theirs, strict=True) if is_theirs)
    kept: list[str] = []
    cut: list[str] = []
    for section, is_theirs in zip(sections, theirs, strict=True):
        ours = spaced(_unmarked(section.text)) if section.text else ""
        if is_theirs:
            kept.append(spaced(section.text))
        elif not cut and len(ours) <= room:
            kept.append(ours)
            room -= len(ours)
        else:
            cut.append(ours)
    if room < 0 or not kept:
        return plain
    return Fitted("".join(kept).rstrip("\n") + f"\n{marker}\n", "".join(cut))


def standing(text: str, held: Sequence[Held]) -> list[Held]:
    """Those of `held` that are in `text` word for word; the ceiling's marker counts for nothing."""
    there = {(one.heading, section_hash(one.text)) for one in split(_unmarked(text))}
    return [one for one in held if (one.heading, _hash(one.text)) in there]


def held_after(
    before: str, content: str, held: Sequence[Held], *, by: AuthorKind, is_append: bool
) -> list[Held]:
    """What is person-held after a write. Nobody but a person makes a section held.

    What is appended to a held section becomes part of it: a later rewrite must not take it for a change.
    """
    if by is AuthorKind.PERSON:
        return list(held_sections(before, content, held))
    if is_append:
        were_held = {one.heading for one in held}
        return [one for one in held_sections(before, content, held) if one.heading in were_held]
    return standing(content, held)


def told(guarded: Guarded, *, max_loss: float) -> tuple[str, ...]:
    """What the guards did to a rewrite, in words; `max_loss` is the share that it might have lost."""
    notes = []
    if guarded.restored:
        parts = ", ".join(heading or "the head of the file" for heading in guarded.restored)
        notes.append(f"Kept word for word what a person wrote: {parts}.")
    if guarded.refused:
        notes.append(f"{len(guarded.refused)} lines were refused.")
    if guarded.lost_share > max_loss:
        notes.append(f"{guarded.lost_share:.0%} of the earlier lines would have been lost; they were kept.")
    return tuple(notes)


def warned(name: str, content: str, *, cap: int) -> tuple[str, ...]:
    """What a person is told who saves more than the ceiling of `cap` characters; 0 is none."""
    if not cap or len(content) <= cap:
        return ()
    return (f"{name} has {len(content)} characters; above {cap} a rewrite by the agent is cut.",)


def _keys(held: Sequence[Held]) -> set[tuple[str | None, str]]:
    return {(one.heading, _hash(one.text)) for one in held}


def _hash(text: str) -> str:
    return section_hash(_unmarked(text))


def _unmarked(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not MARKER_LINE.fullmatch(line.strip()))


def places_of(name: str, content: str, old: str, *, replace_all: bool) -> int:
    """How often `old` stands in a file; raises `Unprocessable` for never, and for more than once where one is meant."""
    places = content.count(old)
    if not places:
        raise Unprocessable("text_not_found", f"{name} does not hold that text.", field="oldText")
    if places > 1 and not replace_all:
        raise Unprocessable(
            "text_not_unique",
            f"{name} holds that text {places} times; add more of it, or set replaceAll.",
            field="oldText",
        )
    return places
