"""The providers there are. Others join at start."""

from __future__ import annotations

from memory.providers.base import Provider
from memory.providers.builtin import BuiltinProvider, SessionProvider

_PROVIDERS: list[Provider] = [BuiltinProvider(), SessionProvider()]


def register(provider: Provider) -> None:
    """Adds a provider after those that are there; raises `ValueError` for a name that is taken."""
    if any(known.name == provider.name for known in _PROVIDERS):
        raise ValueError(f"A provider named {provider.name!r} is registered already.")
    _PROVIDERS.append(provider)


def unregister(name: str) -> None:
    """Takes a provider away; no error when it is not there."""
    _PROVIDERS[:] = [known for known in _PROVIDERS if known.name != name]


def providers() -> tuple[Provider, ...]:
    """All providers, in the order they are asked."""
    return tuple(_PROVIDERS)
