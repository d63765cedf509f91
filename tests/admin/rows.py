"""Rows of the core's tables as their writers leave them, made by SQL on the test's own connection."""

from __future__ import annotations

from typing import Any

from django.db import connection


def execute(sql: str, params: list[Any] | None = None) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)


def work(number: int, *, kind: str = "acme.widgets", shard: str = "-1", failing_each: int = 0) -> None:
    """Keys ``<kind>-000001`` and on, a third of them due in the future; every ``failing_each``-th has failed."""
    execute(
        f"""
        INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at, attempts, last_error, last_error_at)
        SELECT %s, %s || '-' || lpad(g::text, 6, '0'), {shard},
               compute_now() + CASE WHEN g %% 3 = 0 THEN interval '1 hour' ELSE interval '-5 minutes' END,
               compute_now() - interval '10 minutes',
               CASE WHEN failed THEN 3 ELSE 0 END,
               CASE WHEN failed THEN 'TimeoutError: no answer in 5 s' || E'\\nsecond line' END,
               CASE WHEN failed THEN compute_now() - g * interval '1 s' END
        FROM generate_series(1, %s) g CROSS JOIN LATERAL (SELECT %s > 0 AND g %% GREATEST(%s, 1) = 0 AS failed) f
        """,
        [kind, kind, number, failing_each, failing_each],
    )


def members() -> None:
    """Two controllers, one of them expired, and a scheduler, holding shards and a singleton."""
    execute(
        """
        INSERT INTO compute_workers (id, role, host, pid, started_at, expires_at, inflight) VALUES
          ('w-1', 'controllers', 'web-1', 11, compute_now() - interval '3 h', compute_now() + interval '1 h', '[]'),
          ('w-2', 'controllers', 'web-2', 12, compute_now() - interval '2 d', compute_now() - interval '40 s',
           '[["acme.widgets", "t1"]]'),
          ('scheduler/w-3', 'scheduler', 'web-1', 13, compute_now(), compute_now() + interval '1 h', '[]');
        INSERT INTO compute_leases (name, holder, epoch, acquired_at)
        SELECT 'shard:' || g, CASE WHEN g < 10 THEN NULL WHEN g < 128 THEN 'w-1' ELSE 'w-2' END, 4,
               compute_now() - interval '10 minutes' FROM generate_series(0, 255) g;
        INSERT INTO compute_leases (name, holder, epoch, acquired_at)
        SELECT 'scheduler/shard:' || g, 'scheduler/w-3', 1, compute_now() FROM generate_series(0, 255) g;
        INSERT INTO compute_leases (name, holder, epoch, acquired_at) VALUES
          ('singleton:acme.widgets', 'w-1', 7, compute_now() - interval '3 h'), ('singleton:idle.one', NULL, 2, NULL);
        INSERT INTO compute_processes (id, role, host, pid, fingerprint, modules, started_at, seen_at) VALUES
          ('6c1f5f3e-0000-4000-8000-000000000001', 'api', 'web-1', 10, repeat('ab', 32), '["core", "acme"]',
           compute_now() - interval '3 h', compute_now());
        """
    )


def outbox(number: int, tenants: int = 100) -> None:
    """Events, spread over tenants t0, t1 and so on."""
    execute(
        """
        INSERT INTO compute_outbox (type, tenant_id, subject, data)
        SELECT 'acme.widget-poked', 't' || g %% %s, 'widget/w' || g, jsonb_build_object('widgetId', 'w' || g, 'é', 1)
        FROM generate_series(1, %s) g
        """,
        [tenants, number],
    )


def audit(number: int, tenants: int = 100) -> None:
    """Acts, every 500th denied."""
    execute(
        """
        INSERT INTO compute_audit_events (at, tenant_id, principal, method, action, resource_type, resource_id, outcome,
                                          code, request_id, canonical, salt, leaf_hash)
        SELECT compute_now() - g * interval '1 s', 't' || g %% %s, 'user/1', 'plugins.acme.widgets.poke',
               'compute:acme:poke', 'tenant', 't' || g %% %s, CASE WHEN g %% 500 = 0 THEN 'denied' ELSE 'allowed' END,
               CASE WHEN g %% 500 = 0 THEN 'ACCESS_DENIED' END, 'r' || g, '{"action":"compute:acme:poke"}',
               '0123456789abcdef', '0123456789abcdef0123456789abcdef'
        FROM generate_series(1, %s) g
        """,
        [tenants, tenants, number],
    )


def history(kinds: list[str], *, hours: int = 48, gap: tuple[int, int] = (200, 260)) -> None:
    """A sample a minute of queues that swell and drain, each in its own rhythm; none in the minutes of ``gap``."""
    execute(
        """
        INSERT INTO compute_queue_history (at, kinds, due, future, failing, oldest_due_s)
        SELECT compute_now() - minute * interval '1 minute', %s,
               (SELECT array_agg(GREATEST(0, 40 * k * (1 + sin(minute / (20.0 + 7 * k))))::int ORDER BY k)
                FROM generate_series(1, %s) k),
               (SELECT array_agg(5 * k ORDER BY k) FROM generate_series(1, %s) k),
               (SELECT array_agg(CASE WHEN minute %% 300 < 40 AND k %% 5 = 1 THEN 12 * k ELSE 0 END ORDER BY k)
                FROM generate_series(1, %s) k),
               (SELECT array_agg(30 * k ORDER BY k) FROM generate_series(1, %s) k)
        FROM generate_series(1, %s) minute WHERE minute NOT BETWEEN %s AND %s
        """,
        [sorted(kinds), *[len(kinds)] * 4, hours * 60, *gap],
    )


def idempotency(number: int, principals: int = 50, prefix: str = "key") -> None:
    """Kept answers, spread over principals user/0, user/1 and so on."""
    execute(
        """
        INSERT INTO compute_idempotency (principal, tenant_id, method, key, input_hash, answer, request_id, expires_at)
        SELECT 'user/' || g %% %s, 't' || g %% 100, 'plugins.acme.widgets.poke', %s || '-' || g,
               '0123456789abcdef0123456789abcdef', '{}', 'r' || g, compute_now() + g * interval '1 s'
        FROM generate_series(1, %s) g
        """,
        [principals, prefix, number],
    )


def pause(scope: str, reason: str = "incident 7") -> None:
    """Something paused."""
    execute(
        "INSERT INTO compute_pauses (scope, reason, paused_by, paused_at)"
        " VALUES (%s, %s, 'user/1', compute_now() - interval '20 minutes')",
        [scope, reason],
    )


def analyze(*tables: str) -> None:
    """Tell the planner how big the tables have become."""
    for table in tables:
        execute(f"ANALYZE {table}")
