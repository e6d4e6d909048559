"""House rules that are promises: what a reader of the code may rely on."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = sorted(found.parent.name for found in ROOT.glob("*/__init__.py"))
BESIDE = {"bench", "tests"}
"""Packages that are not the product."""
PRODUCT = [name for name in PACKAGES if name not in BESIDE]

MAX_FUNCTION = 60
MAX_MODULE = 500

LONG_FUNCTIONS: dict[str, str] = {}
LONG_MODULES = {
    "memory/logic/salience.py": "the words of every language it reads are most of it",
    "memory/prompts/extract.py": "the wording of the prompt and its answer by rules, which must agree",
}
BROAD_EXCEPTS = {
    "workspaces/outbox.py": "the outbox's one door: recorded, retried, parked",
    "memory/providers/chain.py": "the provider chain's one door: told in the answer",
    "memory/providers/contract.py": "what a provider raises is a fault of its contract, and told",
    "memory/providers/registry.py": "a plugin's class that cannot be loaded stops the start, with its name",
    "memory/services/sync.py": "what a plugin raises goes to the outbox's door, without its secrets",
    "memory/providers/plugged.py": "a plugin's tool that breaks: told to the model",
    "workspaces/services/calls.py": "code that is not ours: kept, and raised where it is waited for",
    "workspaces/services/plugins.py": "a plugin's check of its connection: kept and told",
    "memory/services/chat.py": "closing a turn whose answer failed; the first error is the one to tell",
}
"""Where everything is caught and not raised again, and why."""
SLEEPERS = {"tests/journeys/product.py": "waits for processes that it started"}
NAMELESS = re.compile(r"^(utils?|helpers?|commons?|managers?|engines?|misc)$")
CLOCKS = {"now", "utcnow", "today", "monotonic", "random", "uuid4", "urandom", "getenv"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(*packages: str) -> list[Path]:
    return [
        path
        for package in packages
        for path in sorted((ROOT / package).rglob("*.py"))
        if "migrations" not in path.parts
    ]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[Function]:
    return (node for node in ast.walk(tree_of(path)) if isinstance(node, Function))


@pytest.fixture(scope="module")
def import_rules() -> Any:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]


# --- layers -----------------------------------------------------------------------------------------------


def test_every_package_stands_in_the_layers(import_rules: dict):
    """`lint-imports` (make check) enforces them; here it is made sure that it looks at everything."""
    assert sorted(import_rules["root_packages"]) == PRODUCT
    apps = next(one for one in import_rules["contracts"] if one["id"] == "apps")["layers"]
    placed = {layer.strip("()").split(".")[0] for layer in apps}
    assert set(PRODUCT) <= placed


def test_every_app_has_layers_of_its_own_and_none_of_its_modules_is_left_out(import_rules: dict):
    exhaustive = {
        container
        for contract in import_rules["contracts"]
        if contract.get("exhaustive")
        for container in contract["containers"]
    }
    assert {name for name in PRODUCT if name != "config"} <= exhaustive


def test_no_import_is_excused_from_the_layers(import_rules: dict):
    excused = [
        contract["id"]
        for contract in import_rules["contracts"]
        if contract["type"] == "layers"
        and (contract.get("ignore_imports") or contract.get("exhaustive_ignores"))
    ]
    assert excused == []


# --- code -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", modules(*PRODUCT), ids=name_of)
def test_an_import_inside_a_function_says_why(path: Path):
    lines = path.read_text(encoding="utf-8").splitlines()
    silent = []
    for function in functions(path):
        inside = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
        marks = [lines[node.lineno - 1].partition("# noqa: PLC0415")[1:] for node in inside]
        # The first of a group says why for all of it.
        if inside and (not all(mark for mark, _ in marks) or not marks[0][1].startswith(" - ")):
            silent.append(function.name)
    assert silent == []


def test_no_import_hides_from_the_layers_behind_type_checking():
    found = [
        name_of(path)
        for path in modules(*PRODUCT)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Name | ast.Attribute)
        and getattr(node, "id", getattr(node, "attr", "")) == "TYPE_CHECKING"
    ]
    assert found == []


def test_no_module_is_named_after_nothing():
    found = [
        name_of(path)
        for path in ROOT.glob("**/*.py")
        if not {".venv", ".data"} & set(path.parts)
        and any(NAMELESS.match(part.removesuffix(".py")) for part in path.relative_to(ROOT).parts)
    ]
    assert found == []


def test_a_function_fits_a_screen():
    found = {
        f"{name_of(path)}:{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path in modules(*PACKAGES)
        for function in functions(path)
        if (function.end_lineno or 0) - function.lineno + 1 > MAX_FUNCTION
    }
    assert {name: lines for name, lines in found.items() if name not in LONG_FUNCTIONS} == {}
    assert set(LONG_FUNCTIONS) <= set(found), "An exception that is no longer needed."


def test_a_module_is_read_in_one_sitting():
    found = {
        name_of(path): lines
        for path in modules(*PRODUCT)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MAX_MODULE
    }
    assert {name: lines for name, lines in found.items() if name not in LONG_MODULES} == {}
    assert set(LONG_MODULES) <= set(found), "An exception that is no longer needed."


def test_everything_is_caught_at_the_named_doors_only():
    found = {
        name_of(path)
        for path in modules(*PRODUCT)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _raises_again(node)
    }
    assert found == set(BROAD_EXCEPTS)


def _is_broad(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"} for kind in kinds)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


@pytest.mark.parametrize(
    "path",
    [path for path in modules(*PRODUCT) if {"logic", "prompts"} & set(path.relative_to(ROOT).parts)],
    ids=name_of,
)
def test_a_pure_module_asks_no_clock_and_no_chance(path: Path):
    """import-linter keeps out the modules; a clock also hides in `datetime`."""
    asked = [
        f"line {node.lineno}: .{node.func.attr}()"
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CLOCKS
    ]
    assert asked == []


def test_no_test_sleeps():
    found = {
        name_of(path)
        for path in modules("tests")
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and (
            (isinstance(node.func, ast.Attribute) and node.func.attr == "sleep")
            or (isinstance(node.func, ast.Name) and node.func.id == "sleep")
        )
    }
    assert found - set(SLEEPERS) == set()


def test_no_two_tests_of_a_module_have_one_name():
    """The second would replace the first, which then never runs."""
    twins = []
    for path in modules("tests"):
        tree = tree_of(path)
        for body in [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]:
            names = [node.name for node in body if isinstance(node, Function)]
            twins += [f"{name_of(path)}:{name}" for name in sorted(set(names)) if names.count(name) > 1]
    assert twins == []


# --- migrations -------------------------------------------------------------------------------------------


def test_migrations_match_the_models(django_db_setup: None, django_db_blocker):
    with django_db_blocker.unblock():
        call_command("makemigrations", check=True, dry_run=True, verbosity=0, interactive=False)
