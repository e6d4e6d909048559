"""Whether a finished turn is looked at for something worth keeping, and why not if not (contract §5)."""

# ruff: noqa: E501 - a pattern is read in one piece
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from recall.logic.combining import nfkc

CRON_SOURCE = "cron"
MAX_LOOKED_AT = 20_000
"""Characters of a message searched for a request; a longer one is a pasted document."""

MAX_EDGE = 200
"""Characters at the end of a request in which words that are no part of it are looked for."""


class Reason(StrEnum):
    """Stable codes, shown to people and stored with the run."""

    AUTO_DISABLED = "auto_disabled"
    CRON_SOURCE = "cron_source"
    TOO_FEW_MESSAGES = "too_few_messages"
    MESSAGE_TOO_SHORT = "message_too_short"
    COOLDOWN = "cooldown"
    ANSWER_FAILED = "answer_failed"
    OK = "ok"
    EXPLICIT = "explicit"
    MANUAL = "manual"


@dataclass(frozen=True, slots=True)
class GateInput:
    """A turn and the settings it is judged by. `explicit`: `is_explicit_remember` of the person's message."""

    auto_enabled: bool
    source: str
    skip_cron: bool
    message_count: int
    min_messages: int
    last_user_length: int
    min_length: int
    explicit: bool
    manual: bool
    now: datetime
    cooldown_until: datetime | None = None
    last_answer_failed: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """`bypass`: count, length and cooldown were not asked. `until`: when a cooldown that holds it back ends."""

    go: bool
    reason: Reason
    bypass: bool = False
    until: datetime | None = None


def decide(given: GateInput) -> Verdict:  # noqa: PLR0911 - one line a gate
    """Manual runs pass all gates but the source; an explicit request passes count, length and cooldown.

    A failed answer holds back even an explicit request: the turn is not complete. Nothing is lost by it,
    since the watermark stays where it is.
    """
    held = _source_gate(given)
    if held is not None:
        return Verdict(go=False, reason=held)
    if given.manual:
        return Verdict(go=True, reason=Reason.MANUAL, bypass=True)
    if given.last_answer_failed:
        return Verdict(go=False, reason=Reason.ANSWER_FAILED)
    if given.explicit:
        return Verdict(go=True, reason=Reason.EXPLICIT, bypass=True)
    if given.message_count < given.min_messages:
        return Verdict(go=False, reason=Reason.TOO_FEW_MESSAGES)
    if given.last_user_length < given.min_length:
        return Verdict(go=False, reason=Reason.MESSAGE_TOO_SHORT)
    if given.cooldown_until is not None and given.now < given.cooldown_until:
        return Verdict(go=False, reason=Reason.COOLDOWN, until=given.cooldown_until)
    return Verdict(go=True, reason=Reason.OK)


def _source_gate(given: GateInput) -> Reason | None:
    if given.skip_cron and given.source == CRON_SOURCE:
        return Reason.CRON_SOURCE
    if not given.auto_enabled and not given.manual:
        return Reason.AUTO_DISABLED
    return None


def is_explicit_remember(text: str) -> bool:
    """Whether a message asks for something to be kept in mind; asking what is remembered is no such request."""
    return next(_requests(text), None) is not None


def remember_requests(text: str) -> list[str]:
    """What the message asks to remember, in its own words, once each and in order.

    "I'm vegan, remember that" gives "I'm vegan"; "Remember this: …" what follows; a bare "Remember
    this." the sentence before it, or the one after when there is none.
    """
    return list(dict.fromkeys(asked for asked in _requests(text) if asked))


def _requests(text: str) -> Iterator[str]:
    """The thing asked for, once per request; empty for a request that names nothing."""
    plain = _QUOTED.sub(" ", nfkc(text[:MAX_LOOKED_AT])[:MAX_LOOKED_AT])
    sentences = [" ".join(part.split()) for part in _SENTENCE.findall(plain) if part.strip()]
    for index, sentence in enumerate(sentences):
        asked = _TAG_QUESTION.sub("", sentence)
        found = _request_in(asked)
        if found is None:
            continue
        start, end = found
        rest, before = _content(asked[end:]), _content(asked[:start])
        if rest and (not _BARE.fullmatch(rest)):
            yield rest
        elif before and not _BARE.fullmatch(before):
            yield before
        else:
            yield _neighbour(sentences, index, ends_open=asked.rstrip().endswith(":"))


