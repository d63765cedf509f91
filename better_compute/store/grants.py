"""What the role that serves may do: the least that serving needs, granted by the owner that migrates.

Tables that ``compute_append_only`` guards can be read and appended to, outbox and audit in the columns that the core
writes; the ledger, Django's own record of migrations and the store's identity can only be read, and of the clock only
the anchor be written; nothing can be truncated. Statements are derived from the
difference between what is and what is wanted, so an up-to-date database gets none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

from better_compute.store.audit import COLUMNS as AUDIT_COLUMNS
from better_compute.store.outbox import COLUMNS as OUTBOX_COLUMNS

#: Tables that only the migrating role writes.
READ_ONLY = ("compute_migrations", "compute_store", "compute_retention", "django_migrations")

#: Tables of which a role that serves writes some columns only. What the database fills in by itself, an event's id,
#: its transaction and its time, cannot be given, nor the clock be moved.
COLUMNS: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "compute_clock": ("UPDATE", ("anchored_at",)),
    "compute_outbox": ("INSERT", OUTBOX_COLUMNS),
    "compute_audit_events": ("INSERT", AUDIT_COLUMNS),
    "compute_retention_holds": ("UPDATE", ("position",)),
}

ROLE = """
SELECT rolsuper, rolname = current_user, pg_has_role(rolname, current_user, 'MEMBER'),
       ARRAY(SELECT c.relname::text FROM pg_class AS c
             WHERE c.relowner = pg_roles.oid AND c.relnamespace = current_schema()::regnamespace
               AND c.relkind IN ('r', 'p') AND c.relname LIKE 'compute\\_%%'
             ORDER BY c.relname)
FROM pg_roles WHERE rolname = %s
"""

# Only objects that the migrating role may grant; what others own in the schema is their affair.
DIFFERENCES = """
WITH app AS (SELECT %(role)s::text AS role, current_schema()::text AS schema),
own AS (
  SELECT c.oid, c.relname::text AS name, c.relkind, c.relispartition
  FROM pg_class AS c, app
  WHERE c.relnamespace = app.schema::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND pg_has_role(c.relowner, 'USAGE')
),
wanted AS (
  SELECT oid, name, 'TABLE' AS kind, privilege,
         CASE WHEN name = ANY(%(read_only)s) OR name = ANY(%(by_column)s) THEN privilege = 'SELECT'
              -- A partition is written through its parent, whose columns are what counts.
              WHEN own.relispartition AND EXISTS (
                SELECT FROM pg_inherits AS i JOIN pg_class AS parent ON parent.oid = i.inhparent
                WHERE i.inhrelid = own.oid AND parent.relname = ANY(%(by_column)s)) THEN privilege = 'SELECT'
              WHEN EXISTS (SELECT FROM pg_trigger AS t JOIN pg_proc AS f ON f.oid = t.tgfoid
                           WHERE t.tgrelid = own.oid AND f.proname = 'compute_append_only')
                THEN privilege IN ('SELECT', 'INSERT')
              ELSE privilege IN ('SELECT', 'INSERT', 'UPDATE', 'DELETE') END AS granted,
         has_table_privilege(app.role, oid, privilege) AS has
  FROM own, app, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER'])
    AS privilege
  WHERE own.relkind <> 'S'
  UNION ALL
  SELECT oid, name, 'SEQUENCE', privilege, privilege <> 'UPDATE', has_sequence_privilege(app.role, oid, privilege)
  FROM own, app, unnest(ARRAY['USAGE', 'SELECT', 'UPDATE']) AS privilege
  WHERE own.relkind = 'S'
)
SELECT format(CASE WHEN granted THEN 'GRANT %%s ON %%s %%I.%%I TO %%I' ELSE 'REVOKE %%s ON %%s %%I.%%I FROM %%I' END,
              string_agg(privilege, ', ' ORDER BY privilege), kind, schema, name, role)
FROM wanted, app WHERE granted <> has
GROUP BY granted, kind, schema, name, role
UNION ALL
SELECT format(CASE WHEN granted THEN 'GRANT %%s (%%s) ON TABLE %%I.%%I TO %%I'
                   ELSE 'REVOKE %%s (%%s) ON TABLE %%I.%%I FROM %%I' END,
              privilege, string_agg(quote_ident(attname), ', ' ORDER BY attname), schema, name, role)
