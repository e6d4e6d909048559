"""Which sentences of a conversation carry information, and what a person states about themselves in them.

English and Chinese are read in full; in other languages a sentence counts by its length and its names.
"""

# ruff: noqa: E501 - a pattern is read in one piece
from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum

from memory.logic import dates
from workspaces.logic.tokens import CJK_CLASS

_words = str.split

MAX_SENTENCE = 240
"""Characters of a sentence in a note; what is longer is cut at a word."""

MAX_READ = 1000
"""Characters of a sentence that are read for what it states; what goes on longer is a document, not talk."""

SALIENT = 1.5
"""Score from which a sentence is worth noting; found by reading what it drops from real conversations."""


class Kind(StrEnum):
    """What a statement is about."""

    NAME = "name"
    HOME = "home"
    WORK = "work"
    STUDY = "study"
    AGE = "age"
    BIRTHDAY = "birthday"
    ORIGIN = "origin"
    FAMILY = "family"
    PET = "pet"
    TRAIT = "trait"
    LIKE = "like"
    DISLIKE = "dislike"
    FAVORITE = "favorite"
    ALLERGY = "allergy"
    STYLE = "style"
    PLAN = "plan"
    EVENT = "event"
    DECISION = "decision"


@dataclass(frozen=True, slots=True)
class Statement:
    """One thing a person said of themselves.

    `slot` names what can have one value at a time ("Home", 居住地, "Favorite book") and is empty where there may
    be many. `about` is the bare object, by which a change of mind is recognised.
    """

    kind: Kind
    text: str
    about: str
    slot: str = ""
    before: str = ""
    chinese: bool = False


# --- sentences ---------------------------------------------------------------------------------------

_SENTENCE = re.compile(
    r"(?:[^.!?。！？…\n]|\.(?=[\w/])|(?<=\b[A-Z])\.(?=\s)|(?<=\b(?:Dr|Mr|Ms|St|vs))\.(?=\s)|(?<=\b(?:Mrs|etc|e\.g|i\.e))\.(?=\s))+"
    r"[.!?。！？…]*[\"'”’)」』]*"
)
_SPACES = re.compile(r"\s+")
_WIDE_SPACES = re.compile(r"[^\S\n]{2,}")
_CJK = re.compile(f"[{CJK_CLASS}]")
_HAN_RUN = re.compile(r"[\u4e00-\u9fff]{2,}")


def sentences(text: str) -> list[str]:
    """The sentences of a text, trimmed, in order; line breaks end one, "3.5" and "Dr. Lee" do not."""
    found = (_SPACES.sub(" ", part).strip() for part in _SENTENCE.findall(text))
    return [part for part in found if any(char.isalnum() for char in part)]


def is_question(sentence: str) -> bool:
    return bool(re.search(r"[?？][\"'”’)」』]*$|[吗嗎]\s*[。!！]?$", sentence))


def shorten(sentence: str, limit: int = MAX_SENTENCE) -> str:
    """At most `limit` characters, cut at a word, with a mark."""
    if len(sentence) <= limit:
        return sentence
    head = sentence[: limit - 2]
    at = max(head.rfind(" "), head.rfind("，"), head.rfind("、"))
    return f"{head[:at] if at > limit // 2 else head} …"


# --- salience ----------------------------------------------------------------------------------------

_WORD = re.compile(rf"[^\W\d_{CJK_CLASS}][^\W_{CJK_CLASS}'’-]*(?:['’-][^\W_{CJK_CLASS}]+)*|\d[\d.,:/%-]*")
_EMPTY_WORDS = frozenset(
    _words(
        """
    a about actually agree ah all alright already also always am amazing an and any anything are as at
    aw awesome back be bad beautiful been being best better bet bit but by bye can can't care catch chat
    cheers come congrats congratulations cool could cute day did definitely do does doesn't doing don't
    done dude else enjoy enjoyed even ever every excited exactly fantastic feel feeling feels for from
    fun get getting glad go going gonna good gosh got gotta great guess guy guys had haha happy hard has
    have haven't having he hear heard hello help her here hey hi him his hmm hope how i idea if
    impressive in incredible interesting into is isn't it its just keep kind kinda know later let like
    likes little ll look looking looks lol lot lots love loved lovely luck lucky made make makes man
    mate maybe me mean means mine more most much must my need never new nice no nope not now of off oh
    ok okay on one or other our out over perfect please pleasure pretty priceless probably proud quite
    ready real really right rock said same say see seeing seems share sharing she should so some
    something soon sorry sound sounded sounds still stuff such super support supportive sure sweet take
    talk tell than thank thankful thanks that the their them then there these they thing things think
    this those though time times to together too totally touch true try trying u up us very wait wanna
    want was way we well went were what when where which while who whole why will wish with wonderful
    won't word words work worth would wow ya yay yeah yep yes yet you your yours yourself hola gracias
    buenos buenas merci bonjour salut danke hallo obrigado obrigada olá ciao grazie спасибо привет
    """
    )
)
_CHINESE_EMPTY = re.compile(
    r"你好呀?|您好|大家好|早上好|下午好|晚上好|早安|晚安|谢谢(?:你|您|大家)?|謝謝(?:你|您)?|多谢|感谢|不客气|没关系|沒關係|好的|好吧|好啊|好呀|"
    r"嗯+|哦+|哈+|是的|是啊|对啊|对的|对|没错|收到|明白了?|知道了|了解|当然|可以|没问题|再见|拜拜|回头见|辛苦了|太好了|太棒了|"
    r"真棒|真好|厉害|恭喜(?:你)?|加油|行|ok|请问|麻烦(?:你)?了?|こんにちは|ありがとう(?:ございます)?|おはよう|はい|안녕하세요|감사합니다|네",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"\b(?:I|I'm|I've|I'll|I'd|my|me|we|we're|we've|our|us|myself)\b|[我咱]|私|僕|俺|나는|제가|저는",
    re.IGNORECASE,
)
_FRIENDLY = re.compile(
    r"^(?:hey|hi|hello|wow|thanks?|thank you|congrats|congratulations|way to go|good (?:luck|job|for you|to hear)|"
    r"you(?:'re|'ve| are| rock| got| should|r)|keep (?:it|up|going)|take care|see (?:you|ya)|talk (?:to you )?soon|have a|"
    r"that(?:'s| is| sounds| looks| must)|sounds|looks|it(?:'s| is) (?:great|awesome|amazing|so) (?:to|that)|"
    r"glad|so (?:glad|happy|proud)|i(?:'m| am) (?:so |really )?(?:glad|proud|happy|sorry|here) (?:to hear|for|of|that) ?(?:you)?|"
    r"let me know|i appreciate|no (?:problem|worries)|of course|sure|exactly|absolutely|totally|same here|me too|anytime)\b",
    re.IGNORECASE,
)
_ERRAND = re.compile(
    r"^(?:please |can you |could you |now )*(?:translate|rewrite|rephrase|shorten|summari[sz]e|proofread|make (?:this|it)|(?:fix|correct|explain|improve) (?:this|the above)|"
    r"try again|continue)\b|(?:帮我|幫我|请|請|把).{0,8}(?:翻译|翻譯|改写|改寫|润色|潤色|总结|總結|缩短|縮短|改短)",
    re.IGNORECASE,
)
"""Asks for something done to a text: it ends with the turn."""

