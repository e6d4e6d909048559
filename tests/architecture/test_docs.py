"""What the README says of settings, routes, commands, topics and variables is what the code does."""

from __future__ import annotations

import pytest

from tests.architecture import tables

CONTRACT = {
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "MATE_DATA_DIR",
    "MATE_HOST",
    "MATE_PORT",
    "SECRET_KEY",
    "MATE_MODEL",
    "OPENAI_BASE_URL",
    "MATE_EMBEDDER",
    "MATE_VECTOR_STORE",
    "OPENCLAW_BASE",
}
"""The variables that were promised."""


@pytest.mark.parametrize("name", tables.SECTIONS)
def test_a_section_of_the_readme_is_what_the_code_says(name: str):
    written = tables.section(tables.README.read_text(encoding="utf-8"), name)
    assert written is not None, f"README.md needs the markers <!-- {name} --> and <!-- /{name} -->."
    assert written == tables.SECTIONS[name](), "Run `python -m tests.architecture.tables`."


def test_every_variable_is_documented():
    assert set(tables.ENVIRONMENT) == tables.environment_names()
    assert tables.environment_names() >= CONTRACT


@pytest.mark.parametrize("name", tables.SECTIONS)
def test_no_line_of_a_table_is_without_words(name: str):
    rows = tables.SECTIONS[name]().splitlines()[2:]
    assert rows
    assert [row for row in rows if not row.split(" | ")[-1].removesuffix("|").strip()] == []


def test_a_section_is_replaced_between_its_markers_only():
    text = "before\n<!-- x -->\nold\n<!-- /x -->\nafter <!-- y -->\n<!-- /y -->\n"
    once = tables.with_section(text, "x", "new")
    assert once == "before\n<!-- x -->\n\nnew\n\n<!-- /x -->\nafter <!-- y -->\n<!-- /y -->\n"
    assert tables.with_section(once, "x", "new") == once
    assert tables.section(once, "x") == "new"
    with pytest.raises(ValueError, match="no markers"):
        tables.with_section(text, "z", "new")
