"""The tables of the README, rendered from the code.

`python -m tests.architecture.tables` writes them between their markers (`<!-- routes -->` … `<!-- /routes -->`);
with `--print` it only shows them. `test_docs` fails while they differ.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import django
from django.apps import apps

import tests.environment

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
if not apps.ready:
    django.setup()

from django.core.management import get_commands, load_command_class
from django.urls import URLPattern, URLResolver, get_resolver

from config import env
from tests.architecture.rows import OURS, ROOT
from workspaces import outbox
from workspaces.api.base import Needs
from workspaces.logic.registry import SETTINGS, Setting
from workspaces.types import Role

README: Final = ROOT / "README.md"
API: Final = "/api/v1"
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")

ENVIRONMENT: Final[Mapping[str, str]] = {
    "DATABASE_URL": "Postgres, as the application's role. Unset: an embedded one, under the data folder.",
    "DATABASE_OWNER_URL": "The same database as the role that owns the tables, for migrations.",
    "CELERY_BROKER_URL": "RabbitMQ or Redis. Unset: the embedded broker, for one machine.",
    "SECRET_KEY": "Signs sessions. Unset: made once, kept under the data folder; needed with `DATABASE_URL`.",
    "OPENAI_BASE_URL": "Where models named `openai:…` are reached; any OpenAI-compatible server.",
    "OPENCLAW_BASE": "The home of an OpenClaw agent, for its pipeline.",
    "MATE_ALLOWED_HOSTS": "Names by which the web server may be called, separated by commas.",
    "MATE_DATA_DIR": "The data folder.",
    "MATE_DEBUG": "Django's debug pages; never where others can reach them.",
    "MATE_EMBEDDER": "`local`, `openai:…`, `bedrock:…` or `none`.",
    "MATE_ENCRYPTION_KEY": "Encrypts stored credentials: 32 random bytes in url-safe base64. As `SECRET_KEY`.",
    "MATE_HOST": "The address that the web server listens at.",
    "MATE_LOG_LEVEL": "`DEBUG`, `INFO`, `WARNING`, `ERROR` or `CRITICAL`.",
    "MATE_MODEL": "The model, such as `openai:…`, `anthropic:…` or `bedrock:…`. Unset: rules, without a model.",
    "MATE_PORT": "The port that the web server listens at.",
    "MATE_PROCESS": "`web`, `worker` or `beat`; said by the supervisor, or by whoever starts one alone.",
    "MATE_VECTOR_STORE": "Where vectors lie: `pgvector`, `s3vectors:<vector bucket>`, `opensearch:<https://host:port>`.",
    "OPENSEARCH_USERNAME": "Who we are to OpenSearch; unset: nobody, and for a domain of AWS its credentials.",
    "OPENSEARCH_PASSWORD": "The password of that user.",
    "MATE_PROVIDERS": "Classes of plugins, as dotted paths separated by commas.",
    "MATE_WORKERS": "Processes of the worker.",
}
"""What each variable means. The names and defaults are read from `config.env`; `test_docs` compares the names."""


# --- routes -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Address:
    """One entry of the resolver: its path with `{camelCase}` arguments, and what answers it."""

    path: str
    view: Callable[..., Any] | None

    @property
    def view_class(self) -> type | None:
        """The class behind `as_view()`."""
        return getattr(self.view, "view_class", None)


@dataclass(frozen=True)
class Route:
    """A method of an address of the API, and what it needs. `path` stands below `/api/v1`."""

    method: str
    path: str
    needs: Needs
    summary: str


def addresses() -> list[Address]:
    """Every address of the product, in the resolver's order; the admin site counts as one."""
    return list(_addresses(get_resolver().url_patterns, "/"))


def _addresses(patterns: Iterable[URLPattern | URLResolver], prefix: str) -> Iterator[Address]:
    for entry in patterns:
        path = prefix + _shown_path(str(entry.pattern))
        if isinstance(entry, URLPattern):
            yield Address(path, entry.callback)
        elif path == "/admin/":
            yield Address(path, entry.url_patterns[0].callback)
        else:
            yield from _addresses(entry.url_patterns, path)


def _shown_path(pattern: str) -> str:
    def argument(found: re.Match[str]) -> str:
        first, *rest = found[1].split("_")
        return "{" + first + "".join(word.title() for word in rest) + "}"

    return re.sub(r"<(?:\w+:)?(\w+)>", argument, pattern)


def routes() -> list[Route]:
    """Every route of the API × method, by path."""
    found = []
    for address in addresses():
        view = address.view_class
        if not address.path.startswith(API + "/") or view is None:
            continue
        for method in METHODS:
            needs = getattr(view, "needs", {}).get(method.lower())
            if needs is not None:
                summary = promise(getattr(view, method.lower()))
                found.append(Route(method, address.path.removeprefix(API), needs, summary))
    return sorted(found, key=lambda route: (route.path, METHODS.index(route.method)))


