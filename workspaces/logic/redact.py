"""Secrets and payment cards taken out of text before it is stored, embedded or logged."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

_words = str.split

MARK = "[redacted:"
MAX_PASSES = 4
"""A mark can free the start of a secret glued to the one before it."""


@dataclass(frozen=True, slots=True)
class Redacted:
    """`kinds` in alphabetical order, each once; `count` is how many places were replaced."""

    text: str
    count: int
    kinds: tuple[str, ...]


def redact(text: str) -> Redacted:
    """`text` with every secret replaced by `[redacted:<kind>]`. A second pass changes nothing.

    Time is linear in the length of the text. Ordinary numbers, dates, UUIDs and commit hashes stay,
    unless something in front of them says that they are a key.
    """
    found: list[str] = []
    folded = text.casefold()
    rules = [rule for rule in _RULES if not rule.hints or any(hint in folded for hint in rule.hints)]
    known: dict[int, int] = {}  # how many were found when a rule had been through
    for _ in range(MAX_PASSES):
        before = len(found)
        for number, rule in enumerate(rules):
            if rule.settles and known.get(number) == len(found):
                continue
            text = rule.pattern.sub(_replacer(rule.kind, rule.keep, found), text)
            known[number] = len(found)
        if len(found) == before:
            break
    return Redacted(text, len(found), tuple(sorted(set(found))))


Keep = Callable[[re.Match[str]], str | None]
"""What remains of a match, with a NUL where the mark goes; None leaves it alone."""


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule runs only when one of its `hints` is in the case-folded text: most text has none, and is cheap.

    One that `settles` finds nothing more after its own marks; it runs again for those of others alone.
    """

    kind: str
    pattern: re.Pattern[str]
    keep: Keep
    hints: tuple[str, ...] = ()
    settles: bool = False


def _replacer(kind: str, keep: Keep, found: list[str]) -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        kept = keep(match)
        if kept is None:
            return match[0]
        parts = kept.split("\0")
        found.extend([kind] * (len(parts) - 1))
        return f"{MARK}{kind}]".join(parts)

    return replace


def _all(_match: re.Match[str]) -> str:
    return "\0"


def _with_digit(match: re.Match[str]) -> str | None:
    return "\0" if any(char.isdigit() for char in match[0]) else None


def _mixed(value: str, *, minimum: int = 8) -> bool:
    """Looks made by a machine: long enough, and of letters and digits both."""
    return len(value) >= minimum and any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _bearer(match: re.Match[str]) -> str | None:
    named, scheme, value = match[1], match[2], match[3]
    return f"{named or ''}{scheme}\0" if named or any(map(str.isdigit, value)) else None


def _url(match: re.Match[str]) -> str:
    return f"{match[1]}\0{match[3]}"


def _password(match: re.Match[str]) -> str | None:
    """A stated password: after `=` or `:` any value that is no ordinary remark, after "is" a telling one."""
    lead, value = match[1], match[2]
    bare = value.strip("\"'`").rstrip(".,;:!?)")
    if len(bare) < 4 or bare.casefold() in _REMARKS:
        return None
    is_remark = bare.isalpha() and bare.islower()
    if is_remark and not lead.rstrip(" \t\"'`").endswith(("=", "\uff1d")):
        tail = match.string[match.end() : match.end() + 40]
        if not _ENDS.match(value[len(value.rstrip(".,;:!?)")) :] + tail):
            return None
    return f"{lead}\0{value[len(value.rstrip('.,;:!?')) :]}"


def _assigned(match: re.Match[str]) -> str | None:
    value = match[2].rstrip(".,;:!?")
    if not (_mixed(value) or (len(value) >= 24 and not value.isalpha() and not value.isdigit())):
        return None
    return f"{match[1]}\0{match[2][len(value) :]}"


def _quoted_key(match: re.Match[str]) -> str | None:
    return f"{match[1]}{match[2]}\0" if _mixed(match[3]) and " " not in match[3] else None


def _quoted_password(match: re.Match[str]) -> str | None:
    return None if match[3].casefold() in _REMARKS else f"{match[1]}{match[2]}\0"


def _aws(match: re.Match[str]) -> str:
    return f"\0{match[1]}\0" if match[2] else "\0"


