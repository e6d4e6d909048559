"""How long a failed message waits. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

PARK_AFTER: Final = 8
"""Failures after which a message is parked: with the delays below, after about half an hour."""

_FIRST: Final = 5.0
_LONGEST: Final = 900.0


def delay_after(attempts: int, *, spread: float) -> timedelta:
    """The wait after that many failures: 5 s doubling, at most 15 min, spread (0..1) by up to a fifth more."""
    seconds = min(_FIRST * 2 ** (max(attempts, 1) - 1), _LONGEST)
    return timedelta(seconds=seconds * (1 + spread / 5))
