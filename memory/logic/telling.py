"""A statement as a sentence that reads well alone: "Nora lives in Tromsø", 诺拉住在上海. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from memory.logic.salience import Kind, Statement


@dataclass(frozen=True, slots=True)
class Told:
    """A statement about the owner. `predicate` names what it says of them: `home`, `likes`, `favorite_book`."""

    sentence: str
    subject: str
    predicate: str
    object: str


_SLOTS: Final[Mapping[str, str]] = {
    "Name": "{s}'s name is {x}", "Called": "{s} goes by {x}", "Home": "{s} lives in {x}",
    "Employer": "{s} works for {x}", "Studies": "{s} studies {x}",
    "Age": "{s} is {x} years old", "Birthday": "{s}'s birthday is {x}",
    "From": "{s} is from {x}", "Children": "{s} has {x}", "Relationship": "{s} is {x}",
}  # fmt: skip
_HAN_SLOTS: Final[Mapping[str, tuple[str, str]]] = {
    "姓名": ("name", "{s}的名字是{x}"), "称呼": ("called", "{s}希望被称为{x}"), "居住地": ("home", "{s}住在{x}"),
    "学业": ("studies", "{s}{x}"), "年龄": ("age", "{s}今年{x}"), "生日": ("birthday", "{s}的生日是{x}"),
    "来自": ("from", "{s}来自{x}"), "婚姻": ("relationship", "{s}{x}"),
}  # fmt: skip
_PREDICATES: Final[Mapping[Kind, str]] = {
    Kind.LIKE: "likes", Kind.DISLIKE: "dislikes", Kind.ALLERGY: "allergy", Kind.TRAIT: "trait", Kind.PET: "pet",
    Kind.FAMILY: "family", Kind.FAVORITE: "favorite",
}  # fmt: skip
_OWN: Final = (
    (re.compile(r"\bmy\b", re.IGNORECASE), "their"),
    (re.compile(r"\bmyself\b", re.IGNORECASE), "themselves"),
    (re.compile(r"\bI['’]m\b"), "they are"),
    (re.compile(r"\bI['’]ve\b"), "they have"),
    (re.compile(r"\bI\b"), "they"),
    (re.compile(r"\bme\b"), "them"),
    (re.compile(r"\bour\b", re.IGNORECASE), "their"),
)
_LEFT: Final = re.compile(r"^(?:lost|quit|left|was|got|retired)\b")
_NOUN: Final = re.compile(
    r"^(?:introvert|extrovert|.*\b(?:person|speaker|lover|owl|bird))$",
    re.IGNORECASE,
)
_VERB: Final = re.compile(
    r"^(?:likes|prefers|dislikes|does|stopped|speaks|plays|has|no longer|learning|allergic)\b", re.IGNORECASE
)
_PAIR: Final = re.compile(r"^(?P<r>[^:：]{1,30})[:：]\s*(?P<n>.+)$")


def tell(statement: Statement, *, owner: str) -> Told:
    """The sentence, in the owner's language, about `owner` (their name; empty: "the user", 用户)."""
    if statement.chinese:
        return _tell_han(statement, owner or "用户")
    subject = owner or "The user"
    slot = statement.slot
    predicate = _snake(slot) if slot else _PREDICATES.get(statement.kind, statement.kind.value)
    sentence, own_predicate = _english(statement, subject)
    return Told(_ended(sentence), subject, own_predicate or predicate, statement.about)


def _english(statement: Statement, s: str) -> tuple[str, str]:  # noqa: PLR0911 - one line a slot
    x = _third_person(statement.text)
    slot = statement.slot
    if slot == "Work":
        return (f"{s} {x}" if _LEFT.match(x) else f"{s} works as {_article(x)}{x}"), ""
    if slot == "Name" and x.casefold() == s.casefold():
        return f"The user's name is {x}", ""
    if slot in _SLOTS:
        if slot == "Birthday" and re.fullmatch(r"\d{4}", x):
            return f"{s} was born in {x}", ""
        return _SLOTS[slot].format(s=s, x=x), ""
    if slot:
        return f"{s}'s {slot[:1].lower()}{slot[1:]} is {x}", ""
    pair = _PAIR.match(x)
    if statement.kind in {Kind.FAMILY, Kind.PET} and pair:
        relation = pair["r"].lower()
        return f"{s}'s {relation} is called {pair['n']}", _snake(relation)
    return f"{s} {_trait(statement, x)}", ""


def _trait(statement: Statement, x: str) -> str:
    low = x[:1].lower() + x[1:]
    if re.match(r"(?:no longer|learning|allergic)\b", low):
        return f"is {low}"
    if _VERB.match(low):
        return low
    if statement.kind is Kind.ALLERGY and re.search(r"allerg(?:y|ies)\b", low):
        return f"has {'' if low.split()[0].endswith('ies') or 'allergies' in low else _article(low)}{low}"
    return f"is {_article(low) if _NOUN.match(low) else ''}{low}"


def _tell_han(statement: Statement, s: str) -> Told:
    x, slot = statement.text.replace("我的", "自己的").replace("我", "自己"), statement.slot
    predicate = _PREDICATES.get(statement.kind, statement.kind.value)
    pair = _PAIR.match(x)
    if slot == "工作":
        is_state = x.startswith("在") or re.match(r"辞职|失业|被裁|离职|退休", x)
        return Told(f"{s}{x if is_state else f'的工作是{x}'}。", s, "work", statement.about)
    if slot in _HAN_SLOTS:
        predicate, shape = _HAN_SLOTS[slot]
        if slot == "学业" and not x.startswith("在"):
            shape = "{s}的专业是{x}"
        return Told(f"{shape.format(s=s, x=x)}。", s, predicate, statement.about)
    if slot:
        return Told(f"{s}{slot}是{x}。", s, slot, statement.about)
    if statement.kind in {Kind.FAMILY, Kind.PET} and pair:
        return Told(f"{s}的{pair['r']}叫{pair['n']}。", s, pair["r"], statement.about)
    is_named = statement.kind is Kind.TRAIT and not re.match(r"吃|对", x)
    return Told(
        f"{s}{'是' if is_named and not re.search(r'不耐受?$', x) else ''}{x}。", s, predicate, statement.about
    )


def _article(words: str) -> str:
    if re.match(r"(?:an?|the|one|my|their)\b", words, re.IGNORECASE):
        return ""
    return "an " if re.match(r"[aeiou]", words, re.IGNORECASE) else "a "


def _third_person(text: str) -> str:
    for pattern, word in _OWN:
        text = pattern.sub(word, text)
    return text


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def _snake(words: str) -> str:
    return re.sub(r"\W+", "_", words.casefold()).strip("_")
