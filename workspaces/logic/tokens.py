"""How many tokens a text costs, without asking a tokenizer."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

Counter = Callable[[str], int]
"""Tokens of one text: `estimate`, or a real tokenizer where one is installed."""

MESSAGE_OVERHEAD = 4
"""Tokens that a chat format adds to every message (contract §4)."""

CJK_CLASS = (
    "\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3100-\u312f\u3130-\u318f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
)
"""Inside of a character class: Han with all extensions, kana, hangul, bopomofo, their punctuation, full
width."""

_CJK = re.compile(f"[{CJK_CLASS}]")
_ASCII = re.compile("[\x00-\x7f]")


def estimate(text: str) -> int:
    """Tokens of `text`: 1 per CJK character, 1 per 4 ASCII ones, 1 per 1.5 others; each part rounded up."""
    length = len(text)
    ascii_count = length if text.isascii() else length - len(_ASCII.sub("", text))
    cjk_count = 0 if text.isascii() else length - len(_CJK.sub("", text))
    other = length - ascii_count - cjk_count
    return cjk_count + -(-ascii_count // 4) + -(-other * 2 // 3)


def estimate_message(text: str, *, count: Counter = estimate) -> int:
    """Tokens of `text` as one chat message."""
    return count(text) + MESSAGE_OVERHEAD


def estimate_messages(texts: Iterable[str], *, count: Counter = estimate) -> int:
    """Tokens of several chat messages."""
    return sum(estimate_message(text, count=count) for text in texts)


def cjk_share(text: str) -> float:
    """Share of the letters of `text` that are CJK, 0..1; 0 for a text without letters."""
    letters = [char for char in text if char.isalpha()]
    return sum(1 for char in letters if _CJK.match(char)) / len(letters) if letters else 0.0