_SECOND_PERSON = re.compile(r"\b(?:you|your|you['’](?:re|ve|ll|d)|yourself|y'all)\b", re.IGNORECASE)
_RELATIVE_DATE = re.compile(
    r"\b(?:yesterday|tomorrow|tonight|last|next|ago|monday|tuesday|wednesday|thursday|friday|saturday|sunday|january|"
    r"february|march|april|june|july|august|september|october|november|december)\b|昨天|前天|明天|后天|上周|下周|上个月|下个月|去年|明年",
    re.IGNORECASE,
)


def score(sentence: str) -> float:
    """How much a sentence says: informative words, with names, figures and dates counting more."""
    words = _WORD.findall(sentence.replace("’", "'"))
    informative = [word for word in words if word.lower() not in _EMPTY_WORDS]
    names = sum(1 for word in informative[0 if words[:1] != informative[:1] else 1 :] if word[0].isupper())
    figures = sum(1 for word in words if word[0].isdigit())
    chinese = len(_CJK.findall(_CHINESE_EMPTY.sub("", sentence)))
    total = len(informative) * 0.6 + names * 0.4 + figures * 0.6 + chinese * 0.25
    if _RELATIVE_DATE.search(sentence):
        total += 1.0
    if total and _FIRST_PERSON.search(sentence):
        total += 0.5
    if _FRIENDLY.match(sentence):
        total -= 1.2
    if _SECOND_PERSON.search(sentence) and not _FIRST_PERSON.search(sentence):
        total -= 0.8
    return total


def is_salient(sentence: str) -> bool:
    """Worth a place in the daily note: not a greeting, thanks, filler, or a mere question."""
    if _ERRAND.search(sentence):
        return False
    if is_question(sentence):
        return bool(_FIRST_PERSON.search(sentence)) and score(sentence) >= 2 * SALIENT
    return score(sentence) >= SALIENT


def salient_sentences(text: str) -> list[str]:
    """The sentences worth noting, shortened, in order."""
    return [shorten(sentence) for sentence in sentences(text) if is_salient(sentence)]


# --- whose words -------------------------------------------------------------------------------------

_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
_LONG_QUOTE = re.compile(
    r"[\"“「『](?![\"”」』])([^\"“”「」『』\n]{0,2000}+(?:[“「『][^\"“”「」『』\n]{0,2000}+[”」』][^\"“”「」『』\n]{0,2000}+)?)[\"”」』]"
)
"""With one quotation inside it at most, so that no mark is looked past twice."""
_PASTED_LINE = re.compile(
    r"^\s*(?:>|\||(?:From|To|Cc|Subject|Sent|Date|发件人|收件人|主题)\s*[:：]|-{3,}|={3,})", re.IGNORECASE
)
_SPEAKER_LINE = re.compile(
    r"^\s*(?:\[[^\]]{1,40}\]\s*)?([^\W\d][^:：\n]{0,30})[:：]\s+\S|^\s*(?:\[[^\]]{1,40}\]\s*)?([\u4e00-\u9fff]{1,6})：\S"
)
_OWN_LEADS = frozenset(
    _words(
        """
    note remember fyi ps p.s. update correction reminder please hi hello also edit ps. plan plans todo
    decision decided my name name allergies about me favorite 备注 注意 记住 更正 补充 计划 决定 请记住 请记得 记一下
    """
    )
) | {
    "my name",
    "about me",
    "please note",
    "note to self",
    "remember this",
    "please remember",
    "one more thing",
}


def own_words(text: str) -> str:
    """`text` without what its author only quotes: code, quoted lines, mails, pasted chat, first-person quotations."""
    lines = _FENCED.sub("\n", text).splitlines()
    kept: list[str] = []
    for line in lines:
        if _PASTED_LINE.match(line):
            if "original message" in line.lower() or "forwarded" in line.lower():
                break
            continue
        spoken = _SPEAKER_LINE.match(line)
        if (
            spoken
            and (spoken[1] or spoken[2]).strip().casefold() not in _OWN_LEADS
            and _is_name(spoken[1] or spoken[2])
        ):
            continue
        kept.append(line)
    return _LONG_QUOTE.sub(_title_only, "\n".join(kept))


def _is_name(lead: str) -> bool:
    words = lead.split()
    return len(words) <= 3 and all(not word[:1].islower() for word in words)


def _title_only(quote: re.Match[str]) -> str:
    """A short quotation without a first person is a title and stays; the rest is another's sentence."""
    inner = quote[1]
    is_title = len(inner.split()) <= 6 and len(_CJK.findall(inner)) <= 12 and not _FIRST_PERSON.search(inner)
    return quote[0] if is_title else " "


# --- statements --------------------------------------------------------------------------------------

