"""The agent's answer to a message; without a model, from what is remembered and nothing else."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from math import log
from typing import ClassVar

from pydantic import BaseModel

from memory.logic import gate, salience
from memory.logic.echo import ECHO_OVERLAP, overlap
from recall.logic.combining import nfkc
from workspaces.logic.tokens import cjk_share
from workspaces.types import Prompt

_words = str.split

MAX_QUOTED = 3
MAX_QUOTED_CHARS = 400
MAX_OVERVIEW = 8
MIN_SHARE = 0.34
"""Share of the question's weight that a line must hold to be an answer to it."""


@dataclass(frozen=True, slots=True)
class Said:
    """One earlier message. `role` is `user` or `assistant`."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplyGiven:
    """`system` is the assembled system text, `recalled` the lines recalled for this message, best first."""

    system: str
    recalled: tuple[str, ...]
    history: tuple[Said, ...]
    message: str
    owner: str = ""


class ReplyAnswer(BaseModel):
    """What the agent says."""

    text: str


class Reply(Prompt[ReplyGiven, ReplyAnswer]):
    """An answer that uses what is known of the person."""

    name: ClassVar[str] = "reply"
    version: ClassVar[int] = 1
    answer = ReplyAnswer

    def system(self, given: ReplyGiven) -> str:
        return given.system

    def user(self, given: ReplyGiven) -> str:
        return given.message

    def rules(self, given: ReplyGiven) -> ReplyAnswer:
        """Quotes the recalled lines that the message asks about, with dates; says so if there are none."""
        words = _CHINESE if cjk_share(given.message) > 0.3 else _ENGLISH
        asked = gate.remember_requests(given.message)
        if asked:
            return ReplyAnswer(text=f"{words.noted.format(_quoted(asked[0]))}\n\n{words.no_model}")
        if gate.is_explicit_remember(given.message):
            return ReplyAnswer(text=words.what_to_note)
        if _OVERVIEW.search(given.message):
            found = _content_lines(given.recalled)[:MAX_OVERVIEW]
        else:
            found = relevant(given.message, given.recalled)
        if found:
            lines = "\n".join(f"- {_quoted(line)}" for line in found)
            return ReplyAnswer(text=f"{words.found}\n{lines}\n\n{words.no_model}")
        if _tells(given.message[: gate.MAX_LOOKED_AT]):
            return ReplyAnswer(text=f"{words.heard}\n\n{words.no_model}")
        answer = words.nothing if salience.score(given.message) > 0 else words.greeting
        return ReplyAnswer(text=f"{answer}\n\n{words.no_model}")


def relevant(message: str, recalled: tuple[str, ...]) -> list[str]:
    """At most `MAX_QUOTED` recalled lines that share enough of the message's words, the best first.

    Rare words among the lines weigh more; of equals the one recalled first wins.
    """
    lines = _content_lines(recalled)
    wanted = _terms(message)
    if not wanted or not lines:
        return []
    held = [_terms(line) for line in lines]
    spread = Counter(term for terms in held for term in terms)
    weight = {term: log(1 + (len(lines) + 1) / (1 + spread[term])) for term in wanted}
    total = sum(weight.values())
    shares = [sum(weight[term] for term in wanted & terms) / total for terms in held]
    ranked = sorted(range(len(lines)), key=lambda index: (-shares[index], index))
    found: list[str] = []
    compared: list[str] = []
    for index in ranked:
        if shares[index] < MIN_SHARE or len(found) == MAX_QUOTED:
            break
        # A profile, a memory and a note often hold the same statement: once is enough.
        shown = lines[index][:MAX_QUOTED_CHARS]
        if not any(max(overlap(shown, one), overlap(one, shown)) >= ECHO_OVERLAP for one in compared):
            found.append(lines[index])
            compared.append(shown)
    return found


def _content_lines(recalled: tuple[str, ...]) -> list[str]:
    return list(
        dict.fromkeys(line.strip() for block in recalled for line in block.splitlines() if _is_content(line))
    )


def _is_content(line: str) -> bool:
    bare = line.strip()
    return bool(bare) and not bare.startswith(("#", "---", "<", "[")) and any(char.isalnum() for char in bare)


def _terms(text: str) -> frozenset[str]:
    """Stems of telling Latin words, pairs of neighbouring CJK characters, and the concepts they stand for."""
    folded = nfkc(text).casefold()
    latin = (word for word in re.findall(r"[^\W_\u2e80-\u9fff\uac00-\ud7af]+", folded) if word not in _ASKING)
    pairs: set[str] = set()
    for run in re.findall(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+", _CHINESE_ASKING.sub(" ", folded)):
        pairs.update(run[at : at + 2] for at in range(max(1, len(run) - 1)))
    concepts = (f"#{name}" for name, pattern in _CONCEPTS.items() if pattern.search(folded))
    return frozenset(map(_stem, latin)) | pairs | frozenset(concepts)


def _stem(word: str) -> str:
    """Enough to meet "likes" with "like" and "living" with "live"."""
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def _tells(message: str) -> bool:
    return any(
        salience.statements(sentence) or salience.lasting_wish(sentence) or salience.occasion(sentence)
        for sentence in salience.sentences(message)
    )


def _quoted(line: str) -> str:
    return salience.shorten(re.sub(r"^[-*]\s+", "", line.strip()), MAX_QUOTED_CHARS)


@dataclass(frozen=True, slots=True)
class _Words:
    """What is said in one language. `noted` has a place for what was asked."""

    found: str
    noted: str
    what_to_note: str
    heard: str
    nothing: str
    greeting: str
    no_model: str


_ENGLISH = _Words(
    found="Here is what I have on record about that:",
    noted="Noted, to be kept in memory: {}",
    what_to_note="What should I remember? Tell me in one sentence and I will keep it.",
    heard="Understood. What you tell me about yourself goes into your memory.",
    nothing="I have nothing on record about that.",
    greeting="Hello. Ask me what I remember, or tell me what I should.",
    no_model="(No model is connected, so I can take notes and look them up, but not reason or write.)",
)
_CHINESE = _Words(
    found="关于这一点，我的记录里有：",
    noted="好的，会记入记忆：{}",
    what_to_note="要我记住什么？用一句话告诉我就好。",
    heard="明白。你告诉我的关于你的事会记入记忆。",
    nothing="我的记录里没有关于这一点的内容。",
    greeting="你好。可以问我记得什么，也可以告诉我该记住什么。",
    no_model="（目前没有接入模型：我能记录和查找，但不能推理或写作。）",
)

_ASKING = frozenset(
    _words(
        """
    a an the i me my mine you your we our is are was were am be been do does did have has had can could
    will would should what which who whom whose when where why how tell about know remember recall
    remind say said and or of in on at to for from with it its that this these those there please any
    some ever again s m re ve ll t d hi hello hey thanks
    """
    )
)
_CHINESE_ASKING = re.compile(
    r"还?记得|知道|告诉|什么时候|什么|怎么样?|为什么|哪里|哪儿|哪个|哪些|多少|几点|是谁|谁|请问|请|吗|呢|吧|啊|一下|关于|的|了|我们?|你们?|您|是|在|"
    r"還?記得|告訴|什麼時候|什麼|怎麼樣?|為什麼|哪裡|嗎"
)

_OVERVIEW = re.compile(
    r"\b(?:what|everything|all)\b.{0,20}\b(?:know|remember|recall|have)\b.{0,20}\babout me\b|"
    r"你.{0,4}(?:记得|知道|了解|記得).{0,4}(?:关于|關於)?我.{0,4}(?:什么|哪些|什麼|吗)|关于我你",
    re.IGNORECASE,
)
_CONCEPTS = {
    name: re.compile(source)
    for name, source in (
        ("home", r"\b(?:home|lives?|living|reside|address)\b|居住地|住|老家"),
        (
            "work",
            r"\b(?:work|works|working|job|employer|occupation|profession|for a living)\b|工作|职业|上班|職業",
        ),
        ("name", r"\b(?:name|called)\b|姓名|名字|称呼|叫"),
        ("birthday", r"\b(?:birthday|born)\b|生日|出生"),
        ("age", r"\b(?:age|how old|years old)\b|年龄|几岁|多大|岁"),
        ("like", r"\b(?:likes?|prefers?|favou?rite|enjoy|love)\b|喜欢|喜歡|偏好|最爱"),
        ("dislike", r"\b(?:dislikes?|hates?|avoid|not like)\b|不喜欢|讨厌|討厭"),
        ("allergy", r"\ballerg\w+|过敏|過敏"),
        ("pet", r"\b(?:pets?|dog|cat|puppy|kitten)\b|宠物|猫|狗|貓"),
        ("child", r"\b(?:kids?|child|children|sons?|daughters?)\b|孩子|女儿|儿子|女兒"),
        ("spouse", r"\b(?:wife|husband|partner|spouse|married|relationship)\b|老婆|妻子|丈夫|老公|婚姻"),
    )
}
"""Words of a question and of a note that mean the same, in both languages."""