def role_name(role: Role) -> str:
    """How a role is written: the highest is the *workspace* owner, since an owner is a person remembered."""
    return "workspace owner" if role is Role.OWNER else role.name.lower()


def promise(documented: object) -> str:
    """The promise of a docstring: its first paragraph, on one line."""
    return (inspect.getdoc(documented) or "").split("\n\n")[0].replace("\n", " ")


# --- rendering --------------------------------------------------------------------------------------------


def render_routes() -> str:
    """Method, path, role, grant and promise of every route."""
    return _table(
        ("Method", "Path", "Role", "Grant", "What it does"),
        (
            (r.method, f"`{r.path}`", role_name(r.needs.role), f"`{r.needs.grant}`", r.summary)
            for r in routes()
        ),
    )


def render_settings() -> str:
    """Key, default, values and meaning of every setting, in the registry's order."""
    return _table(
        ("Key", "Default", "Values", "What it does"),
        ((f"`{one.key}`", _shown(one.default), _values(one), one.help) for one in SETTINGS.values()),
    )


def _values(setting: Setting) -> str:
    if setting.low is not None and setting.high is not None:
        return f"{setting.low:,g} to {setting.high:,g}" if setting.kind == "float" else _whole_range(setting)
    return {"bool": "true, false", "cron": "cron", "text": "text"}[setting.kind]


def _whole_range(setting: Setting) -> str:
    return f"{int(setting.low or 0):,} to {int(setting.high or 0):,}"


def render_commands() -> str:
    """Name and help of every management command of ours."""
    ours = sorted(name for name, app in get_commands().items() if app in OURS)
    return _table(
        ("Command", "What it does"),
        ((f"`{name}`", load_command_class(get_commands()[name], name).help) for name in ours),
    )


def render_topics() -> str:
    """Name, family and promise of every topic of the outbox."""
    return _table(
        ("Topic", "Lane", "What it does"),
        ((f"`{one.name}`", one.family, promise(one.handle)) for one in outbox.topics().values()),
    )


def render_environment() -> str:
    """Name, default and meaning of every variable that is read."""
    return _table(
        ("Variable", "Default", "What it says"),
        (
            (f"`{name}`", _default(name), ENVIRONMENT[name])
            for name in sorted(environment_names(), key=_bare_first)
        ),
    )


def environment_names() -> set[str]:
    """The variables that `config.env` reads, settings apart."""
    reader = env._Reader({})
    env._env(reader)
    return reader.known


def _bare_first(name: str) -> tuple[bool, str]:
    return name.startswith("MATE_"), name


def _default(name: str) -> str:
    value = getattr(env._env(env._Reader({})), name.lower().removeprefix("mate_"))
    if name == "MATE_DATA_DIR":
        value = value.relative_to(env.CHECKOUT)
    return _shown(",".join(value) if isinstance(value, tuple) else value)


def _shown(value: object) -> str:
    if value is None or value == "":
        return ""
    return f"`{str(value).lower()}`" if isinstance(value, bool) else f"`{value}`"


def _table(head: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    rows = [head, ("---",) * len(head), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


SECTIONS: Final[Mapping[str, Callable[[], str]]] = {
    "environment": render_environment,
    "settings": render_settings,
    "routes": render_routes,
    "commands": render_commands,
    "topics": render_topics,
}
"""The sections of the README that are rendered, by the name of their markers."""


def section(text: str, name: str) -> str | None:
    """What stands between the markers of that name; None without them."""
    found = re.search(rf"<!-- {name} -->\n(.*?)\n?<!-- /{name} -->", text, re.DOTALL)
    return None if found is None else found[1].strip()


def with_section(text: str, name: str, body: str) -> str:
    """The text with that section replaced. Raises `ValueError` without its markers."""
    if section(text, name) is None:
        raise ValueError(f"README.md has no markers <!-- {name} --> and <!-- /{name} -->.")
    start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, rest = text.split(start, 1)
    return f"{before}{start}\n{body}\n\n{end}{rest.split(end, 1)[1]}"


def main(arguments: list[str]) -> None:
    """Writes the sections into the README, or shows them with `--print`."""
    if "--print" in arguments:
        for name, render in SECTIONS.items():
            sys.stdout.write(f"<!-- {name} -->\n\n{render()}\n\n<!-- /{name} -->\n\n")
        return
    text = README.read_text(encoding="utf-8")
    for name, render in SECTIONS.items():
        text = with_section(text, name, render())
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    finally:
        shutil.rmtree(tests.environment.ROOT, ignore_errors=True)
