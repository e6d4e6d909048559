"""Asking all providers for a turn; one that breaks costs its own answer, never the turn."""

from __future__ import annotations

import time

import structlog

from memory.providers.base import Asked, Provider
from memory.providers.registry import providers
from memory.types import ProviderAnswer

log = structlog.get_logger(__name__)


def ask_providers(asked: Asked) -> list[ProviderAnswer]:
    """What each provider answered, in order; those that are switched off are told as skipped."""
    disabled = {name.strip() for name in asked.settings.text("mate.memory.disabled-providers").split(",")}
    return [
        ProviderAnswer(provider.name, "skipped", 0, reason="disabled")
        if provider.name in disabled
        else _ask(provider, asked)
        for provider in providers()
    ]


def _ask(provider: Provider, asked: Asked) -> ProviderAnswer:
    began = time.monotonic()
    try:
        items = tuple(provider.prefetch(asked))
    except Exception as error:
        log.warning("provider.failed", provider=provider.name, exc_info=error)
        return ProviderAnswer(provider.name, "failed", _ms(began), reason=type(error).__name__)
    return ProviderAnswer(provider.name, "answered", _ms(began), items=items)


def _ms(began: float) -> int:
    return round((time.monotonic() - began) * 1000)
