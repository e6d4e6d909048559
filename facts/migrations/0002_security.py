"""Row-level security and composite keys."""

from django.db import migrations

from workspaces.logic import policies

TABLES = {
    "facts_fact": {"doors": ("maintenance",), "readers": ("metrics",)},
    "facts_evidence": {},
    "facts_factrevision": {"doors": ("maintenance",)},
    "facts_feedback": {},
    "facts_projectedsection": {},
    "facts_contradiction": {"readers": ("metrics",)},
    "facts_receipt": {},
    "facts_tombstone": {},
}
SAME_BUCKET = ("bucket_id", "id")
KEYS = [
    *((table, ("workspace_id", "bucket_id"), "workspaces_bucket", ("workspace_id", "id")) for table in TABLES),
    *(
        (table, ("bucket_id", "fact_id"), "facts_fact", SAME_BUCKET)
        for table in ("facts_evidence", "facts_factrevision")
    ),
    ("facts_contradiction", ("bucket_id", "a_id"), "facts_fact", SAME_BUCKET),
    ("facts_contradiction", ("bucket_id", "b_id"), "facts_fact", SAME_BUCKET),
    ("facts_evidence", ("bucket_id", "file_id"), "workspaces_file", SAME_BUCKET),
    ("facts_projectedsection", ("bucket_id", "file_id"), "workspaces_file", SAME_BUCKET),
]
OPTIONAL_KEYS = [
    ("facts_fact", ("bucket_id", "superseded_by_id"), "facts_fact", SAME_BUCKET),
    ("facts_tombstone", ("bucket_id", "receipt_id"), "facts_receipt", SAME_BUCKET),
    # By workspace: with isolation off, a person's run writes the shared bucket.
    ("facts_evidence", ("workspace_id", "run_id"), "workspaces_run", ("workspace_id", "id")),
    ("facts_factrevision", ("workspace_id", "run_id"), "workspaces_run", ("workspace_id", "id")),
]


class Migration(migrations.Migration):
    dependencies = [("facts", "0001_initial"), ("workspaces", "0002_security")]

    operations = [
        *(
            migrations.RunSQL(policies.bucket_policies(table, **doors), policies.drop_policies(table))
            for table, doors in TABLES.items()
        ),
        *(
            migrations.RunSQL(
                policies.composite_key(table, columns, target, keys=keys, is_optional=is_optional),
                policies.drop_composite_key(table, columns),
            )
            for is_optional, found in ((False, KEYS), (True, OPTIONAL_KEYS))
            for table, columns, target, keys in found
        ),
    ]
