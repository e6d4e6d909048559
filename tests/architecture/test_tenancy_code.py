"""What code may do across tenants: the unscoped manager and the doors, each use named with its reason."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.architecture.rows import OURS, ROOT, TENANTS, table
from workspaces.models.tenancy import UnscopedReadError
from workspaces.tenancy import Door


def kind_of(path: Path) -> str:
    """The kind of a module: its first name below its app, such as `services` or `admin`."""
    return path.relative_to(ROOT).parts[1].removesuffix(".py")


@pytest.mark.parametrize("model", TENANTS, ids=table)
def test_a_read_that_does_not_say_whose_is_refused(model):
    for read in (
        "all",
        "filter",
        "count",
        "first",
        "exists",
        "values",
        "get",
        "order_by",
        "aggregate",
        "iterator",
    ):
        with pytest.raises(UnscopedReadError):
            getattr(model.objects, read)()


UNSCOPED = {
    "memory/services/entries.py": "maintenance crosses tenants by its door",
    "workspaces/file_queries.py": "revisions of a file that was found within the reach",
    "facts/queries.py": "the evidence of facts that were found within the reach",
    "facts/services/expiry.py": "maintenance crosses tenants by its door",
    "facts/services/contradictions.py": "inserts of the job's bucket, behind the fence",
    "memory/api/metrics.py": "numbers of turns over all tenants, by the door of metrics",
    "memory/queries.py": "messages of a conversation that was found in its bucket",
    "memory/services/extract.py": "rows of the job's bucket, behind the fence",
    "memory/services/reindex.py": "ids of all buckets, for the operator's command; never a text",
    "memory/services/rounds.py": "the payload of the message that is being worked",
    "memory/services/summaries.py": "summaries of a conversation that was found in its bucket",
    "memory/services/turns.py": "rows of the conversation that was just made or found",
    "memory/services/upkeep.py": "maintenance crosses tenants by its door",
    "workspaces/access.py": "who is calling, before the workspace is known; buckets of a job",
    "workspaces/admin_queries.py": "numbers over a workspace's buckets, by a door; never a text",
    "workspaces/api/operations.py": "metrics over all tenants, by their door",
    "workspaces/api/tenants.py": "the workspaces that a user belongs to",
    "workspaces/outbox.py": "lanes of all tenants, by the outbox's door",
    "workspaces/queries.py": "revisions of a file that was found within the reach; the workspace's own row",
    "workspaces/services/files.py": "revisions of a file whose row is locked",
    "workspaces/services/first_run.py": "the operator's set-up",
    "workspaces/services/maintenance.py": "retention crosses tenants by its door",
    "workspaces/services/overrides.py": "global overrides, by the operator's door",
    "workspaces/services/owners.py": "inserts that several may make at once",
    "workspaces/services/schedules.py": "schedules of the workspace that is open, or all by the outbox's door",
    "workspaces/services/tenants.py": "workspaces themselves",
    "workspaces/services/tick.py": "schedules of all tenants, by the outbox's door; never a text",
    "workspaces/management/commands/issue_token.py": "the operator's command",
}
"""Where the unscoped manager is used, and why the rows cannot be another tenant's. The admin site is the operator's."""


def test_the_unscoped_manager_is_used_where_it_is_allowed():
    found = {
        str(path.relative_to(ROOT))
        for app in OURS
        for path in (ROOT / app).rglob("*.py")
        if kind_of(path) not in {"migrations", "models", "admin"}
        and any(
            isinstance(node, ast.Attribute) and node.attr in {"unscoped", "_base_manager", "_default_manager"}
            for node in ast.walk(ast.parse(path.read_text()))
        )
    }
    assert found - set(UNSCOPED) == set(), "Say here why these rows cannot be another tenant's."
    assert {name for name in UNSCOPED if name not in found and (ROOT / name).exists()} == set(), (
        "No longer needed."
    )


DOORS = {
    Door.AUTHENTICATE: {"workspaces/access.py", "workspaces/api/tenants.py"},
    Door.OUTBOX: {
        "workspaces/outbox.py",
        "workspaces/access.py",
        "workspaces/services/schedules.py",
        "workspaces/services/tick.py",
    },
    Door.METRICS: {
        "workspaces/outbox.py",
        "workspaces/api/operations.py",
        "workspaces/api/activity.py",
        "memory/api/metrics.py",
    },
    Door.MAINTENANCE: {
        "facts/services/expiry.py",
        "workspaces/services/maintenance.py",
        "memory/services/entries.py",
        "memory/services/upkeep.py",
    },
    Door.ERASURE: {"workspaces/services/agents.py"},
    Door.OPERATOR: {
        "memory/services/reindex.py",
        "workspaces/middleware.py",
        "workspaces/outbox.py",
        "workspaces/services/first_run.py",
        "workspaces/management/commands/issue_token.py",
    },
}
"""The modules that open each door across tenants; few, and named."""


def test_the_doors_across_tenants_are_opened_where_they_are_named():
    found: dict[Door, set[str]] = {name: set() for name in Door}
    for app in OURS:
        for path in (ROOT / app).rglob("*.py"):
            if kind_of(path) in {"migrations", "admin"}:
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if (
                    isinstance(node, ast.Attribute)
                    and isinstance(node.value, ast.Name)
                    and node.value.id == "Door"
                    and node.attr in Door.__members__
                ):
                    found[Door[node.attr]].add(str(path.relative_to(ROOT)))
    assert found == DOORS
