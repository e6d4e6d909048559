"""The registry of settings: every key with its type, bounds and default."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workspaces.errors import BadInput
from workspaces.logic.cron import parse_cron
from workspaces.logic.registry import ENV_NAMES, SETTINGS, check_environment, setting_named

M = "mate.memory."
W = "mate.agent.conversation.window."
PUBLISHED = {
    M + "lifecycle-mediator-enabled": True,
    M + "auto-summarize-enabled": True,
    M + "skip-cron-conversations": True,
    M + "min-messages-for-summarize": 4,
    M + "min-user-message-length": 10,
    M + "summary-max-tokens": 1000,
    M + "max-transcript-messages": 30,
    M + "cooldown-minutes": 5,
    M + "emergence-enabled": True,
    M + "emergence-day-range": 7,
    M + "dream.focused-enabled": True,
    M + "dream.archive-enabled": True,
    M + "dream.archive-keep-days": 30,
    M + "dream.max-candidates-per-dream": 100,
    M + "soul-update-interval": 20,
    M + "fact.projection-enabled": True,
    M + "fact.contradiction-check-enabled": True,
    M + "fact.trust-half-life-days": 60,
    M + "fact.forget-enabled": True,
    M + "system-block-max-chars": 4000,
    M + "system-block-max-entries-per-type": 40,
    M + "structured-consolidation-enabled": True,
    M + "structured-consolidation-min-entries": 8,
    M + "structured-consolidation-max-owners-per-run": 50,
    M + "profile-max-chars": 4000,
    M + "memory-md-max-chars": 8000,
    M + "provider-prefetch-timeout-ms": 1500,
    M + "provider-prefetch-total-budget-ms": 2500,
    M + "provider-circuit-failure-threshold": 3,
    M + "provider-circuit-cooldown-seconds": 30,
    M + "provider-block-max-chars": 8000,
    M + "disabled-providers": "",
    W + "default-max-input-tokens": 128_000,
    W + "compact-trigger-ratio": 0.75,
    W + "preserve-recent-pairs": 2,
    W + "protect-last-min-messages": 10,
    W + "summary-max-tokens": 300,
}
"""The published configuration: a default that changes here changes for everyone who runs the product."""
SCHEDULES = {
    M + "emergence-cron": "0 3 * * *",
    M + "dream.archive-cron": "0 4 * * *",
    M + "structured-consolidation-cron": "30 3 * * *",
    M + "fact.projection-rebuild-cron": "*/30 * * * *",
}


@pytest.mark.parametrize(("key", "default"), PUBLISHED.items())
def test_a_published_key_has_its_default(key: str, default: object):
    assert SETTINGS[key].default == default
    assert type(SETTINGS[key].default) is type(default)


@pytest.mark.parametrize(("key", "plain"), SCHEDULES.items())
def test_a_schedule_fires_when_it_is_published_to(key: str, plain: str):
    shipped, wanted = parse_cron(str(SETTINGS[key].default)), parse_cron(plain)
    assert (shipped.minutes, shipped.hours, shipped.days) == (wanted.minutes, wanted.hours, wanted.days)


@pytest.mark.parametrize("key", SETTINGS)
def test_a_default_is_a_value_that_may_be_set(key: str):
    setting = SETTINGS[key]
    assert setting.parse(setting.default) == setting.default
    # A JSON boolean is told from the text "True"; the environment knows texts only.
    assert setting.parse(str(setting.default)) == setting.default
    assert setting.help.endswith(".")


@pytest.mark.parametrize(
    "key", [key for key, setting in SETTINGS.items() if setting.kind in {"int", "float"}]
)
def test_a_number_is_bounded_on_both_sides(key: str):
    setting = SETTINGS[key]
    assert setting.low is not None
    assert setting.high is not None
    assert setting.parse(str(setting.low)) == setting.low
    assert setting.parse(str(setting.high)) == setting.high
    for outside in (setting.low - 1, setting.high + 1):
        with pytest.raises(BadInput) as refused:
            setting.parse(str(outside))
        assert setting.wanted in refused.value.message
        assert key in refused.value.message


def test_environment_names_are_made_from_the_keys_and_differ():
    assert SETTINGS[M + "fact.trust-half-life-days"].env_name == "MATE_MEMORY_FACT_TRUST_HALF_LIFE_DAYS"
    assert SETTINGS[W + "summary-max-tokens"].env_name == "MATE_AGENT_CONVERSATION_WINDOW_SUMMARY_MAX_TOKENS"
    assert len(ENV_NAMES) == len(SETTINGS)


@pytest.mark.parametrize(
    ("key", "raw", "value"),
    [
        (M + "emergence-enabled", "off", False),
        (M + "emergence-enabled", " TRUE ", True),
        (M + "cooldown-minutes", "0", 0),
        (M + "cooldown-minutes", 7, 7),
        (W + "compact-trigger-ratio", 1, 1.0),
        (W + "compact-trigger-ratio", "0.5", 0.5),
        (M + "emergence-cron", " 15 2 * * 1 ", "15 2 * * 1"),
        (M + "disabled-providers", " mem0 ", "mem0"),
    ],
)
def test_a_right_value_is_typed(key: str, raw: object, value: object):
    parsed = SETTINGS[key].parse(raw)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("key", "raw"),
    [
        (M + "emergence-enabled", "maybe"),
        (M + "emergence-enabled", 1),
        (M + "emergence-enabled", None),
        (M + "cooldown-minutes", "5.0"),
        (M + "cooldown-minutes", 5.0),
        (M + "cooldown-minutes", True),
        (M + "cooldown-minutes", -1),
        (M + "cooldown-minutes", ""),
        (M + "cooldown-minutes", "9" * 5000),
        (M + "cooldown-minutes", [5]),
        (W + "compact-trigger-ratio", "nan"),
        (W + "compact-trigger-ratio", "inf"),
        (W + "compact-trigger-ratio", 1.01),
        (W + "compact-trigger-ratio", {}),
        (M + "emergence-cron", "every night"),
        (M + "emergence-cron", 3),
        (M + "disabled-providers", ["mem0"]),
    ],
)
def test_a_wrong_value_is_refused_and_says_what_would_be_right(key: str, raw: object):
    with pytest.raises(BadInput) as refused:
        SETTINGS[key].parse(raw)
    assert refused.value.code == "bad_setting"
    assert refused.value.fields == {"key": key}
    assert SETTINGS[key].wanted in refused.value.message


@given(
    st.sampled_from(sorted(SETTINGS)),
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2),
)
def test_any_value_is_typed_or_refused(key: str, raw: object):
    setting = SETTINGS[key]
    try:
        value = setting.parse(raw)
    except BadInput:
        return
    assert type(value) is type(setting.default)
    assert setting.parse(value) == value


def test_an_unknown_key_is_told():
    with pytest.raises(BadInput, match=r"no setting 'mate\.memory\.nonsense'"):
        setting_named(M + "nonsense")


def test_the_environment_is_checked_at_the_start():
    check_environment({"MATE_MEMORY_COOLDOWN_MINUTES": "3", "PATH": "/bin"})
    with pytest.raises(BadInput, match=r"mate\.memory\.cooldown-minutes: 'soon'"):
        check_environment({"MATE_MEMORY_COOLDOWN_MINUTES": "soon"})
