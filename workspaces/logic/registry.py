"""The settings registry: every key, its type, bounds, default and meaning. Pure.

A value comes from, in rising order of force: the default here, the environment, a global override, a
workspace's override, an agent's override. Names and defaults are the product's published configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from workspaces.errors import BadInput
from workspaces.logic.cron import parse_cron

Value = bool | int | float | str

MEMORY: Final = "mate.memory."
WINDOW: Final = "mate.agent.conversation.window."


@dataclass(frozen=True, slots=True)
class Setting:
    """One key. `kind` is bool, int, float, cron or text; `low` and `high` bound numbers, both included."""

    key: str
    kind: str
    default: Value
    help: str
    low: float | None = None
    high: float | None = None

    @property
    def env_name(self) -> str:
        """The environment variable that sets it: the key in upper case, `.` and `-` as `_`."""
        return self.key.upper().replace(".", "_").replace("-", "_")

    def parse(self, raw: object) -> Value:
        """The typed value of `raw` (JSON value or text); raises `BadInput` "bad_setting" saying what is right."""
        try:
            value = _PARSERS[self.kind](raw)
        except (ValueError, TypeError) as bad:
            raise BadInput("bad_setting", f"{self.key}: {raw!r} is not {self.wanted}.", key=self.key) from bad
        if isinstance(value, (int, float)) and not isinstance(value, bool) and not self._is_within(value):
            raise BadInput("bad_setting", f"{self.key}: {raw!r} is not {self.wanted}.", key=self.key)
        return value

    @property
    def wanted(self) -> str:
        """What a right value looks like, for messages and forms."""
        if self.kind == "bool":
            return "true or false"
        if self.kind == "cron":
            return "a cron expression of five fields, or six in the Quartz form (`0 30 3 * * ?`)"
        if self.kind == "text":
            return "a text"
        number = "a whole number" if self.kind == "int" else "a number"
        return f"{number} from {self.low:g} to {self.high:g}"

    def _is_within(self, value: float) -> bool:
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)


def _boolean(raw: object) -> bool:
    if isinstance(raw, bool):
        return raw
    if isinstance(raw, str) and raw.strip().lower() in {"true", "1", "yes", "on"}:
        return True
    if isinstance(raw, str) and raw.strip().lower() in {"false", "0", "no", "off"}:
        return False
    raise ValueError(raw)


def _whole(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, (int, str)):
        raise TypeError(raw)
    return int(raw)


def _real(raw: object) -> float:
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise TypeError(raw)
    value = float(raw)
    if not math.isfinite(value):
        raise ValueError(raw)
    return value


def _text(raw: object) -> str:
    if not isinstance(raw, str):
        raise TypeError(raw)
    return raw.strip()


def _cron(raw: object) -> str:
    text = _text(raw)
    parse_cron(text)
    return text


_PARSERS: Final[Mapping[str, Callable[[object], Value]]] = {
    "bool": _boolean,
    "int": _whole,
    "float": _real,
    "text": _text,
    "cron": _cron,
}


def _flag(key: str, default: bool, help_: str) -> Setting:  # noqa: FBT001 - the default of a flag is a bool
    return Setting(MEMORY + key, "bool", default, help_)


def _count(key: str, default: int, high: int, help_: str, *, low: int = 0, prefix: str = MEMORY) -> Setting:
    return Setting(prefix + key, "int", default, help_, low, high)


_ALL: Final = (
    _flag(
        "lifecycle-mediator-enabled", True, "Each person's memory is their own; off: all writes go to TEAM."
    ),
    _flag("auto-summarize-enabled", True, "Extract memory from turns in the background."),
    _flag("skip-cron-conversations", True, "Never extract from conversations that a job started."),
    _count("min-messages-for-summarize", 4, 1000, "Messages a conversation needs before it is extracted."),
    _count("min-user-message-length", 10, 10_000, "Characters the last user message needs."),
    _count("summary-max-tokens", 1000, 32_000, "Tokens an extraction may answer with.", low=50),
    _count("max-transcript-messages", 30, 500, "Messages of one extraction window.", low=2),
    _count("cooldown-minutes", 5, 1440, "Minutes between two extraction runs of one bucket."),
    _flag("emergence-enabled", True, "Dream each night."),
    _count("emergence-day-range", 7, 365, "Days of notes that a dream reads.", low=1),
    Setting(
        MEMORY + "emergence-cron",
        "cron",
        "0 0 3 * * ?",
        "When a dream runs, if its schedule has no own cron.",
    ),
    _flag("dream.focused-enabled", True, "Dream about one topic on request."),
    _flag("dream.archive-enabled", True, "Roll old reports into monthly archives."),
    Setting(MEMORY + "dream.archive-cron", "cron", "0 0 4 * * ?", "When reports are archived."),
    _count("dream.archive-keep-days", 30, 3650, "Days before a report is archived.", low=1),
    _count("dream.max-candidates-per-dream", 100, 10_000, "Candidates that one dream considers.", low=1),
    _count("soul-update-interval", 20, 100_000, "Writes between two rewrites of SOUL.md; 0 = off."),
    _flag("fact.projection-enabled", True, "Project facts from entries and person-written files."),
    Setting(
        MEMORY + "fact.projection-rebuild-cron", "cron", "0 */30 * * * ?", "When facts are projected again."
    ),
    _flag("fact.contradiction-check-enabled", True, "Look for facts that contradict each other."),
    _count("fact.trust-half-life-days", 60, 36_500, "Days in which unconfirmed trust halves.", low=1),
    _flag("fact.forget-enabled", True, "People may forget what is known of them."),
    _count("system-block-max-chars", 4000, 1_000_000, "Characters of the always-on block; 0 = unlimited."),
    _count("system-block-max-entries-per-type", 40, 10_000, "Entries a type in that block; 0 = unlimited."),
    _flag("structured-consolidation-enabled", True, "Merge near-duplicate entries each night."),
    _count("structured-consolidation-min-entries", 8, 10_000, "Entries below which nothing is merged."),
    Setting(MEMORY + "structured-consolidation-cron", "cron", "0 30 3 * * ?", "When entries are merged."),
    _count("structured-consolidation-max-owners-per-run", 50, 100_000, "Owners a run; 0 = all."),
    _count("profile-max-chars", 4000, 1_000_000, "Ceiling of PROFILE.md, characters; 0 = unlimited."),
    _count("memory-md-max-chars", 8000, 1_000_000, "Ceiling of MEMORY.md, characters; 0 = unlimited."),
    _count("provider-prefetch-timeout-ms", 1500, 600_000, "Milliseconds each provider gets; 0 = unlimited."),
    _count("provider-prefetch-total-budget-ms", 2500, 600_000, "Milliseconds for all; 0 = unlimited."),
    _count("provider-circuit-failure-threshold", 3, 1000, "Failures in a row that open the breaker.", low=1),
    _count("provider-circuit-cooldown-seconds", 30, 86_400, "Seconds before an open breaker is probed."),
    _count(
        "provider-block-max-chars",
        8000,
        1_000_000,
        "Characters that one provider may add to a turn.",
        low=100,
    ),
    Setting(MEMORY + "disabled-providers", "text", "", "Providers to skip, names separated by commas."),
    _count("retention.audit-days", 365, 36_500, "Days an audit event is kept.", low=1),
    _count("retention.usage-days", 365, 36_500, "Days a model usage row is kept.", low=1),
    _count("retention.hits-days", 180, 36_500, "Days a recall hit is kept.", low=1),
    _count("retention.events-days", 30, 36_500, "Days an inbound event or a delivery is kept.", low=1),
    _count("default-max-input-tokens", 128_000, 10_000_000, "Tokens of one prompt.", low=500, prefix=WINDOW),
    Setting(WINDOW + "compact-trigger-ratio", "float", 0.75, "Share that starts compaction.", 0.1, 1.0),
    _count("preserve-recent-pairs", 2, 100, "Latest pairs kept word for word.", prefix=WINDOW),
    _count("protect-last-min-messages", 10, 1000, "Latest messages kept word for word.", prefix=WINDOW),
    _count("summary-max-tokens", 300, 32_000, "Tokens of a conversation's summary.", low=50, prefix=WINDOW),
)

SETTINGS: Final[Mapping[str, Setting]] = {setting.key: setting for setting in _ALL}
ENV_NAMES: Final[Mapping[str, str]] = {setting.env_name: setting.key for setting in _ALL}


def setting_named(key: str) -> Setting:
    """The setting of that full key; raises `BadInput` "unknown_setting"."""
    found = SETTINGS.get(key)
    if found is None:
        raise BadInput(
            "unknown_setting", f"There is no setting {key!r}; GET /settings lists them all.", key=key
        )
    return found


def check_environment(environ: Mapping[str, str]) -> None:
    """Raises `BadInput` naming the first setting that the environment gives a wrong value."""
    for name, key in ENV_NAMES.items():
        if name in environ:
            SETTINGS[key].parse(environ[name])
