"""Time zones by their IANA names, and how far the agents' nights are spread."""

from __future__ import annotations

from datetime import timedelta
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from workspaces.errors import BadInput

SPREAD_S: Final = 600
"""Seconds over which agents that are due at one time are spread: ten minutes, so that none waits for long."""
_GOLDEN: Final = 0x9E3779B1
"""2³² divided by the golden ratio (Knuth's multiplicative hash): neighbouring ids land far apart."""


def check_zone(name: str) -> ZoneInfo:
    """The time zone of that IANA name; raises `BadInput`."""
    if name not in available_timezones():
        raise BadInput(
            "bad_timezone", f"{name!r} is no IANA time zone, such as Asia/Shanghai.", field="timezone"
        )
    return ZoneInfo(name)


def jitter_of(agent_id: int) -> timedelta:
    """How much later than its cron says an agent is due: always the same, under `SPREAD_S` seconds."""
    return timedelta(seconds=(agent_id * _GOLDEN % 2**32) * SPREAD_S // 2**32)