_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|all|earlier|your)\b.{0,30}\b(?:instructions?|rules|"
    r"prompts?|guidelines)|system prompt|developer mode|jailbreak|you are now\b|new instructions?:|"
    r"忽略.{0,10}(?:指令|规则|提示|要求)|系统提示词?|越狱",
    re.IGNORECASE,
)
_NOT_MEANT = re.compile(
    r"(?i:^(?:\w+[, ]+)?if\b|[,;] ?(?:but |and )?if\b|\b(?:imagine|pretend|suppose|let['’]s say|as if|as though|even if|only if|what if|hypothetically|wish|would['’]ve|"
    r"could['’]ve|maybe I)\b)|"
    r"\b(?:he|she|they|who|friend|mom|dad|mother|father|boss|[A-Z][a-z]+) (?:said|says|thinks?|thought|told (?:me|us)|asked|wrote|"
    r"believes?|claims?)\b|\b(?:the (?:song|story|poem|character|book|movie|line) (?:says|goes))\b|"
    r"如果|假如|假设|要是|想象|假装|扮演|(?:他|她|朋友|同事|老师|老板|妈妈|爸爸|有人)们?(?:跟我|对我|告诉我|总|都)?(?:说|觉得|以为|认为|问)",
)
_TURN_LOCAL = re.compile(
    r"\b(?:this (?:text|email|message|sentence|paragraph|letter|draft|code|answer|reply|one|article|essay)|the (?:above|following)|"
    r"for now|just this once|this time|right now|today only|in this (?:chat|conversation|thread|session)|"
    r"make (?:it|that) (?:\w+ )?(?:shorter|longer|simpler|briefer|clearer|formal|funnier))\b|"
    r"这(?:段|篇|句|封|次|个回答)|上面|下面|这一次|翻译一下|改短|缩短|这个?(?:聊天|对话|会话)(?:里|中)",
    re.IGNORECASE,
)
_PRONOUN_START = re.compile(
    r"^(?:(?:the|all|these|those|all the) [a-z]+ (?!of\b|and\b)[a-z]+|all [a-z]+|(?:their|his|her|our|makes?|gives?|helps?|is|was|has)\b|it|its|it's|that|that's|this|these|those|him|her|them|they|you|your|yours|how|what|when|where|why|who|whenever|"
    r"seeing|hearing|being (?:able|here|there|with)|the (?:way|idea|thought|fact|colors?|energy|vibes?|look|picture|photo)|to (?:hear|see|know|say|"
    r"think|tell|be|do|get|help|share|go|meet|have|make|hear|chat|talk)\b|talking to you|all (?:of )?(?:it|this|that|your)|one|some|everything|"
    r"every (?:minute|second|bit)|both|my(?:self)?\b|him|us|me|having|getting|so much|more|most|doing|going|being|about|for)\b",
    re.IGNORECASE,
)
_END = (
    r"(?=\s*(?:(?<!\bSt)(?<!\bDr)(?<!\bMt)\.|[;:!?()。！？，；\n–—]|,|$)|\s+(?:but|so|because|since|cause|cuz|when|whenever|which|who|where|while|if|as|than|though|"
    r"although|until|(?:and|but)\s+(?:I|I'm|it|it's|we|my|that|this|he|she|they|you|then|so|now|am|have|would|will|just|really|love|hate|"
    r"can|could|want|need|think|plan|also|please)\b))"
)
_CHAR = r"(?:[^.;:!?()\n,]|(?<=\bSt)\.|(?<=\bDr)\.|(?<=\bMt)\.)"
_X = rf"(?P<x>[^\s,.;:!?()]{_CHAR}{{0,79}}?){_END}"
_I_AM = r"\bI(?:['’]m| am)(?: (?:also|now|currently|actually|still|really|just|a bit|severely|very|highly|super|so|deathly|originally))*"
_I_VERB = (
    r"\bI(?: (?:also|now|currently|actually|still|really|just|absolutely|totally|always|do|usually|generally|especially|particularly|"
    r"mostly|only|personally|simply|truly|mainly))*"
)
_RELATIVES = (
    r"wife|husband|partner|fianc[ée]e?|spouse|boyfriend|girlfriend|son|daughter|mom|mum|mother|dad|father|sister|brother|"
    r"grandma|grandmother|grandpa|grandfather|niece|nephew|cousin|aunt|uncle|boss|roommate|best friend|baby"
)
_PETS = r"dog|cat|puppy|pup|kitten|kitty|parrot|rabbit|bunny|hamster|turtle|tortoise|horse|guinea pig|snake|lizard|fish|bird"
_SINGLE = frozenset(
    _words(
        """
    wife husband partner fiancé fiancée spouse boyfriend girlfriend mom mum mother dad father
    """
    )
)
_NAME = r"(?P<n>[A-Z][\w’'-]*(?: [A-Z][\w’'-]*){0,2})"
_JOBS = (
    r"nurse|doctor|physician|surgeon|dentist|teacher|professor|lecturer|tutor|engineer|developer|programmer|designer|architect|"
    r"lawyer|attorney|judge|accountant|banker|analyst|consultant|manager|director|ceo|cto|founder|entrepreneur|journalist|writer|"
    r"author|editor|screenwriter|artist|painter|musician|singer|dancer|actor|actress|photographer|chef|cook|baker|waiter|waitress|"
    r"barista|driver|pilot|mechanic|electrician|plumber|carpenter|farmer|gardener|firefighter|police officer|soldier|paramedic|"
    r"pharmacist|psychologist|therapist|counselor|social worker|scientist|researcher|biologist|chemist|physicist|librarian|"
    r"secretary|receptionist|salesperson|sales rep|realtor|trainer|coach|athlete|basketball player|football player|student|intern|"
    r"freelancer|volunteer|streamer|gamer|data scientist|product manager|project manager|postdoc|vet|veterinarian|stylist|tailor"
)

