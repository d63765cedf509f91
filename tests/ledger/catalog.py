"""A database's schema as PostgreSQL's catalog tells it, one line an object, to be compared."""

from __future__ import annotations

from tests.ledger.host import Host

#: Columns in order of name: one that was added later stands last in its table, and that is no difference.
SNAPSHOT = """
WITH here AS (
  SELECT n.oid FROM pg_namespace n WHERE n.nspname = %(schema)s
), named AS (
  SELECT c.* FROM pg_class c JOIN here ON here.oid = c.relnamespace WHERE c.relname LIKE %(like)s
)
SELECT format('%%s %%s %%s', c.relkind, c.relname, c.reloptions) FROM named c
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
UNION ALL
SELECT format('column %%s.%%s %%s not null %%s default %%s identity %%s generated %%s collation %%s', c.relname,
              a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid),
              a.attidentity, a.attgenerated, a.attcollation::regcollation)
FROM named c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')
UNION ALL
SELECT format('constraint %%s on %%s: %%s', k.conname, c.relname, pg_get_constraintdef(k.oid))
FROM named c JOIN pg_constraint k ON k.conrelid = c.oid
UNION ALL
SELECT format('index on %%s: %%s valid %%s', c.relname, pg_get_indexdef(i.indexrelid), i.indisvalid)
FROM named c JOIN pg_index i ON i.indrelid = c.oid
UNION ALL
SELECT format('trigger on %%s: %%s enabled %%s', c.relname, pg_get_triggerdef(t.oid), t.tgenabled)
FROM named c JOIN pg_trigger t ON t.tgrelid = c.oid AND NOT t.tgisinternal
UNION ALL
SELECT format('partition %%s of %%s: %%s', c.relname, h.inhparent::regclass, pg_get_expr(c.relpartbound, c.oid))
FROM named c JOIN pg_inherits h ON h.inhrelid = c.oid
UNION ALL
SELECT format('function %%s', pg_get_functiondef(p.oid)) FROM pg_proc p JOIN here ON here.oid = p.pronamespace
WHERE p.proname LIKE %(like)s AND p.prokind IN ('f', 'p')
UNION ALL
SELECT format('type %%s %%s', t.typname, t.typtype) FROM pg_type t JOIN here ON here.oid = t.typnamespace
WHERE t.typname LIKE %(like)s AND t.typtype IN ('d', 'e')
UNION ALL
SELECT format('grant on %%s: %%s', c.relname,
              (SELECT string_agg(acl::text, ' ' ORDER BY acl::text) FROM unnest(c.relacl) AS acl))
FROM named c WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
ORDER BY 1
"""


def snapshot(host: Host, like: str = "%", schema: str = "public") -> list[str]:
    """Every table, column, constraint, index, trigger, partition, function and grant, one line each."""
    with host.connect() as connection:
        rows = connection.execute(SNAPSHOT, {"like": like, "schema": schema}).fetchall()
    return [line for (line,) in rows]