def _cards(match: re.Match[str]) -> str | None:
    """Within one run of digit groups, every stretch of whole groups that is a card number."""
    run = match[0]
    groups = _DIGITS.findall(run)
    if not run.isascii():
        groups = [group if group.isascii() else "".join(map(str, map(int, group))) for group in groups]
    if len(groups) == 1:
        return "\0" if _CARD.fullmatch(groups[0]) and _passes_luhn(groups[0]) else None
    kept: list[str] = []
    position = 0
    for first, end, start, stop in _grouped_cards(groups):
        # One sign stands between two groups.
        kept += (run[position : start + first], "\0")
        position = stop + end - 1
    return "".join((*kept, run[position:])) if kept else None


def _grouped_cards(groups: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The groups `first:end` that make up a card, and the same in digits, one after another.

    A card is written in groups of which the first has four digits at least. The time is linear and short: a
    message can be nothing but such groups.
    """
    digits = "".join(groups)
    starts = list(accumulate(map(len, groups), initial=0))
    sums = _luhn_sums(digits)
    after = 0
    for first in [n for n, group in enumerate(groups) if group[0] in _CARD_BEGINS and len(group) >= 4]:
        if first < after:
            continue
        start = starts[first]
        most = min(first + 6, len(starts))
        for end in range(bisect_left(starts, start + _SHORTEST_CARD, first + 1, most), most):
            stop = starts[end]
            if stop - start > _LONGEST_CARD:
                break
            ours = sums[stop % 2]
            if not (ours[stop] - ours[start]) % 10 and _CARD.fullmatch(digits, start, stop):
                yield first, end, start, stop
                after = end
                break


def _luhn_sums(digits: str) -> tuple[Sequence[int], Sequence[int]]:
    """Sums by the rule of Luhn up to each place, for numbers that end at an even place and at an odd one.

    With them any stretch is checked by one difference, however many overlap.
    """
    plain, doubled = digits.encode(), digits.translate(_DOUBLED).encode()
    even, odd = bytearray(doubled), bytearray(plain)
    even[1::2], odd[1::2] = plain[1::2], doubled[1::2]
    return list(accumulate(even.translate(_VALUES), initial=0)), list(
        accumulate(odd.translate(_VALUES), initial=0)
    )


def _passes_luhn(digits: str) -> bool:
    return not sum((digits[-1::-2] + digits[-2::-2].translate(_DOUBLED)).encode().translate(_VALUES)) % 10


_REMARKS = frozenset(
    _words(
        """
    required optional wrong incorrect invalid forgotten expired none null true false please reset your
    mine the this that string hidden missing empty unknown changed correct weak strong secure safe
    unsafe secret needed case sensitive broken lost gone here there below above protected encrypted
    hashed same different fine good long short always never something anything nothing password todo tbd
    n/a default
    """
    )
)
_ENDS = re.compile(r"\s*(?:[.,;!?)]|$|\n)")
_DIGITS = re.compile(r"\d+")
_DOUBLED = str.maketrans("0123456789", "0246813579")
"""Twice a digit, with the figures of what has two added up."""

_VALUES = bytes(range(256)).translate(bytes.maketrans(b"0123456789", bytes(range(10))))
_SHORTEST_CARD, _LONGEST_CARD = 13, 19
_CARD_BEGINS = "23456"
_CARD = re.compile(
    r"4\d{12}(?:\d{3})?(?:\d{3})?|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|"
    r"6(?:011|5\d\d|4[4-9]\d)\d{12}|35\d{14}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
)
"""Prefix and length of Visa, Mastercard, Amex, Discover, JCB, Diners and UnionPay numbers (ISO/IEC 7812)."""

_START = r"(?<![A-Za-z0-9_-])"
_LOGIN_WORD = (
    r"(?:pass[ _-]?word|passwd|pass[ _-]?phrase|pass[ _-]?code|pwd|contrase[ñn]a|mot de passe|passwort|kennwort|senha|"
    r"пароль|密码|密碼|口令|パスワード|비밀번호)"
)
_KEY_WORD = (
    r"(?:api[ _.-]?keys?|access[ _.-]?keys?(?:[ _.-]?id)?|secret(?:[ _.-]?(?:access[ _.-]?)?key)?|private[ _.-]?key|"
    r"(?:auth|access|refresh|bearer|session|bot|api|id)?[ _.-]?token|client[ _.-]?secret|account[ _.-]?key|"
    r"encryption[ _.-]?key|signing[ _.-]?key|credentials?|密钥|密鑰|秘钥|令牌|访问码)"
)
_SEPARATOR = (
    r"[\"'`]?(?:[ \t]{0,4}(?:=>|:=|==|[=:：＝])[ \t]{0,4}|[ \t]{1,4}(?:is(?: now)?|was|are|es|est|ist|é|was set to)"
    r"[ \t:]{1,4}|[ \t]{0,4}(?:是|为|為|は|는|은|改成|设为|設為)[ \t]{0,4})"
)


_NOT_YET = r"(?![\"'`]?\[redacted:)"
_QUOTED = r"([\"'`])([^\"'`\n]{4,256})(?=\2)"
_PASSWORD_HINTS = (
    "pass",
    "pwd",
    "contrase",
    "kennwort",
    "senha",
    "пароль",
    "密码",
    "密碼",
    "口令",
    "パス",
    "비밀번호",
)
_KEY_HINTS = ("key", "token", "secret", "credential", "钥", "鑰", "令牌", "访问码")


def _re(source: str, flags: int = 0) -> re.Pattern[str]:
    return re.compile(source, flags)


_RULES: tuple[_Rule, ...] = (
    _Rule(
        "private-key",
        _re(
            r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----.*?"
            r"(?:-----END (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----|\Z)",
            re.DOTALL,
        ),
        _all,
        ("private key",),
    ),
    _Rule(
        "jwt",
        _re(rf"{_START}eyJ[A-Za-z0-9_-]{{8,}}+\.[A-Za-z0-9_-]{{4,}}(?:\.[A-Za-z0-9_-]*)*"),
        _all,
        ("eyj",),
    ),
    _Rule("api-key", _re(rf"{_START}sk-ant-[\w-]{{16,}}"), _all, ("sk-ant-",)),
    _Rule(
        "api-key",
        _re(rf"{_START}(?:sk|pk|rk)-(?=[A-Za-z0-9_-]{{16}})[\w-]+(?:\.[\w-]+)*"),
        _with_digit,
        ("sk-", "pk-", "rk-"),
    ),
    _Rule(
        "api-key",
        _re(rf"{_START}(?:[srp]k_(?:live|test|prod)_[A-Za-z0-9]{{10,}}|whsec_[\w+/=]{{16,}})"),
        _all,
        ("k_live_", "k_test_", "k_prod_", "whsec_"),
    ),
    _Rule(
        "api-key",
        _re(
            rf"{_START}(?:sk|pk|rk|api|key|tok|token|secret)[._](?:[A-Za-z0-9]{{1,12}}[._]){{0,4}}[A-Za-z0-9]{{16,}}"
            r"(?:[._-][A-Za-z0-9]+)*"
        ),
        _with_digit,
        ("sk", "pk", "rk", "api", "key", "tok", "secret"),
    ),
    _Rule(
        "token",
        _re(rf"{_START}(?:gh[pousr]_[A-Za-z0-9]{{20,}}|github_pat_[A-Za-z0-9_]{{22,}})"),
        _all,
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    ),
    _Rule("token", _re(rf"{_START}gl(?:pat|rt|dt|cbt|ptt|ft)-[\w.-]{{20,}}"), _all, ("gl",)),
    _Rule("token", _re(rf"{_START}(?:xox[a-z]|xapp)-[\w-]{{10,}}"), _all, ("xox", "xapp-")),
    _Rule("token", _re(r"(?<=hooks\.slack\.com/services/)[A-Za-z0-9/]{20,}"), _all, ("hooks.slack.com",)),
    _Rule(
        "token",
        _re(rf"{_START}(?:hf_[A-Za-z0-9]{{30,}}|npm_[A-Za-z0-9]{{30,}}|pypi-[\w-]{{40,}})"),
        _all,
        ("hf_", "npm_", "pypi-"),
    ),
    _Rule("token", _re(rf"{_START}mm_[\w-]{{43}}(?![\w-])"), _all, ("mm_",)),
    _Rule("token", _re(r"(?<![\w:])\d{8,10}:[\w-]{35}(?![\w-])"), _all, (":",)),
    _Rule(
        "token",
        _re(rf"{_START}(?:ya29|EAAC?|dop_v1|shpat|shpss|gsk|xai|r8|pplx|dckr_pat|sbp)[._-][\w.-]{{24,}}"),
        _all,
        ("ya29", "eaa", "dop_v1", "shpat", "shpss", "gsk", "xai", "r8", "pplx", "dckr_pat", "sbp"),
    ),
    _Rule("api-key", _re(rf"{_START}SG\.[A-Za-z0-9_-]{{16,}}+\.[A-Za-z0-9_-]{{16,}}"), _all, ("sg.",)),
    _Rule("api-key", _re(rf"{_START}(?:AIza[\w-]{{35,}}|GOCSPX-[\w-]{{20,}})"), _all, ("aiza", "gocspx-")),
    _Rule(
        "aws-key",
        _re(
            r"(?<![A-Za-z0-9])(?:AKIA|ASIA|AGPA|AIDA|AROA|ABIA)[A-Z0-9]{16}(?![A-Za-z0-9])"
            r"(?:([\s:,;/|]{1,4})([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=]))?"
        ),
        _aws,
        ("akia", "asia", "agpa", "aida", "aroa", "abia"),
    ),
    _Rule(
        "token",
        _re(rf"{_START}[A-Za-z0-9_-]{{18,32}}\.[A-Za-z0-9_-]{{6}}\.[A-Za-z0-9_-]{{27,45}}(?![A-Za-z0-9_.-])"),
        _with_digit,
        (".",),
    ),
    _Rule(
        "token",
        _re(
            r"\b(authorization[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?)?((?:bearer|basic|token)[ \t]{1,4})"
            r"(?!\[)([A-Za-z0-9._~+/=-]{16,})",
            re.IGNORECASE,
        ),
        _bearer,
        ("bearer", "basic", "token"),
    ),
    _Rule(
        "password",
        _re(
            r"((?<![a-z0-9+.-])[a-z][a-z0-9+.-]{1,30}://[^\s:/@\[\]\"'<>]{0,200}:)(?!\[redacted:)([^\s/\"'<>]{1,256})(@)",
            re.IGNORECASE,
        ),
        _url,
        ("://",),
    ),
    _Rule(
        "secret",
        _re(rf"({_KEY_WORD}{_SEPARATOR}){_NOT_YET}{_QUOTED}", re.IGNORECASE),
        _quoted_key,
        _KEY_HINTS,
    ),
    _Rule(
        "secret",
        _re(rf"({_KEY_WORD}{_SEPARATOR}){_NOT_YET}([A-Za-z0-9._~+/=!@#$%^&*-]+)", re.IGNORECASE),
        _assigned,
        _KEY_HINTS,
    ),
    _Rule(
        "password",
        _re(rf"({_LOGIN_WORD}{_SEPARATOR}){_NOT_YET}{_QUOTED}", re.IGNORECASE),
        _quoted_password,
        _PASSWORD_HINTS,
    ),
    _Rule(
        "password",
        # Printable ASCII without quotes, comma, semicolon.
        _re(rf"({_LOGIN_WORD}{_SEPARATOR}){_NOT_YET}([!#-&(-+\--:<-_a-~]{{4,}})", re.IGNORECASE),
        _password,
        _PASSWORD_HINTS,
    ),
    _Rule(
        "pin",
        _re(
            r"((?<![a-z])(?:pin(?:[ -]?(?:code|number))?|cvv2?|cvc|otp|验证码|驗證碼|取款密码)[ \t]{0,4}"
            r"(?:is|was|=|:|：|是|为)[ \t]{0,4})\d{3,8}(?!\d)",
            re.IGNORECASE,
        ),
        lambda match: f"{match[1]}\0",
        ("pin", "cvv", "cvc", "otp", "验证码", "驗證碼", "取款"),
    ),
    _Rule(
        "card",
        _re(r"(?<![A-Za-z0-9_.])\d(?:\d|[ \-\u2010-\u2015\u00a0\u3000](?=\d)){11,}(?![A-Za-z0-9_])"),
        _cards,
        settles=True,
    ),
)