def _neighbour(sentences: list[str], index: int, *, ends_open: bool) -> str:
    """The sentence a bare request points at: the one before, or the next after a colon or at the start."""
    if ends_open or index == 0:
        return sentences[index + 1] if index + 1 < len(sentences) else ""
    return sentences[index - 1]


def _content(part: str) -> str:
    """What is asked for, without the words that only lead to it or away from it."""
    lead = _LEAD.match(part)
    rest = part[lead.end() :] if lead else part
    # Of a long part the end alone is looked at: a search through it all would begin anew at each word.
    tail = _TAIL.search(rest, max(0, len(rest) - MAX_EDGE))
    return (rest[: tail.start()] if tail else rest).strip()


def _request_in(sentence: str) -> tuple[int, int] | None:
    """Where the request stands in the sentence, or None."""
    folded = sentence.lower().replace("’", "'").translate(_SIMPLIFIED)
    polite = _POLITE.search(folded)
    if polite:
        return polite.span()
    if _is_question(folded):
        return None
    stated = _STATED.search(folded)
    return stated.span() if stated else None


def _is_question(folded: str) -> bool:
    return bool(_QUESTION.search(folded))


_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|^[ \t]*+>[^\n]*|“[^“”\n]*+(?:“[^“”\n]*+”[^“”\n]*+)?”|(?<!\w)\"[^\"\n]*+\"(?!\w)",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(r"(?:[^.!?\n。!?]|\.(?=\w))+[.!?。]*")
_TAG_QUESTION = re.compile(
    r"(?:[,，、]|(?<!\s))\s*+(?:ok(?:ay)?|all ?right|right|will you|would you|can you|yeah|please|好吗|好不好|行吗|可以吗|"
    r"好嗎|可以嗎|d'accord|vale|bitte|ладно|хорошо|va bene|tá bom)\s*+\?++$",
    re.IGNORECASE,
)
_QUESTION = re.compile(
    r"\?\s*$|^\s*¿|[吗么呢]\s*$|(?:です|ます|ました)か\s*$|记不记得|(?:还|你)记得.{0,80}(?:吗|么|什么|谁|哪|几)"
)
_LEAD = re.compile(
    r"(?:[\s,;:!.\-–—、。,]|(?:that|this|it|to you|for me|please|bitte|por favor|пожалуйста|que|qué|dass|das|что|это|che|la|"
    r"一下|住|得|到|这个|这件事|这点|了)(?=[\s,;:!.]|$|[\u4e00-\u9fff]))+",
    re.IGNORECASE,
)
_TAIL = re.compile(
    r"(?:[\s,;:\-–—、。,]|\b(?:and|so|please|por favor|bitte|пожалуйста|y|et|und|e|и)|请|你|麻烦|就|と|을|를|은|는)+$",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"(?:[\W_]|that|this|it|me|please|for me|about (?:this|that|me)|in (?:your )?(?:memory|mind)|for (?:later|next time|"
    r"the future)|esto|eso|lo|ça|cela|das|es|isso|isto|это|questo|一下|这个|这件事|这一点|这点|哦|啊|吧|了|"
    r"これ|それ|を|は|이거|이것|을|를|꼭|ください|下さい|ね|我的话|我|请|帮我|default|well|always)*+",
    re.IGNORECASE,
)
_SIMPLIFIED = str.maketrans(
    "記請別嗎還備幫煩務寫憶這來個麼沒妳筆點為後", "记请别吗还备帮烦务写忆这来个么没你笔点为后"
)

_CLAUSE = (
    r"(?:(?:^|[,;:.!\-–—、。]\s*)(?:please |do |always )*|\b(?:and|but|so|please|pls|also|just|then|ok|okay|hey|y|pero|et|"
    r"mais|und|aber|bitte|ma|mas|и|но|por favor|s'il te plaît|per favore|пожалуйста)[\s,]+(?:always )?)"
)
_NOT_A_MEMORY = (
    r"(?!\s+(?:when|the time|that time|those|the day|that day|how|where|who|what|why|if|whether|me\b|us\b|we\b|last\b|"
    r"back\b|you\b))"
)

