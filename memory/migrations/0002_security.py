"""Row-level security and composite keys."""

from django.db import migrations

from workspaces.logic import policies

TABLES = {
    "memory_conversation": {},
    "memory_message": {},
    "memory_turn": {"doors": ("maintenance",), "readers": ("metrics",)},
    "memory_contextsummary": {"doors": ("maintenance",)},
    "memory_extractionstate": {},
    "memory_recallhit": {"doors": ("maintenance",)},
}
WORKSPACE_TABLES = ["memory_providerbreaker"]
KEYS = [
    *((table, ("workspace_id", "bucket_id"), "workspaces_bucket", ("workspace_id", "id")) for table in TABLES),
    *(
        (table, ("bucket_id", "conversation_id"), "memory_conversation", ("bucket_id", "id"))
        for table in ("memory_message", "memory_turn", "memory_contextsummary")
    ),
    ("memory_turn", ("bucket_id", "question_id"), "memory_message", ("bucket_id", "id")),
    ("memory_turn", ("bucket_id", "answer_id"), "memory_message", ("bucket_id", "id")),
]


class Migration(migrations.Migration):
    dependencies = [("memory", "0001_initial"), ("workspaces", "0002_security")]

    operations = [
        *(
            migrations.RunSQL(policies.bucket_policies(table, **doors), policies.drop_policies(table))
            for table, doors in TABLES.items()
        ),
        *(
            migrations.RunSQL(policies.workspace_policies(table), policies.drop_policies(table))
            for table in WORKSPACE_TABLES
        ),
        *(
            migrations.RunSQL(
                policies.composite_key(table, columns, target, keys=keys),
                policies.drop_composite_key(table, columns),
            )
            for table, columns, target, keys in KEYS
        ),
    ]
