"""What a provider promises, checked over the product's own and over the README's example."""

from __future__ import annotations

import re
import sys
from types import ModuleType

import pytest
from django.conf import settings

from memory.providers import registry
from memory.providers.base import ProviderTool
from memory.providers.contract import HOOKS, check_plugin, check_provider
from memory.providers.plugged import forget_made
from memory.providers.registry import OWN, PluginLoadError, load_plugins
from tests.memory.test_chain import ask, outcome, plug
from tests.memory.test_chat import opened_as
from tests.stubs.plugins import Sample, WikiServer, item, joined
from workspaces.services.plugins import leave_plugin, plugin_kinds

PAGES = [
    {"id": 1, "title": "Tea", "text": "Tea is served at four.", "score": 0.9},
    {"id": 2, "title": "Coffee", "text": "Coffee is served at ten.", "score": 0.4},
]


def example() -> str:
    """The README's plugin, as it stands there."""
    text = (settings.BASE_DIR / "README.md").read_text(encoding="utf-8")
    found = re.search(r"```python\n(# wiki\.py\n.*?)```", text, re.DOTALL)
    assert found, "The README shows no wiki.py."
    return found[1]


@pytest.fixture
def wiki(monkeypatch):
    """The example's class, imported as a module of that name."""
    module = ModuleType("wiki")
    monkeypatch.setitem(sys.modules, "wiki", module)
    exec(compile(example(), "wiki.py", "exec"), vars(module))
    yield module.Wiki
    leave_plugin("wiki")
    forget_made()


@pytest.fixture(autouse=True)
def _clean():
    yield
    Sample.reset()
    forget_made()


def test_the_products_own_providers_keep_the_contract(acme):
    from memory.providers.base import Asked
    from workspaces.settings import effective
    from workspaces.tenancy import tenant

    opened = opened_as(acme)
    with tenant(opened.reach):
        in_force = effective(acme.workspace.pk)
    for provider in OWN:
        faults = check_provider(
            provider, lambda query: Asked(opened.own, opened.reach, query=query, settings=in_force)
        )
        assert faults == []


@pytest.mark.django_db
def test_the_readmes_example_is_short_and_keeps_the_contract(wiki):
    assert len(example().splitlines()) < 40
    with WikiServer(PAGES) as server:
        assert check_plugin(wiki, wiki.Config(baseUrl=server.url)) == []
    assert "welcome" in server.asked


def test_the_readmes_example_is_set_up_and_answers_a_turn(acme, wiki):
    load_plugins(["wiki.Wiki"])
    with WikiServer(PAGES, key="sesame") as server:
        client = acme.alice.client()
        config = {"baseUrl": server.url, "apiKey": "wrong"}
        refused = client.put("/api/v1/plugins/wiki", {"enabled": True, "config": config})
        assert (refused.status_code, refused.json()["code"]) == (422, "plugin_check_failed")
        assert "401" in refused.json()["detail"]
        config["apiKey"] = "sesame"
        enabled = client.put("/api/v1/plugins/wiki", {"enabled": True, "config": config}).json()
        assert enabled["found"] == "The wiki answers, with 2 pages for “welcome”."
        answer = ask(acme, "When is tea?")
    assert outcome(answer, "wiki") == ("answered", "")
    assert server.asked[-1] == "When is tea?"
    assert [one["text"] for one in answer["items"]] == [page["text"] for page in PAGES]
    assert [one["id"] for one in answer["items"]] == ["wiki:1", "wiki:2"]


def test_a_wiki_that_is_away_fails_alone(acme, wiki):
    load_plugins(["wiki:Wiki"])
    with WikiServer(PAGES) as server:
        plug(acme, "wiki", baseUrl=server.url)
    assert outcome(ask(acme), "wiki")[0] in {"failed", "late"}


def test_a_good_plugin_has_no_fault():
    Sample.on_prefetch = lambda self, asked: [item(score=0.9), item(id="2", score=0.1)]
    Sample.given_tools = [ProviderTool("look", "Looks.", {"type": "object"}, lambda asked, given: {})]
    assert check_plugin(Sample, Sample.Config(), writes=True) == []


def test_each_fault_is_told(monkeypatch):
    def broken(*args):
        raise ZeroDivisionError("by zero")

    cases = {
        "malformed": lambda: setattr(Sample, "on_prefetch", lambda self, asked: [item(score=float("nan"))]),
        "best item must come first": lambda: setattr(
            Sample, "on_prefetch", lambda self, asked: [item(score=0.1), item(id="2", score=0.9)]
        ),
        "one id": lambda: setattr(Sample, "on_prefetch", lambda self, asked: [item(), item()]),
        "ZeroDivisionError: by zero": lambda: setattr(Sample, "on_prefetch", broken),
        "`check` must say": lambda: setattr(Sample, "on_check", lambda config: ""),
        "check: ZeroDivisionError": lambda: setattr(Sample, "on_check", broken),
        "sync_turn (twice": lambda: setattr(Sample, "on_sync", broken),
        "system_prompt_block must be": lambda: setattr(Sample, "block", "x" * 3000),
        "tools: at most": lambda: setattr(Sample, "given_tools", [ProviderTool("a b", "", {}, broken)]),
    }
    cases["are no RecallItem"] = cases.pop("malformed")
    for told, spoil in cases.items():
        Sample.reset()
        spoil()
        faults = check_plugin(Sample, Sample.Config(), writes=True)
        assert any(told in fault for fault in faults), (told, faults)


def test_what_has_no_hook_or_is_no_plugin_is_told():
    class Bare:
        name = "bare"

    assert check_provider(Bare()) == [f"it has none of the hooks {', '.join(HOOKS)}"]
    assert "`kind` must be a text of its class" in check_plugin(Bare, Sample.Config())


# --- loading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("nowhere.Wiki", "No module named 'nowhere'"),
        ("tests.stubs.plugins.Nothing", "has no attribute 'Nothing'"),
        ("tests.stubs.plugins.item", "`kind` must be a text of its class"),
        ("Wiki", "a dotted path names a class in a module"),
    ],
)
def test_a_bad_path_stops_the_start_with_its_name_and_the_reason(path, reason):
    with pytest.raises(PluginLoadError) as stopped:
        load_plugins([path])
    assert f"MATE_PROVIDERS: {path} " in str(stopped.value)
    assert reason in str(stopped.value)


def test_a_plugin_is_found_by_the_entry_points_of_installed_packages(monkeypatch):
    class Entry:
        name, value = "sample", "tests.stubs.plugins:Sample"

        def load(self):
            return Sample

    monkeypatch.setattr(registry, "entry_points", lambda *, group: {registry.GROUP: [Entry()]}[group])
    load_plugins([])
    assert Sample in plugin_kinds()
    leave_plugin("sample")


def test_a_name_is_taken_once_and_the_products_own_never():
    class Twin(Sample):
        pass

    class Usurper(Sample):
        kind = "builtin"

    with joined(Sample), pytest.raises(ValueError, match="is taken by Sample"), joined(Twin):
        pass
    vars(sys.modules[__name__])["Usurper"] = Usurper
    with pytest.raises(PluginLoadError, match="the product's own"):
        load_plugins([f"{__name__}.Usurper"])