# fmt: off
_ENGLISH: tuple[tuple[Kind, str, str, re.Pattern[str]], ...] = tuple(
    (kind, slot, shape, re.compile(source))
    for kind, slot, shape, source in (
        (Kind.NAME, "Name", "{x}", r"\b(?:[Mm]y (?:full |real )?name is|[Mm]y name['’]s|I(?:['’]m| am) called)(?: now| actually)? (?P<x>[^\W\d][\w’'-]*(?: [A-Z][\w’'-]*){0,3})"),
        (Kind.NAME, "Name", "{x}", r"^(?:[Hh]i|[Hh]ello|[Hh]ey|[Gg]ood (?:morning|afternoon|evening|day))\b[^.!?]{0,20}?[,!. ]\s*(?:I['’]m|I am|[Tt]his is) (?P<x>[A-Z][\w’'-]+(?: [A-Z][\w’'-]+){0,2})(?=[,.!]|$| and| from)"),
        (Kind.NAME, "Called", "{x}", r"\b(?:[Cc]all me|I go by|you can call me)(?: now)? (?P<x>[A-Z][\w’'-]+(?: [A-Z][\w’'-]+)?)(?=\s*(?:[,.!]|$|from now|please|instead|and))"),
        (Kind.HOME, "Home", "{x}", rf"\b(?:I|[Ww]e)(?:['’](?:ve|re|m)| have| am| are)?(?: just| recently| finally| both| all)? (?:moved|relocated)(?: back)?(?: here)?(?: from (?P<old>[^,.;!?]{{2,40}}?))? to {_X}"),
        (Kind.HOME, "Home", "{x}", rf"(?:{_I_VERB} (?:live|reside)|{_I_AM} (?:living|based)|\bI['’]ve (?:always )?lived)(?: now| alone)? (?:in|near|on|at) {_X}"),
        (Kind.WORK, "Work", "{x}", rf"(?:{_I_VERB} work(?:ed)?|{_I_AM} (?:working|employed)|\bI(?:['’]ve| have)? (?:just |recently )?(?:got|started|landed|took)(?: a)?(?: new)? (?:job|position|role))(?: full[- ]time| part[- ]time| remotely)? as an? {_X}"),
        (Kind.WORK, "Employer", "{x}", rf"(?:{_I_VERB} work|{_I_AM} (?:working|employed)|\bI(?:['’]ve| have)? (?:just |recently )?(?:got|started|landed)(?: a)?(?: new)? (?:job|position|role))(?: full[- ]time| part[- ]time| remotely)? (?:at|for|by) (?P<x>(?:an? |the )?[A-Z][^.;:!?()\n,]{{0,60}}?){_END}"),
        (Kind.WORK, "Work", "{x}", rf"{_I_AM} (?:an? )(?P<x>(?:[\w-]+ ){{0,3}}?(?:{_JOBS})(?: (?:at|for|in|with) {_CHAR}{{2,50}}?)?)(?: now| again| these days)?{_END}"),
        (Kind.WORK, "Work", "{x}", rf"\b[Mm]y job is {_X}"),
        (Kind.WORK, "Work", "{x}", r"\bI(?:['’]ve| have)?(?: just| recently| finally)? (?P<x>(?:lost|quit|left) my job(?: (?:at|as) [^.;:!?()\n,]{2,50})?|(?:was|got) (?:laid off|fired)|retired)\b"),
        (Kind.STUDY, "Studies", "{x}", rf"(?:{_I_AM} (?:studying|majoring in|doing a degree in)|{_I_VERB} (?:study|major in)) (?!for\b|hard\b|a lot\b){_X}"),
        (Kind.AGE, "Age", "{x}", r"\bI(?:['’]m| am)(?: now)? (?P<x>[1-9]\d)(?: years old)?(?=\s*(?:[,.!]|$|and))|\bI (?:just )?turned (?P<x2>[1-9]\d)\b"),
        (Kind.BIRTHDAY, "Birthday", "{x}", rf"\b(?:[Mm]y birthday is(?: on)?|I was born (?:on|in)) (?P<x>[^\s,.;:!?()][^.;:!?()\n,]{{0,40}}?(?:, \d{{4}})?){_END}"),
        (Kind.ORIGIN, "From", "{x}", rf"(?:{_I_AM} from|{_I_VERB} (?:come from|grew up in)|\bmy home ?(?:country|town) is|\bmy home ?(?:country|town),) (?P<x>(?:a |the )?(?:small |little )?[A-Z\w][^.;:!?()\n,]{{1,50}}?){_END}"),
        (Kind.FAMILY, "", "{r}: {n}", rf"\b[Mm]y (?:(?:little|big|older|younger|oldest|youngest|eldest|late|new|twin) )?(?P<r>{_RELATIVES})(?:['’]s name is|(?:,| is called| is named| named| called| is))? {_NAME}(?=\s*(?:[,.!?;)]|['’]s\b|$|and|is|who|has|loves|likes|was|just|will|turned))"),
        (Kind.FAMILY, "Children", "{x}", rf"\b(?:I|[Ww]e)(?:['’]ve got| have)(?: got)? (?P<x>(?:an?|one|two|three|four|five|six|\d)(?: \w+)? (?:kids?|child(?:ren)?|sons?|daughters?|twins|boys|girls)(?: [^.;:!?()\n,]{{1,40}}?)?){_END}"),
        (Kind.FAMILY, "Children", "{x}", r"\b[Mm]y (?:own )?(?P<x>kids|children)(?=\b)(?! ?['’]| (?:book|show|movie|size|menu))"),
        (Kind.FAMILY, "Relationship", "married", r"\b[Mm]y (?P<x>husband|wife)\b(?! to be)"),
        (Kind.FAMILY, "", "has {x}", rf"\b(?:I|[Ww]e)(?:['’]ve got| have)(?: got)? (?P<x>(?:an?|one|two|three|four|five|six|\d)(?: \w+)? (?:siblings?|brothers?|sisters?|twins|boys|girls)(?: [^.;:!?()\n,]{{1,40}}?)?){_END}"),
        (Kind.FAMILY, "Relationship", "{x}", rf"{_I_AM} (?P<x>married(?: to [^.;:!?()\n,]{{2,40}}?)?|divorced|engaged(?: to [^.;:!?()\n,]{{2,40}}?)?|single|a single (?:mom|dad|mother|father|parent)|widowed){_END}"),
        (Kind.PET, "", "{r}: {n}", rf"\b(?:[Mm]y|[Oo]ur) (?:(?:little|big|old|new|other|late|\w+) )?(?P<r>{_PETS})(?:['’]s name is|(?:,| is called| is named| named| called))? {_NAME}"),
        (Kind.PET, "", "{r}: {n}", rf"\b(?:I|[Ww]e)(?:['’]ve(?: got)?| have| own)?(?: just| recently| also)?(?: got| have| adopted| rescued| bought)? (?:an?|another)(?: new)?(?: \w+)? (?P<r>{_PETS}) (?:named|called) {_NAME}"),
        (Kind.PET, "", "has {x}", rf"\b(?:I|[Ww]e)(?:['’]ve(?: got)?| have| own)?(?: just| recently| also)?(?: got| have| adopted| rescued| bought)? (?P<x>(?:an?|two|three|four|\d|another)(?: new)?(?: \w+)? (?:{_PETS})(?:s|ies)?(?: (?:named|called) [^.;:!?()\n]{{2,40}}?)?){_END}"),
        (Kind.ALLERGY, "", "allergic to {x}", rf"(?:{_I_AM}|\bI['’]ve (?:always )?been) allergic to {_X}"),
        (Kind.ALLERGY, "", "{x}", rf"\bI(?:['’]ve| have)(?: got)?(?: a| an)? (?P<x>(?:\w+ ){{0,2}}allerg(?:y|ies)(?: to [^.;:!?()\n,]{{2,50}}?)?){_END}|{_I_AM} (?P<x2>\w+[- ]intolerant)"),
        (Kind.TRAIT, "", "{x}", rf"{_I_AM} (?:an? )?(?P<x>(?:strict |lifelong )?(?:vegan|vegetarian|pescatarian|c[o]?eliac|diabetic|left-handed|colou?r[- ]?blind|dyslexic|teetotal|night owl|early bird|morning person|introvert|extrovert|native (?:[A-Z]\w+ )?speaker)(?: since [^.;:!?()\n,]{{2,30}}?)?){_END}"),
        (Kind.TRAIT, "", "no longer {x}", rf"{_I_AM} (?:no longer|not) (?:an? )?(?P<x>vegan|vegetarian|pescatarian|married|single|a student)(?: any ?more)?{_END}"),
        (Kind.TRAIT, "", "speaks {x}", rf"{_I_VERB} speak (?P<x>(?:fluent |some |a little )?[A-Z]\w+(?:(?:,| and|, and) (?:some |a little )?[A-Z]\w+){{0,4}}){_END}"),
        (Kind.FAVORITE, "Favorite {r}", "{x}", rf"\b[Mm]y (?:all[- ]time |absolute |new )?fav(?:ou?rite)? (?P<r>[a-z]+(?: [a-z]+)?)(?: of all time| ever)? (?:is|are|has always been|was always|would be)(?: (?:definitely|probably|still))? {_X}"),
        (Kind.FAVORITE, "Favorite {r}", "{x}", r"(?:^|, |\band )(?P<x>[\"“]?[A-Z][^,.;!?]{1,40}?) is my (?:all[- ]time |absolute )?fav(?:ou?rite)? (?P<r>[a-z]+(?: [a-z]+)?)(?=\s*[.,!;]|$)"),
        (Kind.DISLIKE, "", "dislikes {x}", rf"{_I_VERB} (?:hate|dislike|detest|loathe|despise|can['’]?t stand|cannot stand|(?:don['’]t|do not)(?: really| actually| particularly| even)? (?:like|enjoy|care for)|no longer (?:like|love|enjoy))(?: to)? {_X}"),
        (Kind.DISLIKE, "", "dislikes {x}", rf"{_I_AM} (?:not (?:really |much of |exactly )?(?:an? (?:big |huge )?fan of|into|fond of)|sick of|tired of eating) {_X}"),
        (Kind.DISLIKE, "", "does not {v} {x}", rf"{_I_VERB} (?:(?:don['’]t|do not|never|no longer|can['’]t|cannot)(?: really| ever)?) (?P<v>eat|drink|smoke|use|watch|wear) {_X}"),
        (Kind.DISLIKE, "", "stopped {v} {x}", rf"\bI(?:['’]ve| have)?(?: just| recently| finally)? (?:stopped|quit|gave up|given up) (?P<v>eating|drinking|smoking|using|watching|playing) {_X}"),
        (Kind.TRAIT, "", "plays {x}", rf"{_I_VERB} play(?: the)? (?P<x>(?:acoustic |electric |bass |video |competitive |professional )?(?:guitar|piano|violin|drums|cello|flute|clarinet|ukulele|saxophone|trumpet|bass|basketball|football|soccer|tennis|volleyball|baseball|golf|hockey|badminton|chess|games)){_END}"),
        (Kind.TRAIT, "", "learning {x}", rf"{_I_AM} learning(?: how)?(?: to (?:play|speak|do))?(?: the)? (?!about\b|a\b|so\b|to\b|that\b|more\b|new\b|from\b|how\b|lots\b)(?P<x>[\w-]+(?: [\w-]+){{0,2}}?){_END}"),
        (Kind.LIKE, "", "likes {x}", rf"\b[Mm]y (?:biggest |main |favou?rite )?(?:hobby|hobbies|passion|passions) (?:is|are|include) {_X}"),
        (Kind.LIKE, "", "likes {x}", r"(?:^|, |\band )(?P<x>[A-Z][\w-]+(?: [a-z]+)?) is my (?:biggest |real |true |main |greatest )?(?:passion|hobby)\b"),
        (Kind.LIKE, "", "prefers {x}", rf"(?:{_I_VERB}|\bI['’]d) prefer (?!not\b|if\b|you\b|your\b){_X}"),
        (Kind.LIKE, "", "likes {x}", rf"(?:{_I_VERB} (?:love|like|adore|enjoy)|{_I_AM} (?:into|fond of|obsessed with|passionate about|crazy about|addicted to|an? (?:big |huge |massive |lifelong |real )?fan of)|\bI['’]ve (?:always )?(?:loved|liked|enjoyed|been into|been a fan of)|\bI(?:['’]ve| have)? (?:started|begun) (?:to )?(?:like|love|enjoy)(?:ing)?) {_X}"),
    )
)
# fmt: on