_STATED = re.compile(
    "|".join(
        (
            # English
            rf"{_CLAUSE}(?:do\s+)?remember\b{_NOT_A_MEMORY}",
            (
                r"\b(?:want|need|like|ask(?:ing)?|expect|trust|tell(?:ing)?) you to (?:always |please )?"
                r"(?:remember|keep in mind|note|bear in mind)\b"
            ),
            (
                r"\byou (?:should|must|have to|need to|ought to|can) (?:always |please )?(?:remember|keep in mind|note)\b"
                rf"{_NOT_A_MEMORY}"
            ),
            (
                r"(?<!\bi )(?<!\bwe )(?<!\bthey )(?<!\bto )\b(?:don't|do not|dont) (?:you )?(?:ever )?forget\b"
                rf"{_NOT_A_MEMORY}"
            ),
            rf"{_CLAUSE}never forget\b{_NOT_A_MEMORY}",
            rf"{_CLAUSE}(?:keep|bear)\s+(?:(?:it|this|that)\s+)?in mind\b",
            rf"{_CLAUSE}(?:note|take note)(?:\s+down)?(?:\s+(?:that|this|of|for)\b|\s*:)",
            rf"{_CLAUSE}make (?:a|yourself a) (?:mental )?note\b",
            r"\bfor (?:your )?future reference\b",
            (
                rf"{_CLAUSE}(?:save|store|add|commit|put|write|keep)\s+(?:\S+\s+){{0,4}}?(?:to|in|into)\s+(?:your\s+|my\s+|the\s+|"
                r"long-term\s+)?memory\b"
            ),
            rf"{_CLAUSE}(?:write|jot|note)\s+(?:this|that|it)\s+down\b",
            # Chinese (folded to simplified)
            r"(?<![我他她们没不能以已易难])(?:请|务必|一定要?|帮我|给我|你要?|要|麻烦你?){0,8}+(?:牢牢?)?记住(?!了没|没)",
            r"(?:请|务必|一定要?|要|千万要?|麻烦你?|帮我|给我)记得(?!我们)",
            r"(?:^|[,;:。、]\s*)记得(?!我们?(?:上次|以前|小时候|第一次|那)|那|上次|以前|小时候|有一)",
            r"(?<![我他她])(?:别|不要|千万别|切勿|勿)忘(?:了|记|掉)?",
            r"(?<![我他她])(?:记一下|记下来?|记录一下|备忘|做个笔记|记个笔记)(?!了没)|帮我记",
            r"(?:存|保存|写|加|记)(?:到|入|进|在)(?:你的?|长期)?(?:记忆|备忘录|脑子|心里)",
            # Japanese (記, 憶 folded)
            r"(?:覚えて|おぼえて)(?:おいて|おけ|といて|ください?|下さい?|くれ(?!て(?:る|い|た))|ね|ほし|欲し|もら|いて(?:くだ|下|ね|ほ)|\s*$|[。!、])",
            r"(?:覚え|おぼえ)と(?:いて|け)|忘れないで|忘れるな|(?:メモ|记忆|记録|记录)(?:して|を?とって|っといて|しとい|しておい)",
            # Korean
            (
                r"기억해\s?(?:줘|주세요|주십|주시|둬|두세|둘|라|놔|주면)|기억하세요|기억해\s*+[.!]?\s*+$(?<!나는 기억해)|잊지\s?(?:마|말)|"
                r"까먹지\s?(?:마|말)|(?:메모|기록)해\s?(?:줘|둬|주세요|두세요|놔)|적어\s?(?:줘|둬|놔)"
            ),
            # Spanish
            (
                rf"{_CLAUSE}(?:recuerd[ae](?:lo)?|recuérdalo|recuérdelo|recordad|acuérdate|acuérdese|acuerdate)\b"
                r"(?!\s+(?:cuando|cuándo|a mi abuel))|\b(?:quiero|necesito) que recuerd(?:es|e)\b"
            ),
            (
                r"\bno (?:te |lo |se |me )?olvid(?:es|e|éis|en)\b|\bten(?:ga|ed)? (?:en cuenta|presente)\b|"
                rf"{_CLAUSE}(?:anota|apunta|toma nota|memoriza)\b|\bpara futuras? referencias?\b"
            ),
            # French
            r"(?<!je )\b(?:souviens-toi|souvenez-vous|rappelle-toi|rappelez-vous)\b(?!\s+(?:de )?(?:la fois|quand|du jour))",
            (
                r"(?<!je )(?<!tu )\bn'oublie[zs]? (?:pas|jamais)\b|\b(?:gardez?|garde) (?:\S+ ){0,2}?(?:à l'esprit|en tête|"
                rf"en mémoire)\b|{_CLAUSE}(?:retiens|retenez|mémorise[z]?|prends note|prenez note|note[z]? (?:que|bien|ça|cela))\b"
            ),
            # German
            (
                r"\bmerke? (?:es )?dir\b|\bmerken sie sich\b|(?<!ich )\b(?:vergiss|vergesst|vergessen sie)\b[^.!?]{0,40}\bnicht\b|"
                r"\bdenke? (?:bitte )?(?:daran|dran)\b|\bbehalten? (?:sie )?(?:\S+ ){0,3}?im (?:hinterkopf|kopf|gedächtnis)\b|"
                rf"{_CLAUSE}(?:notiere?|notieren sie|schreib dir auf|erinnere dich daran)\b"
            ),
            # Portuguese
            (
                rf"\b(?:lembre-se|lembra-te|lembrem-se)\b|{_CLAUSE}lembr[ea] (?:de )?que\b|"
                r"(?<!eu )\bn[ãa]o (?:se |te |me )?esque[cç]a(?:s|m)?\b|\btenha em mente\b|"
                rf"{_CLAUSE}(?:anot[ea](?:r)?|memoriz[ea]|guard[ea] (?:isso|isto|na mem[óo]ria))\b"
            ),
            # Russian
            (
                r"(?<!я )(?<!не )\bзапомни(?:те)?\b|\bне забудь(?:те)?\b|\bне забывай(?:те)?\b|\b(?:имей|имейте) в виду\b|"
                rf"{_CLAUSE}(?:помни|помните|учти|учтите|запиши|запишите|заметь|возьми на заметку)\b"
            ),
            # Italian
            (
                rf"\bricorda(?:ti|tevi|telo)\b|{_CLAUSE}ricord[ai]\b(?!\s+quando)|\bnon dimentic(?:are|arti|arlo|atevi|hi)\b|"
                rf"\b(?:tieni|tenga|tenete) (?:a mente|presente)\b|{_CLAUSE}(?:annota(?:ti)?|prendi nota|memorizza)\b"
            ),
        )
    )
)
"""Said as a statement or an order. Not asked of questions."""