FROM (
  SELECT own.name, a.attname, privilege, app.schema, app.role,
         c.owner IS NOT NULL AS granted,
         -- What comes with the whole table goes with it.
         has_column_privilege(app.role, own.oid, a.attnum, privilege)
           AND NOT has_table_privilege(app.role, own.oid, privilege) AS has
  FROM own CROSS JOIN app
  JOIN pg_attribute AS a ON a.attrelid = own.oid AND a.attnum > 0 AND NOT a.attisdropped
  CROSS JOIN unnest(ARRAY['INSERT', 'UPDATE']) AS privilege
  LEFT JOIN unnest(%(tables)s::text[], %(privileges)s::text[], %(columns)s::text[]) AS c (owner, allowed, attname)
    ON c.owner = own.name AND c.allowed = privilege AND c.attname = a.attname
  WHERE own.name = ANY(%(by_column)s)
) AS by_column
WHERE granted <> has
GROUP BY granted, privilege, schema, name, role
UNION ALL
SELECT format('GRANT EXECUTE ON ROUTINE %%s TO %%I', f.oid::regprocedure, role)
FROM pg_proc AS f, app
WHERE f.pronamespace = app.schema::regnamespace AND pg_has_role(f.proowner, 'USAGE') AND f.prokind IN ('f', 'p')
  AND NOT has_function_privilege(app.role, f.oid, 'EXECUTE')
UNION ALL
SELECT format('GRANT USAGE ON SCHEMA %%I TO %%I', schema, role) FROM app
WHERE NOT has_schema_privilege(app.role, app.schema, 'USAGE')
UNION ALL
SELECT format('ALTER DEFAULT PRIVILEGES IN SCHEMA %%I GRANT %%s TO %%I', schema, missing.what, role)
FROM app, (VALUES ('r', 4, 'SELECT, INSERT, UPDATE, DELETE ON TABLES'), ('S', 2, 'USAGE, SELECT ON SEQUENCES'),
                  ('f', 1, 'EXECUTE ON ROUTINES')) AS missing (kind, privileges, what)
WHERE missing.privileges > (
  SELECT count(*) FROM pg_default_acl AS d, aclexplode(d.defaclacl) AS acl
  WHERE d.defaclrole = current_user::regrole AND d.defaclnamespace = app.schema::regnamespace
    AND d.defaclobjtype = missing.kind::"char" AND acl.grantee = quote_ident(app.role)::regrole)
-- Taken back first: revoking a table's privilege revokes its columns' too.
ORDER BY 1 DESC
"""


@dataclass(frozen=True, slots=True)
class AppRole:
    """What makes a role unfit to serve."""

    superuser: bool
    is_owner: bool
    may_become_owner: bool
    owned_tables: tuple[str, ...]


def app_role(connection: BaseDatabaseWrapper, role: str) -> AppRole | None:
    """What the database says about ``role``; None when there is no such role."""
    with connection.cursor() as cursor:
        cursor.execute(ROLE, [role])
        row = cursor.fetchone()
        return AppRole(row[0], row[1], row[2], tuple(row[3])) if row else None


def differences(connection: BaseDatabaseWrapper, role: str) -> list[str]:
    """The GRANT and REVOKE statements that would give ``role`` exactly what it needs; reads only."""
    with connection.cursor() as cursor:
        rows = [(table, privilege, name) for table, (privilege, names) in COLUMNS.items() for name in names]
        tables, privileges, columns = (list(values) for values in zip(*rows, strict=True))
        cursor.execute(
            DIFFERENCES,
            {
                "role": role,
                "read_only": list(READ_ONLY),
                "by_column": list(COLUMNS),
                "tables": tables,
                "privileges": privileges,
                "columns": columns,
            },
        )
        return [statement for (statement,) in cursor.fetchall()]


def bring_up_to_date(connection: BaseDatabaseWrapper, role: str) -> tuple[list[str], list[str]]:
    """Run the differences in one transaction. Returns what ran, and what still differs after it.

    Something still differs when ``role`` has a privilege through PUBLIC or through another role.
    """
    statements = differences(connection, role)
    if not statements:
        return [], []
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        return statements, differences(connection, role)
