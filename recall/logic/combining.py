"""Unicode normalisation in linear time. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

MOST_MARKS = 30
"""Combining marks that one letter keeps; as many as Unicode's Stream-Safe Text Format (UAX #15) allows."""


def nfkc(text: str) -> str:
    """The text in NFKC. Of a longer run of combining marks the first `MOST_MARKS` stay.

    Putting a run in order takes quadratic time: 256 KiB of nothing but accents would take a minute.
    """
    return unicodedata.normalize("NFKC", text if text.isascii() else _TOO_MANY.sub(r"\1", text))


def _combining() -> Iterator[str]:
    """The characters that are put in order, as ranges of a character class."""
    first = last = -1
    for code in range(0x300, 0x20000):  # the planes above have none
        if not unicodedata.combining(chr(code)):
            continue
        if code != last + 1:
            if first >= 0:
                yield f"{chr(first)}-{chr(last)}"
            first = code
        last = code
    yield f"{chr(first)}-{chr(last)}"


_CLASS = "".join(_combining())
_TOO_MANY = re.compile(f"([{_CLASS}]{{{MOST_MARKS}}})[{_CLASS}]+")