_POLITE = re.compile(
    "|".join(
        (
            (
                r"\b(?:can|could|will|would) you (?:please |kindly |also |just )*"
                r"(?:remember (?:that|this|it|to)\b(?! (?:time|day|one|night|trip|place|guy|girl|person|song|movie|thing))"
                r"(?! we\b| i (?:said|told|asked))|keep (?:it |this |that )?in mind|make a note|note (?:that|this|down)|"
                r"save (?:this|that|it)|store (?:this|that|it)|not forget)"
            ),
            r"\bwould you mind remembering\b",
            r"(?:帮我|请|麻烦你?)(?:记住|记一下|记下|记得)",
            r"(?:覚えておいて|覚えといて|忘れないで|メモして(?:おいて)?|记忆して|记録して)(?:くれ(?:る|ます)|ください?(?:ます)?|下さい?|もらえ(?:る|ます)?|いただけ(?:る|ます)?)か?",
            r"기억해\s?(?:줄래|주실래|줄 수|주실 수|주시겠|주겠)|(?:메모|기록)해\s?(?:줄래|주실래|줄 수|주실 수)",
            r"\b(?:puedes?|podr[ií]as?)(?: por favor)? recordar que\b",
            r"\b(?:peux-tu|pouvez-vous|pourrais-tu|tu peux) (?:\S+ )?(?:retenir|te souvenir|noter) que\b",
            r"\bkannst du dir (?:bitte )?merken,? dass\b|\bkönntest du dir (?:bitte )?merken,? dass\b",
            r"\b(?:pode|poderia|você pode) (?:\S+ )?(?:lembrar|anotar) que\b",
            r"\b(?:можешь|можете|мог бы|могли бы)(?: ты| вы)? (?:\S+ )?(?:запомнить|записать),? что\b",
            r"\b(?:puoi|potresti) (?:\S+ )?(?:ricordare|ricordarti|annotare) che\b",
        )
    )
)
"""A request in the form of a question; it names what is to be kept, or asks for the keeping itself."""
