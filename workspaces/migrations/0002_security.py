"""Row-level security, composite keys and the reserved rows."""

from django.db import migrations

from workspaces.logic import policies

BUCKET_TABLES = {
    "workspaces_file": {},
    "workspaces_revision": {},
    "workspaces_run": {"readers": ("metrics",)},
    "workspaces_change": {},
    "workspaces_lane": {"doors": ("outbox",), "readers": ("metrics",)},
    "workspaces_outboxmessage": {"doors": ("outbox",), "readers": ("metrics",)},
    "workspaces_modelusage": {"doors": ("maintenance",), "readers": ("metrics",)},
}
WORKSPACE_TABLES = {
    "workspaces_workspace": {"column": "id", "has_global": True, "readers": ("authenticate", "outbox", "maintenance")},
    "workspaces_member": {"readers": ("authenticate",)},
    "workspaces_agent": {"readers": ("outbox",)},
    "workspaces_owner": {"readers": ("outbox",)},
    "workspaces_bucket": {"has_global": True, "readers": ("outbox", "maintenance")},
    "workspaces_personalaccesstoken": {"doors": ("authenticate",)},
    "workspaces_plugin": {},
    "workspaces_settingoverride": {"has_global": True, "readers": ("maintenance",)},
    "workspaces_auditevent": {"doors": ("maintenance", "authenticate")},
    "workspaces_idempotencykey": {"doors": ("maintenance",)},
}
IN_BUCKET = ("workspace_id", "bucket_id")
KEYS = [
    *((table, IN_BUCKET, "workspaces_bucket", ("workspace_id", "id")) for table in BUCKET_TABLES),
    ("workspaces_bucket", ("workspace_id", "agent_id"), "workspaces_agent", ("workspace_id", "id")),
    ("workspaces_bucket", ("workspace_id", "owner_id"), "workspaces_owner", ("workspace_id", "id")),
    ("workspaces_settingoverride", ("workspace_id", "agent_id"), "workspaces_agent", ("workspace_id", "id")),
    ("workspaces_revision", ("bucket_id", "file_id"), "workspaces_file", ("bucket_id", "id")),
    ("workspaces_change", ("bucket_id", "run_id"), "workspaces_run", ("bucket_id", "id")),
    ("workspaces_outboxmessage", ("bucket_id", "lane_id"), "workspaces_lane", ("bucket_id", "id")),
]


class Migration(migrations.Migration):
    dependencies = [("workspaces", "0001_initial")]

    operations = [
        migrations.RunSQL(policies.CREATE_APP_ROLE, migrations.RunSQL.noop),
        migrations.RunSQL(policies.FUNCTIONS, policies.DROP_FUNCTIONS),
        migrations.RunSQL(policies.grant_to_app(), migrations.RunSQL.noop),
        *(
            migrations.RunSQL(policies.bucket_policies(table, **doors), policies.drop_policies(table))
            for table, doors in BUCKET_TABLES.items()
        ),
        *(
            migrations.RunSQL(policies.workspace_policies(table, **doors), policies.drop_policies(table))
            for table, doors in WORKSPACE_TABLES.items()
        ),
        *(
            migrations.RunSQL(
                policies.composite_key(table, columns, target, keys=keys),
                policies.drop_composite_key(table, columns),
            )
            for table, columns, target, keys in KEYS
        ),
        migrations.RunSQL(
            policies.composite_key(
                "workspaces_revision",
                # By workspace: with isolation off, a person's run writes the shared bucket.
                ("workspace_id", "run_id"),
                "workspaces_run",
                keys=("workspace_id", "id"),
                is_optional=True,
            ),
            policies.drop_composite_key("workspaces_revision", ("workspace_id", "run_id")),
        ),
        migrations.RunSQL(policies.RESERVED_ROWS, migrations.RunSQL.noop),
    ]
