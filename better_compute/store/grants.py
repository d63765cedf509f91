"""What the role that serves may do: the least that serving needs, granted by the owner that migrates.

Tables that ``compute_append_only`` guards can be read and appended to, the ledger, Django's own record of
migrations and the store's identity only read; nothing can be truncated. Statements are derived from the
difference between what is and what is wanted, so an up-to-date database gets none.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.db import transaction
from django.db.backends.base.base import BaseDatabaseWrapper

#: Tables that only the migrating role writes.
READ_ONLY = ("compute_migrations", "compute_store", "django_migrations")

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
  SELECT c.oid, c.relname::text AS name, c.relkind
  FROM pg_class AS c, app
  WHERE c.relnamespace = app.schema::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND pg_has_role(c.relowner, 'USAGE')
),
wanted AS (
  SELECT oid, name, 'TABLE' AS kind, privilege,
         CASE WHEN name = ANY(%(read_only)s) THEN privilege = 'SELECT'
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
ORDER BY 1
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
        cursor.execute(DIFFERENCES, {"role": role, "read_only": list(READ_ONLY)})
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
