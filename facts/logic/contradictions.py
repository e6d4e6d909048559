"""Whether two facts cannot both be true, by rules. Pure; English and Chinese.

Careful on purpose: a pair that is let by costs little, one that is raised wrongly costs a person's time. What is of
different times, subjects or kinds stands together.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from facts.logic.decide import is_flip, is_single
from facts.logic.likeness import signs_of, words_of
from facts.logic.normal import normal
from recall.logic.folding import folded


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two. Where it holds from and to is None if unknown."""

    statement: str
    subject: str = ""
    predicate: str = ""
    object: str = ""
    valid_from: datetime | None = None
    valid_to: datetime | None = None


_PLACE: Final = r"(?P<value>[A-Z][\w'’-]*(?:[ -][A-Z][\w'’-]*)*)"
_SLOTS: Final[tuple[tuple[str, re.Pattern[str]], ...]] = (
    ("home", re.compile(rf"\b(?:lives?|living|resides?|is based|am based) in {_PLACE}")),
    ("home", re.compile(r"(?:住在|居住在|定居(?:在)?)(?P<value>[\u4e00-\u9fff]{2,6}?)(?:市|了|$|[,，。的])")),
    ("employer", re.compile(rf"\b(?:works?|working|is employed) (?:at|for) {_PLACE}")),
    ("employer", re.compile(r"在(?P<value>[\u4e00-\u9fffA-Za-z]{2,12}?)(?:公司)?(?:工作|上班)")),
    ("hometown", re.compile(rf"\b(?:was born in|comes from|grew up in) {_PLACE}")),
    ("hometown", re.compile(r"(?:出生在|出生于|老家在|来自)(?P<value>[\u4e00-\u9fff]{2,6})")),
    ("age", re.compile(r"\b(?:is|am|turned) (?P<value>\d{1,3})(?: years old)?(?:$|[.,!])")),
    ("age", re.compile(r"今?年?(?P<value>\d{1,3})岁")),
    ("birthday", re.compile(r"\bbirthday is (?:on )?(?P<value>[\w ]+)")),
    ("birthday", re.compile(r"生日(?:是|在)(?P<value>[\d一二三四五六七八九十月日号]+)")),
    ("partner", re.compile(rf"\b(?:is|am) (?:married|engaged) to {_PLACE}")),
    ("status", re.compile(r"\b(?:is|am) (?:still )?(?P<value>single|married|divorced|widowed|engaged)\b")),
    ("status", re.compile(r"(?P<value>单身|已婚|结婚了|离婚了|离异|未婚)")),
    (
        "diet",
        re.compile(
            r"\b(?:is|am) (?:a |an )?(?:strict )?(?P<value>vegan|vegetarian|pescatarian|omnivore|meat eater)\b"
        ),
    ),
    ("job", re.compile(r"\bworks? as (?:a |an |the )?(?P<value>[\w -]+?)(?: (?:at|in|for)\b|[.,!]|$)")),
    ("favorite", re.compile(r"\b(?P<topic>favou?rite [\w ]+?) (?:is|are) (?P<value>[\w '’-]+)")),
    ("favorite", re.compile(r"(?P<topic>最喜欢的[\u4e00-\u9fff]{1,4})是(?P<value>[\u4e00-\u9fffA-Za-z ]+)")),
    (
        "attribute",
        re.compile(
            r"\b(?P<topic>(?:phone number|e-?mail(?: address)?|address|shoe size|blood type|native language|time ?zone"
            r"|middle name|last name|first name|manager|landlord)) is (?P<value>[\w@.+ '’:-]+)"
        ),
    ),
    (
        "attribute",
        re.compile(r"(?P<topic>电话|手机号?|邮箱|地址|血型|母语|时区|上司|鞋码)是(?P<value>[\w@.+:-]+)"),
    ),
)


def slot_of(side: Side) -> tuple[str, str] | None:
    """The attribute that has one value at a time and that a statement is about, and the value; None for no such."""
    if side.predicate and is_single(side.predicate) and side.object:
        return normal(side.predicate).replace(" ", "_"), normal(side.object)
    if signs_of(side.statement):
        return None
    for name, pattern in _SLOTS:
        found = pattern.search(side.statement)
        if found is not None:
            topic = found.groupdict().get("topic")
            return f"{name}:{normal(topic)}" if topic else name, normal(found["value"])
    return None


