"""What becomes of a claim beside the facts that are known: the four-way decision, by rules. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from facts.logic.likeness import covers, is_same, signs_of, words_of
from facts.logic.normal import fingerprint, normal
from facts.types import Claim
from recall.logic.folding import folded


class Verdict(StrEnum):
    """The four ways. ADD stands beside all; UPDATE takes the place of a fact; DELETE ends one; NONE is known."""

    ADD = "ADD"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    NONE = "NONE"


@dataclass(frozen=True, slots=True)
class Known:
    """A fact beside which a claim is judged. `at` is since when it is true, else when it was learned."""

    id: int
    statement: str
    predicate: str
    object: str
    subject: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Decision:
    """What becomes of a claim. `targets` are the facts that UPDATE replaces, DELETE ends or NONE confirms (one).

    `has_changed` tells that the world changed (the old held until then) from a better wording of the same.
    `statement` is what is stored instead of the claim's own, if anything.
    """

    verdict: Verdict
    targets: tuple[int, ...] = ()
    reason: str = ""
    has_changed: bool = False
    statement: str = ""


SINGLE: Final = frozenset(
    {
        "home",
        "lives_in",
        "city",
        "residence",
        "address",
        "employer",
        "works_at",
        "work",
        "job",
        "occupation",
        "profession",
        "position",
        "name",
        "nickname",
        "age",
        "birthday",
        "marital_status",
        "relationship_status",
        "email",
        "e_mail",
        "phone",
        "timezone",
        "time_zone",
        "native_language",
        "hometown",
        "居住地",
        "住址",
        "工作",
        "职业",
        "公司",
        "姓名",
        "名字",
        "年龄",
        "生日",
        "婚姻状况",
        "邮箱",
        "电话",
        "手机",
        "家乡",
    }
)
"""Attributes that have one value at a time; and all that begin with `favorite` or 最喜欢."""

_CHANGE: Final = re.compile(
    r"\b(?:moved|relocated|now|switched|changed|no longer|used to|anymore|any more|these days"
    r"|recently (?:started|joined)|started (?:at|a|my|his|her|their)|joined|left|quit|promoted|renamed"
    r"|got (?:married|divorced|engaged)|stopped"
    r"|instead of|turned \d+)\b|搬到|搬去|搬家|搬进|换(?:到|了|成)|改(?:成|为|用|叫)|现在|如今|不再|跳槽|离职|入职|升职"
)
_LIKING: Final = re.compile(
    r"\b(?:like|likes|love|loves|enjoys?|prefers?|favou?rs?|adores?|hates?|dislikes?|detests?|fond of|into"
    r"|can't stand|allergic)\b|喜欢|喜爱|爱(?=[吃喝看听玩])|讨厌|不爱|偏好"
)
_SENTIMENT: Final = re.compile(
    r"\b(?:do(?:es)?n['’]t|do(?:es)? not|no longer|not|never|any ?more|anymore|really|much|at all"
    r"|like|likes|love|loves|enjoys?|prefers?|adores?|hates?|dislikes?|detests?|used to|stopped"
    r"|liking|eating|drinking)\b|喜欢|喜爱|爱(?=[吃喝看听玩])|讨厌|不再|不爱|不|了"
)


def is_single(predicate: str) -> bool:
    """Whether an attribute has one value at a time."""
    name = normal(predicate).replace(" ", "_")
    return name in SINGLE or name.startswith(("favorite", "favourite", "最喜欢"))


def tells_change(statement: str) -> bool:
    """Whether a statement says itself that something is no more as it was."""
    return bool(_CHANGE.search(folded(statement)))


def _topic(statement: str) -> frozenset[str]:
    """What a preference is about, without liking and denying."""
    return words_of(_SENTIMENT.sub(" ", folded(statement)))


def is_flip(claim: str, known: str) -> bool:
    """Whether one says that something is liked and the other that it is not."""
    if not (_LIKING.search(folded(claim)) and _LIKING.search(folded(known))):
        return False
    turned = {"not", "ended"}
    if bool(signs_of(claim) & turned) == bool(signs_of(known) & turned):
        return False
    ours, theirs = _topic(claim), _topic(known)
    return bool(ours) and ours == theirs


def _has_same_subject(claim: Claim, known: Known) -> bool:
    return normal(claim.subject) == normal(known.subject) or not claim.subject or not known.subject


def decide_by_rules(claim: Claim, known: Sequence[Known], *, at: datetime) -> Decision:
    """The decision without a model. `at` is when the claim was said, or since when it is true.

    Two values of one attribute without a word of change both stay: whether they contradict each other is for a
    person. What is older than what is known changes nothing of it.
    """
    mine = fingerprint(claim.statement)
    near = [one for one in known if _has_same_subject(claim, one)]
    for one in known:
        if fingerprint(one.statement) == mine:
            return Decision(Verdict.NONE, (one.id,), "The same statement is known.")
    for one in near:
        if is_same(claim.statement, one.statement):
            return Decision(Verdict.NONE, (one.id,), "The same is known in other words.")
    changed = [one for one in near if one.at <= at and _is_changed(claim, one)]
    if changed:
        return Decision(
            Verdict.UPDATE,
            tuple(one.id for one in changed),
            "It says that this has changed.",
            has_changed=True,
        )
    for one in near:
        if covers(one.statement, claim.statement):
            return Decision(Verdict.NONE, (one.id,), "A fuller statement is known.")
    parts = tuple(one.id for one in near if covers(claim.statement, one.statement))
    if parts:
        return Decision(Verdict.UPDATE, parts, "It says the same and more.")
    return Decision(Verdict.ADD, reason="Nothing like it is known.")


def _is_changed(claim: Claim, known: Known) -> bool:
    if is_flip(claim.statement, known.statement):
        return True
    if not tells_change(claim.statement):
        return False
    if claim.predicate and is_single(claim.predicate):
        return normal(claim.predicate) == normal(known.predicate) and normal(claim.object) != normal(
            known.object
        )
    if "ended" in signs_of(claim.statement) and not signs_of(known.statement):
        ours, theirs = _topic(claim.statement), _topic(known.statement)
        return bool(theirs) and theirs <= ours
    return False
