"""The product's own providers, and where the classes of plugins come from.

A plugin is found by the entry point group `mate_memory.providers` of an installed package, or by its dotted path
in `MATE_PROVIDERS`. Both are looked at once, at the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from importlib import import_module
from importlib.metadata import entry_points
from typing import Final, Protocol

from memory.providers.base import Prefetches, Provider
from memory.providers.builtin import BuiltinProvider, SessionProvider
from memory.providers.facts import FactProvider, StructuredProvider
from workspaces.services.plugins import join_plugin

GROUP: Final = "mate_memory.providers"
RESERVED: Final = frozenset({"builtin", "structured", "session", "fact"})
"""Names of the product's own providers, which no plugin may take."""


class OwnProvider(Provider, Prefetches, Protocol):
    """A leg of the turn's one search: asked in the caller's thread, with the caller's connection."""


OWN: Final[tuple[OwnProvider, ...]] = (
    BuiltinProvider(),
    StructuredProvider(),
    SessionProvider(),
    FactProvider(),
)
"""In the order in which they are asked."""


class PluginLoadError(Exception):
    """A plugin's class that cannot be used; says which, and why."""


def load_plugins(paths: Iterable[str]) -> None:
    """Joins the plugins of installed packages, and those of these dotted paths. Raises `PluginLoadError`."""
    for entry in sorted(entry_points(group=GROUP), key=lambda one: one.name):
        _join(f"The entry point {entry.name} = {entry.value}", entry.load)
    for path in paths:
        _join(f"MATE_PROVIDERS: {path}", partial(_imported, path))


def _join(named: str, load: Callable[[], object]) -> None:
    try:
        found = load()
        if (kind := getattr(found, "kind", None)) in RESERVED:
            raise ValueError(f"the kind {kind!r} is the product's own")
        join_plugin(found)
    except Exception as error:
        raise PluginLoadError(f"{named} is no plugin: {type(error).__name__}: {error}") from error


def _imported(path: str) -> object:
    module, separator, name = path.rpartition(":")
    if not separator:
        module, _, name = path.rpartition(".")
    if not module:
        raise ValueError("a dotted path names a class in a module, such as `wiki.plugin.Wiki`")
    return getattr(import_module(module), name)