def contradiction_between(a: Side, b: Side) -> str:
    """Why the two cannot both be true, in a few words; empty when they can."""
    if _is_of_others(a, b) or not _meet(a, b):
        return ""
    one, other = slot_of(a), slot_of(b)
    if one is not None and other is not None and one[0] == other[0]:
        if _is_other_value(one[1], other[1]):
            return f"Two values of one attribute: {one[0].partition(':')[2] or one[0]}."
        return ""
    if is_flip(a.statement, b.statement):
        return "One says that it is liked, the other that it is not."
    if _is_denied(a.statement, b.statement):
        return "One says what the other denies."
    return ""


def _is_of_others(a: Side, b: Side) -> bool:
    """Whether they speak of different people."""
    if a.subject and b.subject and normal(a.subject) != normal(b.subject):
        return True
    return _leading(a.statement) != _leading(b.statement) and bool(
        _leading(a.statement) and _leading(b.statement)
    )


_LEADING: Final = re.compile(
    r"^\W*(?P<name>(?:(?:My|His|Her|Their|The|[A-Z][\w]+['’]s) )?[\w]+)(?:\s+(?P<next>[\w'’]+))?"
)
_NO_NAME: Final = re.compile(r"(?:i|he|she|they|we|you|it|the|user|owner|my|his|her|their)$")
_VERB: Final = re.compile(
    r"(?:is|was|are|has|had|does|did|do|can|cannot|no|not|never|lives|lived|works|worked|likes|liked|loves|loved|hates"
    r"|hated|enjoys|prefers|wants|wanted|moved|speaks|spoke|plays|drives|owns|drinks|eats|goes|went|runs|uses|used"
    r"|studies|studied|visited|knows|keeps|hopes|plans|needs|doesn['’]t|isn['’]t|favou?rite|born)$"
)


def _leading(statement: str) -> str:
    """Whom a statement begins with, empty for the owner's own ("Lives in …")."""
    found = _LEADING.match(statement)
    if found is None or not found["name"][0].isupper():
        return ""
    name, following = folded(found["name"]), folded(found["next"] or "")
    if _NO_NAME.match(name) or _VERB.match(name):
        return ""
    # "Paints boats" begins with what is done, "Thomas paints" with a name.
    return "" if name.endswith(("s", "ed")) and " " not in name and not _VERB.match(following) else name


def _meet(a: Side, b: Side) -> bool:
    """Whether the times in which they hold have one in common; what is unknown holds always."""
    if a.valid_to is not None and b.valid_from is not None and a.valid_to <= b.valid_from:
        return False
    return not (b.valid_to is not None and a.valid_from is not None and b.valid_to <= a.valid_from)


def _is_other_value(one: str, other: str) -> bool:
    mine, yours = one.replace(" ", ""), other.replace(" ", "")
    # "Berlin" and "Berlin Mitte", "engineer" and "software engineer": the one is more exact.
    return bool(mine and yours) and mine not in yours and yours not in mine


_DENIAL: Final = re.compile(
    r"\b(?:do(?:es)?n['’]t|do(?:es)? not|did(?:n['’]t| not)|is(?:n['’]t| not)|are(?:n['’]t| not)|has(?:n['’]t| not)"
    r"|have(?:n['’]t| not)|can(?:not|['’]t)|can not|never|no longer|not|no|any ?more|ever|any|a|an|the|have|has|is|are"
    r"|can|does?|own|owns)\b|不(?:再|会|是|在|能)?|没(?:有)?|从来?|从未|有|会|是|能|了"
)


def _is_denied(a: str, b: str) -> bool:
    turned = {"not", "ended"}
    mine, yours = signs_of(a), signs_of(b)
    if bool(mine & turned) == bool(yours & turned) or (mine - turned) != (yours - turned):
        return False
    ours, theirs = (words_of(_DENIAL.sub(" ", folded(one))) for one in (a, b))
    return bool(ours) and ours == theirs