_HX = r"(?P<x>[^,，.。;；!！?？、\s][^,，.。;；!！?？\n]{0,30}?)(?=[,，.。;；!！?？\n]|$|但是?|不过|因为|所以|而且|并且|，)"
_MUCH = (
    r"(?:(?:真的|非常|特别|比较|尤其|一直|从小|平时|现在|其实|还是|很|最|超|也|都|更|就|挺|蛮|只|确实|好)*)"
)
_HAN_NAME = r"(?P<n>[\u4e00-\u9fff·]{1,5}?|[A-Za-z][A-Za-z ]{0,20}?)(?=[,，.。;；!！、\s和]|$|今年|就|吧|在|是|了|已|很|喜欢|也)"
_HAN_RELATIVES = "老婆|妻子|太太|爱人|老公|丈夫|女朋友|男朋友|女友|男友|未婚妻|未婚夫|女儿|儿子|妈妈|母亲|爸爸|父亲|姐姐|妹妹|哥哥|弟弟|奶奶|爷爷|外婆|外公|宝宝|室友|老板"
_HAN_PETS = "猫咪|小猫|猫|小狗|狗狗|狗|兔子|仓鼠|乌龟|鹦鹉|金毛|柯基|布偶猫|橘猫"
_HAN_JOBS = (
    r"医生|护士|老师|教师|工程师|程序员|设计师|律师|会计师?|司机|警察|厨师|记者|作家|教授|研究员|经理|产品经理|学生|研究生|博士生|大学生|"
    r"公务员|销售|翻译|摄影师|画家|演员|歌手|分析师|咨询师|创业者|自由职业者|运营|架构师|药剂师|面包师|咖啡师|心理咨询师|编辑"
)

# fmt: off
_CHINESE: tuple[tuple[Kind, str, str, re.Pattern[str]], ...] = tuple(
    (kind, slot, shape, re.compile(source))
    for kind, slot, shape, source in (
        (Kind.NAME, "姓名", "{n}", rf"我(?:的名字|的全名|本名)?(?:叫做?|名叫|是叫)(?![他她它你们车醒外了]){_HAN_NAME}|我的名字是(?P<n2>[\u4e00-\u9fffA-Za-z·]{{1,12}})"),
        (Kind.NAME, "称呼", "{n}", rf"(?:可以|以后|请|就)叫我{_HAN_NAME}(?:就好|就行|吧|即可)?"),
        (Kind.HOME, "居住地", "{x}", rf"我们?(?:家|已经|刚|最近|上周|上个月|去年|今年|现在|前天|昨天|终于|又)*(?:从(?P<old>[^,，。]{{1,12}}?))?搬(?:家)?(?:到|去|来|回)了?(?!一起){_HX}"),
        (Kind.HOME, "居住地", "{x}", rf"我(?:现在|目前|一直|和?家人|家|平时)*(?:居?住在|定居在|住的地方是|在(?=[\u4e00-\u9fff]{{2,8}}(?:定居|生活))){_HX}"),
        (Kind.WORK, "工作", "{x}", rf"(?:我(?:现在|目前|平时|的职业|的工作|已经|刚)*(?:是|当了?|做)(?:一[名个位])?|^我[^,，。]{{1,20}}[,，]我?是一?[名个位])(?P<x>[^,，。;；!！?？\s]{{0,10}}(?:{_HAN_JOBS}))(?=[,，。;；!！\s]|$)"),
        (Kind.WORK, "工作", "{x}", r"我(?:现在|目前|平时|刚)*(?P<x>在[^,，。;；!！?？\s]{2,20}?(?:工作|上班|任职|实习|当[^,，。]{2,8}|做(?!过)[^,，。]{2,8}))(?=[,，。;；!！\s]|$)"),
        (Kind.WORK, "工作", "{x}", r"我(?:已经|刚|最近|上周|上个月|昨天|今天)*(?P<x>辞职|失业|被裁|离职|退休)了?"),
        (Kind.STUDY, "学业", "{x}", r"我(?:现在|目前|正)*(?P<x>在[^,，。;；!！?？\s]{2,15}?(?:读书|上学|读研|读博|读[^,，。书]{2,8}|上大学))"),
        (Kind.STUDY, "学业", "{x}", rf"我(?:的专业是|学的是|读的是|主修){_HX}"),
        (Kind.AGE, "年龄", "{x}岁", r"(?:我|^我(?:叫|是)[^,，]{1,8}[,，])(?:今年|现在|已经|刚满)*(?P<x>\d{1,2}|[一二三四五六七八九]?十[一二三四五六七八九]?)岁"),
        (Kind.BIRTHDAY, "生日", "{x}", rf"我的?生日是?(?:在)?{_HX}"),
        (Kind.ORIGIN, "来自", "{x}", rf"我(?:是(?P<x2>[\u4e00-\u9fff]{{2,8}})人(?=[,，。!！\s]|$)|来自{_HX}|的?老家(?:是|在)(?P<x3>[\u4e00-\u9fff]{{2,10}}))"),
        (Kind.FAMILY, "", "{r}：{n}", rf"我(?:的|家)?(?:大|小)?(?P<r>{_HAN_RELATIVES})(?:的名字)?(?:叫做?|名叫|是叫)(?![他她我你]){_HAN_NAME}"),
        (Kind.FAMILY, "", "有{x}", r"我们?(?:家)?有(?P<x>[一两二三四1234]个?(?:孩子|女儿|儿子|姐姐|妹妹|哥哥|弟弟|宝宝|娃))"),
        (Kind.FAMILY, "婚姻", "{x}", r"我(?:已经|现在|目前|还是|是|刚|去年|今年)*(?P<x>已婚|未婚|单身|离婚|结婚|订婚)(?:了|的)?(?=[,，。!！\s]|$)"),
        (Kind.PET, "", "{r}：{n}", rf"我(?:的|家|家的|养的)?(?:那只|那条|一只)?(?P<r>{_HAN_PETS})(?:的名字)?(?:叫做?|名叫|是叫)(?![他她我你]){_HAN_NAME}"),
        (Kind.PET, "", "养了{x}", rf"我们?(?:家)?(?:最近|刚)?(?:养了?|领养了|收养了)(?P<x>[一两二三四1234]?[只条个]?[^,，。;；!！?？\s]{{0,6}}(?:{_HAN_PETS})(?:[,，]?(?:名字)?叫[\u4e00-\u9fffA-Za-z]{{1,10}})?)"),
        (Kind.ALLERGY, "", "对{x}过敏", rf"我{_MUCH}对(?P<x>[^,，。;；!！?？]{{1,20}}?){_MUCH}(?:严重|有点)?过敏"),
        (Kind.TRAIT, "", "{x}", r"我(?:现在|一直|已经|是个?|平时|只)*(?P<x>吃素|吃全素|素食者|素食主义者|清真|左撇子|色盲|糖尿病(?:患者)?|乳糖不耐受?)"),
        (Kind.FAVORITE, "最喜欢的{r}", "{x}", rf"我最(?:喜欢|爱)的(?P<r>[\u4e00-\u9fff]{{1,6}}?)(?:就)?是{_HX}"),
        (Kind.DISLIKE, "", "{v}{x}", rf"我(?:现在|已经)?{_MUCH}(?P<v>不再喜欢|不再吃|不再喝|不喜欢|不太喜欢|讨厌|不爱|不太爱|不吃|不喝|受不了|不能吃|不能喝|从不){_HX}"),
        (Kind.DISLIKE, "", "{v}{x}", rf"我(?:最近|已经|刚|终于|现在|正在)*(?P<v>戒了?){_HX}"),
        (Kind.LIKE, "", "{v}{x}", rf"我{_MUCH}(?P<v>更喜欢|喜欢|热爱|偏爱|迷上了?|偏好|爱(?=[吃喝看听玩读逛])|习惯用){_HX}"),
    )
)
# fmt: on
_FOLD = str.maketrans(
    "歡討厭過對養貓兒媽們這後從現開總請別劃準備會將決選歲結離單愛熱聽來車師員醫護學務經設計個剛終於當職業學專東業習慣寵貝樂讀"
    "覺裡說話還記憶錄為點樣時間嗎麼讓給買賣實習環吳邊遠運",
    "欢讨厌过对养猫儿妈们这后从现开总请别划准备会将决选岁结离单爱热听来车师员医护学务经设计个刚终于当职业学专东业习惯宠贝乐读"
    "觉里说话还记忆录为点样时间吗么让给买卖实习环吴边远运",
)

