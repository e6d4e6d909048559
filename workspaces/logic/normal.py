"""A text as it is compared when only its letters and digits count. Pure."""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import Final

from recall.logic.folding import WINDOWED, folded, without_accents

_NO_LETTER: Final = re.compile(r"[\W_]+")
_BETWEEN: Final = re.compile(f" (?=[{WINDOWED}])|(?<=[{WINDOWED}]) ")


def normal(text: str) -> str:
    """The text in NFKC, case-folded, full-width letters as plain ones, traditional characters as simplified, without
    accents and punctuation; its words with one space between, and none beside a script that writes without."""
    words = (without_accents(word) for word in _NO_LETTER.sub(" ", folded(text)).split())
    return _BETWEEN.sub("", " ".join(words))


def fingerprint(text: str) -> str:
    """What statements that differ only in case, width, spaces and punctuation have in common: 32 hex digits."""
    return hashlib.sha256(normal(text).encode()).hexdigest()[:32]


def squeezed(text: str) -> str:
    """`normal` without any space."""
    return normal(text).replace(" ", "")


@lru_cache(maxsize=8192)
def letters_of(char: str) -> str:
    """What one character gives in a squeezed text: nothing for a space or a sign."""
    return _NO_LETTER.sub("", without_accents(folded(char)))
