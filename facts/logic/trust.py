"""How far a fact is trusted. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

HELPFUL: Final = 0.1
UNHELPFUL: Final = 0.2
"""What one person's vote adds and takes (contract §6)."""
INDEPENDENT: Final = 0.7
"""What is left of the doubt with each further root that says the same. Reasoned, not measured: three say so → the doubt
halves."""


def trust_of(confidence: float, *, roots: int, helpful: int = 0, unhelpful: int = 0) -> float:
    """Trust at the time it was last confirmed, 0..1: from confidence, independent evidence and votes."""
    doubt = (1 - confidence) * INDEPENDENT ** max(0, roots - 1)
    return min(1.0, max(0.0, 1 - doubt + HELPFUL * helpful - UNHELPFUL * unhelpful))


def decayed(trust: float, *, since: datetime, now: datetime, half_life_days: float) -> float:
    """What is left of it: halved each `half_life_days` since it was last confirmed or evidenced."""
    days = max(0.0, (now - since).total_seconds() / 86_400)
    return float(trust * 0.5 ** (days / half_life_days))