_PLAN = re.compile(
    r"\b(?:I|we)(?:['’]m| am|['’]re| are)(?: \w+){0,2}? (?:gonna|going to|planning|hoping to|about to|looking forward to|thinking (?:of|about)|"
    r"preparing|training|saving (?:up )?for|applying|flying|travell?ing to|moving to|getting married|starting|working on|looking for|"
    r"trying to find|considering)\b|"
    r"\b(?:I|we) (?:\w+ )?(?:plan|intend|hope|want) to\b|\b(?:my|our) (?:goal|plan|dream) is\b|"
    r"我们?[^,，。]{0,12}(?:打算|计划|准备|想要|即将|要去|会去|约了|报名了?)|我们?的?(?:目标|计划|打算)是",
    re.IGNORECASE,
)
_VAGUE_PLAN = re.compile(
    r"\b(?:I|we) (?:just |also |really |do )?(?:want|hope) to (?:be|help|make|do|see|pass|give|get|have|show|keep|share|let|tell|know|say)\b",
    re.IGNORECASE,
)
_FUTURE = re.compile(
    r"\b(?:tomorrow|next (?:week|weekend|month|year|spring|summer|fall|autumn|winter|[a-z]+day)|in (?:a|an|one|two|three|four|\d+) (?:days?|weeks?|months?|years?))\b|"
    r"明[天年早晚]|后[天年]|下(?:个|一)?(?:周|星期|礼拜|月)|[周天月年]后",
    re.IGNORECASE,
)
_MINE = re.compile(r"\b(?:I|I['’](?:m|ve|ll|d)|my|we|we['’](?:re|ve|ll)|our)\b|[我咱]", re.IGNORECASE)
_MILESTONE = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)?(?: just| recently| finally| also| actually| even)? (?:got (?:married|engaged|divorced|promoted|hired|accepted|back from|(?:a|an|my|our)(?: \w+)? (?:job|dog|cat|puppy|kitten|house|car|degree|offer|promotion|internship|scholarship|letter|tattoo|divorce|visa|contract|deal|gig))|"
    r"moved|graduated|adopted|bought|sold|opened|lost|won|passed|published|finished|completed|joined|signed (?:up|a)|enrolled|launched|started|"
    r"became|retired|quit|received|submitted|met|visited|went to|attended|ran (?:a|an|the|my)|hosted|organi[sz]ed|launched|broke|hurt|injured|took (?:up|part)|"
    r"wrote|built|created|gave (?:a (?:presentation|talk|speech)|birth))\b|\bmy \w+ (?:passed away|died|was born|got married)\b|"
    r"我们?[^,，。]{0,8}(?:结婚|订婚|离婚|毕业|升职|搬家|买了|卖了|辞职|入职|怀孕|生了|考上|通过了|获得|赢了|参加了|去了|开始学|学会)",
    re.IGNORECASE,
)
_PEP = re.compile(
    r"\b(?:keep(?:ing)? (?:on )?(?:going|pushing|grinding|chasing|working|moving|trying|believing|fighting|plugging|my)|(?:make|making) (?:it|this)\b|"
    r"(?:not|never|won['’]t) (?:gonna |going to )?(?:give up|quit)|stay (?:positive|strong|determined|focused)|(?:make|making) a difference|"
    r"do my best|reach my (?:goals|dreams)|positive(?:ly)? (?:impact|affect))",
    re.IGNORECASE,
)
_SHOWING = re.compile(
    r".*\bhere['’]s (?:a|one|some|the|my|something)\b|^(?:here(?:['’]s| is| are)|check (?:out|this)|take a look|look at|(?:that|this) (?:pic|picture|photo)|(?:on (?:a|another) [a-z ]*note, )?check out|i wanted to tell you)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:I|we)(?:['’]ve| have)?(?: just| finally| also| both)? (?:decided|agreed|chosen|settled on|made up (?:my|our) minds?)\b|"
    r"\b(?:let['’]s|we['’]ll|we will) (?:go with|stick with|use|switch to)\b|^decision:|\bit['’]s decided\b|"
    r"我们?[^,，。]{0,6}(?:决定|定了|选定|说好|商量好|敲定)|就这么定|就用|改用",
    re.IGNORECASE,
)
_WISHED = (
    r"answer|reply|respond|use|speak|write|call me|address|give me|include|add|show|keep (?:it|your|answers|replies)|"
    r"be (?:brief|concise|short|polite|formal|direct|honest|careful)|start|begin|end (?:with|your)|send me|ask me|check|cite|format|"
    r"translate|explain|convert|avoid|put|round|tell me|talk to me|assume|remind me|sign"
)
"""What an assistant can be asked to do every time."""

