"""The SQL of row-level security and of composite keys, made in one place for every app's migrations. Pure.

A transaction tells Postgres who is looking by four settings, all local to it:

- `mate.workspace`: the id of the workspace, or empty;
- `mate.reach`: the buckets that may be read, as `{1,2,3}`;
- `mate.writes`: the buckets that may be written;
- `mate.door`: the name of a door that crosses tenants, or empty (see `workspaces.tenancy.Door`).

Nothing set, nothing seen.
"""

from __future__ import annotations

from typing import Final

APP_ROLE: Final = "mate_app"
"""The role of the application: no superuser, owner of nothing."""

FUNCTIONS: Final = """
CREATE FUNCTION mate_workspace() RETURNS bigint STABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT nullif(current_setting('mate.workspace', true), '')::bigint $$;
CREATE FUNCTION mate_reach() RETURNS bigint[] STABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT coalesce(nullif(current_setting('mate.reach', true), ''), '{}')::bigint[] $$;
CREATE FUNCTION mate_writes() RETURNS bigint[] STABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT coalesce(nullif(current_setting('mate.writes', true), ''), '{}')::bigint[] $$;
CREATE FUNCTION mate_door() RETURNS text STABLE PARALLEL SAFE LANGUAGE sql
  AS $$ SELECT coalesce(current_setting('mate.door', true), '') $$;
"""

DROP_FUNCTIONS: Final = "DROP FUNCTION mate_workspace(), mate_reach(), mate_writes(), mate_door();"

EVERYWHERE: Final = ("operator", "erasure")
"""Doors that open every tenant table: the operator (admin site, commands) and erasure."""

# `(SELECT f())` is computed once a statement, not once a row; the cast makes `= ANY` see an array, not a query.
_REACH: Final = "bucket_id = ANY ((SELECT mate_reach())::bigint[])"
_WRITES: Final = (
    "workspace_id = (SELECT mate_workspace()) AND bucket_id = ANY ((SELECT mate_writes())::bigint[])"
)
_WORKSPACE: Final = "{column} = (SELECT mate_workspace())"
# Rows of the reserved workspace (id 1) are read by every tenant, written through a door only.
_WORKSPACE_OR_GLOBAL: Final = (
    "{column} = (SELECT mate_workspace()) OR ({column} = 1 AND (SELECT mate_workspace()) IS NOT NULL)"
)


def bucket_policies(table: str, *, doors: tuple[str, ...] = (), readers: tuple[str, ...] = ()) -> str:
    """Policies of a table with `workspace_id` and `bucket_id`: read within the reach, write within the writes.

    `doors` may read and write all of it, `readers` only read.
    """
    return _policies(table, read=_REACH, write=_WRITES, doors=doors, readers=readers)


def workspace_policies(
    table: str,
    *,
    column: str = "workspace_id",
    has_global: bool = False,
    doors: tuple[str, ...] = (),
    readers: tuple[str, ...] = (),
) -> str:
    """Policies of a table of a workspace; `column` holds the workspace's id. Doors as above.

    With `has_global` every tenant also reads the rows of the reserved workspace.
    """
    return _policies(
        table,
        read=(_WORKSPACE_OR_GLOBAL if has_global else _WORKSPACE).format(column=column),
        write=_WORKSPACE.format(column=column),
        doors=doors,
        readers=readers,
    )


def drop_policies(table: str) -> str:
    """Undoes either of the above."""
    names = "".join(
        f"DROP POLICY mate_{verb} ON {table};\n" for verb in ("read", "insert", "update", "delete")
    )
    return names + f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY;"


def _policies(table: str, *, read: str, write: str, doors: tuple[str, ...], readers: tuple[str, ...]) -> str:
    may_write = f"({write}) OR {_opened((*EVERYWHERE, *doors))}"
    may_read = f"({read}) OR {_opened((*EVERYWHERE, *doors, *readers))}"
    return f"""
ALTER TABLE {table} ENABLE ROW LEVEL SECURITY;
CREATE POLICY mate_read ON {table} FOR SELECT USING ({may_read});
CREATE POLICY mate_insert ON {table} FOR INSERT WITH CHECK ({may_write});
CREATE POLICY mate_update ON {table} FOR UPDATE USING ({may_write}) WITH CHECK ({may_write});
CREATE POLICY mate_delete ON {table} FOR DELETE USING ({may_write});
"""


def _opened(doors: tuple[str, ...]) -> str:
    names = ", ".join(f"'{door}'" for door in doors)
    return f"(SELECT mate_door()) IN ({names})"


def composite_key(
    table: str, columns: tuple[str, str], target: str, *, keys: tuple[str, str], is_optional: bool = False
) -> str:
    """A foreign key that carries the tenant, so that a row cannot point into another one's.

    Deferred to the commit, as Django's own keys are, and cascading, since Django's collector already deletes
    in order; an optional one is emptied instead. A NULL in either column switches it off.
    """
    gone = f"SET NULL ({columns[1]})" if is_optional else "CASCADE"
    name = f"{table}_{columns[1]}_same_{columns[0].removesuffix('_id')}"[:63]
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({', '.join(columns)}) "
        f"REFERENCES {target} ({', '.join(keys)}) ON DELETE {gone} DEFERRABLE INITIALLY DEFERRED;"
    )


def drop_composite_key(table: str, columns: tuple[str, str]) -> str:
    """Undoes `composite_key`."""
    name = f"{table}_{columns[1]}_same_{columns[0].removesuffix('_id')}"[:63]
    return f"ALTER TABLE {table} DROP CONSTRAINT {name};"


def grant_to_app() -> str:
    """Lets the application's role use what the owner makes, now and later. Owns nothing, truncates nothing."""
    return f"""
GRANT USAGE ON SCHEMA public TO {APP_ROLE};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {APP_ROLE};
GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {APP_ROLE};
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO {APP_ROLE};
ALTER DEFAULT PRIVILEGES IN SCHEMA public GRANT USAGE, SELECT ON SEQUENCES TO {APP_ROLE};
"""


CREATE_APP_ROLE: Final = f"""
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{APP_ROLE}') THEN
    CREATE ROLE {APP_ROLE} NOLOGIN NOSUPERUSER NOBYPASSRLS;
    -- So that whoever owns the tables can act as the application where only their own log-in is given.
    EXECUTE format('GRANT {APP_ROLE} TO %I', current_user);
  END IF;
END $$;
"""

RESERVED_ROWS: Final = """
INSERT INTO workspaces_workspace (id, name, slug, language, timezone, created_at)
  VALUES (1, 'Everyone', 'everyone', 'en', 'UTC', now()) ON CONFLICT DO NOTHING;
INSERT INTO workspaces_bucket (id, workspace_id, scope, agent_id, owner_id, created_at)
  VALUES (1, 1, 'GLOBAL', NULL, NULL, now()) ON CONFLICT DO NOTHING;
SELECT setval(
  pg_get_serial_sequence('workspaces_workspace', 'id'),
  greatest(1, (SELECT max(id) FROM workspaces_workspace))
);
SELECT setval(
  pg_get_serial_sequence('workspaces_bucket', 'id'),
  greatest(1, (SELECT max(id) FROM workspaces_bucket))
);
"""
"""The reserved workspace and the GLOBAL bucket. Run as the owner of the tables, with the constraints deferred."""