_STYLE = re.compile(
    rf"^(?:(?:and|so|also|ok|please|pls),? )*(?:always|never|by default|from now on|going forward|in (?:the )?future|from here on)[,:]? (?:please |also |only |always |never |don['’]t |do not )*(?:{_WISHED})\b"
    rf"|^(?:(?:and|so|also|ok|please|pls),? )*(?:whenever|every time|each time)\b[^.!?]{{3,80}}?, (?:please |also |only |always |never |don['’]t |do not )*(?:{_WISHED})\b"
    rf"|^(?:please )?(?:only |don['’]t |do not )?(?:{_WISHED})\b.*\b(?:from now on|going forward|in (?:the )?future|by default|every time|always)\s*[.!]?$"
    r"|\bI(?:['’]d)?(?: really| always| generally)? (?:prefer|like|want|would like|need) (?:you to (?:always |never )?(?:use|answer|reply|respond|write|speak|keep|be|give|call|address|"
    r"format|avoid|explain|skip)|(?:your|my) (?:answers?|replies|responses?|emails?|summar(?:y|ies)|code)|"
    r"(?:\w+,? (?:and )?){1,3}(?:answers|replies|responses|explanations|summaries)\b)"
    r"|^(?:please )?(?:don['’]t|do not|never|stop) (?:ever )?(?:use|using|call|calling|add|adding|apologi[sz]e|apologi[sz]ing)\b.{0,60}\b(?:emojis?|me|apologies|again|ever|exclamation)"
    r"|^(?:请|麻烦|那|就)?(?:你)?(?:以后|今后|从现在(?:开始|起)|从今以后|往后|每次|一律|默认|总是|永远)"
    r"|我(?:更|比较)?(?:喜欢|希望|想要|习惯)(?:你|回答|回复)",
    re.IGNORECASE,
)
_TRAILING = re.compile(
    r"(?:[,，]?\s+(?:now|too|as well|these days|at the moment|right now|so much|a lot|very much|the most|lately|anyway|originally|actually|though|for sure|"
    r"any ?more|instead|today|this (?:week|month|year)|last (?:week|weekend|month|year|\w+day)|yesterday|recently|with my [a-z ]+|"
    r"(?:for|since) [^,.]{2,40}|in (?:19|20)\d\d|(?:a|an|one|two|three|\w+) (?:days?|weeks?|months?|years?) ago)|了|啊|呀|哦|呢|的)+$",
    re.IGNORECASE,
)
_PLACE_START = re.compile(
    r"^(?:(?:a|an|the|my|our|downtown|central|north|south|east|west|upstate|rural) )*(?:[A-Z]|small|big|city|town|village|countryside|suburbs?|farm|apartment|house|new)"
)
_NOT_A_NAME = frozenset(
    _words(
        """
    back later maybe tomorrow asap monday tuesday wednesday thursday friday saturday sunday crazy today
    now not here glad happy sorry so just still going trying looking is was from and the that
    """
    )
)
_PEOPLES = frozenset(
    _words(
        """
    norwegian swedish danish finnish icelandic german austrian swiss dutch belgian french italian spanish
    portuguese greek turkish polish czech slovak hungarian romanian bulgarian serbian croatian bosnian
    slovenian albanian macedonian ukrainian russian belarusian estonian latvian lithuanian irish scottish
    welsh english british american canadian mexican brazilian argentinian argentine chilean colombian
    peruvian venezuelan cuban bolivian ecuadorian australian chinese japanese korean taiwanese vietnamese
    thai indonesian malaysian filipino filipina singaporean indian pakistani bangladeshi nepali sri-lankan
    iranian persian iraqi israeli palestinian lebanese syrian jordanian saudi egyptian moroccan algerian
    tunisian nigerian kenyan ethiopian ghanaian african asian european latino latina hispanic scandinavian
    muslim jewish catholic protestant buddhist hindu atheist vegan vegetarian pescatarian
    """
    )
)
"""Written with a capital after "I am" and still no name."""

_CUT_SHORT = re.compile(
    r"(?:\b(?:an?|the) [a-z]+(?:e|ful|ous|al|ive|ic|ant|ent|y)|\b(?:different|new|big|nice|good|great|such|various|other|some))$"
)
"""Ends in an adjective: the noun stood behind a comma."""

_POINTING = re.compile(r"\b(?:this|that|these|those|it|them)\b", re.IGNORECASE)
MAX_ABOUT = 60
MAX_STYLE = 200


def is_instruction_shaped(text: str) -> bool:
    """Whether text tries to steer a model ("ignore previous instructions"); it is never learned as a wish."""
    return bool(_INSTRUCTION.search(text))


def is_turn_local(text: str) -> bool:
    """Whether what it wishes ends with this answer or this conversation ("make it shorter", "in this chat")."""
    return bool(_TURN_LOCAL.search(text))


def statements(sentence: str, *, after: str = "") -> list[Statement]:
    """What the sentence, said by its author in earnest, states about the author; empty for questions and quotations.

    `after` is the sentence right before it: behind a mere greeting, "I am Nora" gives a name. Of a sentence
    longer than `MAX_READ` the beginning counts.
    """
    if not _OF_ONESELF.search(sentence):
        return []
    if is_question(sentence) or is_instruction_shaped(sentence) or _NOT_MEANT.search(sentence):
        return []
    plain = _readable(sentence)
    certain = _with_subject(plain.split(" if ", maxsplit=1)[0])
    if _GREETING.fullmatch(after[:MAX_GREETING]):
        certain = f"Hi, {certain}"
    spelled = _with_han_subject(plain)
    return [
        *_read(certain, _ENGLISH, chinese=False),
        *_read(spelled.translate(_FOLD), _CHINESE, chinese=True, shown=spelled),
    ]


def _readable(sentence: str) -> str:
    """With single spaces, and no longer than the patterns for statements are made for."""
    return _WIDE_SPACES.sub(" ", sentence)[:MAX_READ]


def _with_subject(sentence: str) -> str:
    """ "I live in Berlin and work as a nurse" with its second "I" written out."""
    return _ELIDED.sub(r"\1 I ", sentence) if _BEGINS_WITH_I.match(sentence) else sentence


def _with_han_subject(sentence: str) -> str:
    """我叫小明，住在上海 with 我 in front of each clause that goes on about the speaker."""
    clauses = _HAN_COMMA.split(sentence)
    mine = False
    for index, clause in enumerate(clauses[::2]):
        folded = clause.translate(_FOLD)
        if folded.startswith("我"):
            mine = not _HAN_OTHER.match(folded)
        elif mine and _HAN_GOES_ON.match(folded):
            clauses[2 * index] = f"我{clause}"
        else:
            mine = False
    return "".join(clauses)


def occasion(sentence: str) -> Kind | None:  # noqa: PLR0911 - one line a kind
    """Whether a sentence of a person tells a plan, an event or a decision of theirs."""
    if is_question(sentence) or _NOT_MEANT.search(sentence) or _TURN_LOCAL.search(sentence):
        return None
    folded = _readable(sentence).translate(_FOLD)
    if not _MINE.search(folded) or _FRIENDLY.match(folded) or _SHOWING.match(folded):
        return None
    if _PEP.search(folded) and not _RELATIVE_DATE.search(folded):
        return None
    if _DECISION.search(folded):
        return Kind.DECISION
    if _FUTURE.search(folded) or (_PLAN.search(folded) and not _VAGUE_PLAN.search(folded)):
        return Kind.PLAN
    hits = dates.resolve(_readable(sentence), said_on=_ANY_DAY)
    if _MILESTONE.search(folded) or any(not hit.first_day <= _ANY_DAY <= hit.last_day for hit in hits):
        return Kind.EVENT
    return None


def lasting_wish(sentence: str) -> str | None:
    """A wish for every future answer ("always answer in French"), as said; None for one that ends with the turn."""
    if len(sentence) > MAX_READ:
        return None
    folded = _readable(sentence).translate(_FOLD)
    if not _STYLE.search(folded) or is_question(sentence) or is_instruction_shaped(sentence):
        return None
    if (
        _TURN_LOCAL.search(folded)
        or _NOT_MEANT.search(folded)
        or re.match(r"never mind\b", folded, re.IGNORECASE)
    ):
        return None
    return shorten(sentence.strip(), MAX_STYLE)


_OF_ONESELF = re.compile(r"\b(?:I|[Mm]e|[Mm]y|[Ww]e|[Oo]ur|[Tt]his is)\b|我")
"""What every pattern for a statement asks for; most sentences have none of it, and are cheap."""

MAX_GREETING = 60
_GREETING = re.compile(
    r"\s*(?:hi|hello|hey|hiya|greetings|good (?:morning|afternoon|evening|day))(?:,? (?:there|all|everyone|everybody|again|folks|"
    r"you|team|friend|[A-Z]\w{1,20}))?\s*[!.,~]*\s*",
    re.IGNORECASE,
)
_BEGINS_WITH_I = re.compile(r"^(?:\w+[, ] ?)?I\b")
_ELIDED = re.compile(
    r"\b(and|but) (?=(?:also |really |now )?(?:work|live|study|love|like|hate|dislike|enjoy|prefer|speak|play|don['’]t|can['’]t stand|have (?:a|two|three)|"
    r"am|moved to|come from)\b)"
)
_HAN_COMMA = re.compile(r"([，,；;、])")
_HAN_OTHER = re.compile(
    rf"我(?:的|家|们|和|跟)?(?:{_HAN_RELATIVES}|{_HAN_PETS}|朋友|同事|同学|孩子|家人|公司|老家|名字|觉得他|听说)(?!叫)"
)
_HAN_GOES_ON = re.compile(
    r"(?:现在|目前|平时|也|还|很|非常|特别|最|从小|一直|已经|刚|今年)*(?:住|来自|是一?[名个位]|在[\u4e00-\u9fff]|对|喜欢|不喜欢|讨厌|爱[吃喝看听玩]|不[吃喝爱]|养|有[一两二三]|"
    r"更喜欢|吃素|从|搬|\d{1,3}岁|三?[一二三四五六七八九]?十)"
)
_PREFERENCES = frozenset({Kind.LIKE, Kind.DISLIKE, Kind.ALLERGY})
_ITEM = r"(?!(?:and|but|so|it|its|I|we|you|he|she|they|this|that|thanks|which|especially|because|my)\b)[\w'’-]+(?: [\w'’-]+){0,3}?"
_ENUMERATION = re.compile(rf"(?:, {_ITEM}){{0,6}},? (?:and|or) {_ITEM}(?=\s*(?:[.;!]|$))")
_ANY_DAY = date(2000, 6, 15)
"""`occasion` only asks whether there is a date, not which."""


def _read(
    sentence: str,
    table: tuple[tuple[Kind, str, str, re.Pattern[str]], ...],
    *,
    chinese: bool,
    shown: str = "",
) -> Iterator[Statement]:
    taken: list[range] = []
    for kind, slot, shape, pattern in table:
        for match in pattern.finditer(sentence):
            if any(match.start() in span or match.end() - 1 in span for span in taken):
                continue
            found = _statement(kind, slot, shape, match, chinese=chinese, shown=shown)
            if found is not None:
                taken.append(range(match.start(), match.end()))
                yield found
                if found.kind in _PREFERENCES and not chinese:
                    yield from (_also(found, item) for item in _listed(match))


def _statement(
    kind: Kind, slot: str, shape: str, match: re.Match[str], *, chinese: bool, shown: str
) -> Statement | None:
    parts = match.groupdict()
    value = _object(parts, match, shown)
    if value is None or not _is_plausible(kind, value, chinese=chinese):
        return None
    relation = parts.get("r") or ""
    text = shape.format(x=value, n=value, r=_capital(relation), v=parts.get("v") or "")
    if relation.lower() in _SINGLE and kind is Kind.FAMILY:
        slot, text = _capital(relation), value
    return Statement(
        kind,
        text if slot else _capital(text),
        value,
        slot.format(r=relation),
        (parts.get("old") or "").strip(),
        chinese,
    )


def _object(parts: dict[str, str | None], match: re.Match[str], shown: str) -> str | None:
    """The captured words, without what belongs to the moment ("now", "last month"), in the original's characters."""
    for key in ("x", "n", "x2", "x3", "n2"):
        if parts.get(key):
            start, end = match.span(key)
            value = (shown or match.string)[start:end].strip(" \"“”'*_")
            for _ in range(3):
                value = _TRAILING.sub("", value).strip(" ,，")
            return value or None
    return None


def _is_plausible(kind: Kind, value: str, *, chinese: bool) -> bool:
    if len(value) > MAX_ABOUT or not any(char.isalnum() for char in value):
        return False
    if chinese:
        return not re.match(r"^(?:你|您|他|她|它|这|那|什么|怎么|谁|哪|吗|啊|了|过|得|着|一起)", value)
    if kind in {Kind.NAME, Kind.FAMILY, Kind.PET}:
        words = value.lower().split()
        return words[0] not in _NOT_A_NAME and not (kind is Kind.NAME and words[-1] in _PEOPLES)
    if kind is Kind.HOME:
        return bool(_PLACE_START.match(value)) and len(value.split()) <= 6
    if kind in {Kind.LIKE, Kind.DISLIKE}:
        return (
            not (_PRONOUN_START.match(value) or _CUT_SHORT.search(value) or _POINTING.search(value))
            and len(value.split()) <= 9
        )
    return not (kind is Kind.FAVORITE and _PRONOUN_START.match(value))


def _listed(match: re.Match[str]) -> list[str]:
    """The further items when the object begins an enumeration ("tea, coffee and cake")."""
    rest = _ENUMERATION.match(match.string, match.end())
    if rest is None:
        return []
    items = (item.strip() for item in re.split(r",\s*(?:and |or )?|\s+(?:and|or) ", rest[0]))
    return [item for item in items if item and len(item.split()) <= 4 and not _PRONOUN_START.match(item)]


def _also(first: Statement, item: str) -> Statement:
    return replace(first, text=first.text[: len(first.text) - len(first.about)] + item, about=item)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
