"""Text that anybody may have written stays text: in every cell, on every page, of any length."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.test import Client

from better_compute.access import Token
from better_compute.admin import texts
from better_compute.models import AuditEvent, OutboxEvent
from tests.admin import rows

pytestmark = pytest.mark.django_db

MARKUP = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>"
TURNED = "\u202egnihtemos\u2066\u200b"
CONTROLS = "\x07\x1b[31m\r\x7f\x85"
LONG = "wide" * 2_500
HOSTILE = MARKUP + TURNED + CONTROLS + LONG


@pytest.fixture
def hostile(django_user_model: Any) -> None:
    """Hostile text in every column that takes text."""
    key = (MARKUP + TURNED + CONTROLS + LONG)[:512]
    rows.execute(
        "INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at, attempts, last_error, last_error_at)"
        " VALUES (%s, %s, -1, compute_now(), compute_now(), 9, %s, compute_now())",
        [HOSTILE[:200], key, HOSTILE[:4_000]],
    )
    rows.execute(
        "INSERT INTO compute_outbox (type, tenant_id, subject, data)"
        " VALUES (%s, %s, %s, jsonb_build_object(%s::text, %s::text))",
        [HOSTILE] * 5,
    )
    rows.execute(
        """
        INSERT INTO compute_audit_events (tenant_id, principal, method, action, resource_type, resource_id, code,
                                          request_id, outcome, canonical, salt, leaf_hash)
        VALUES (%s, %s, %s, %s, %s, %s, %s, %s, 'denied', convert_to(%s, 'UTF8'), '0123456789abcdef',
                '0123456789abcdef0123456789abcdef')
        """,
        [HOSTILE] * 9,
    )
    rows.execute(
        "INSERT INTO compute_idempotency"
        " (principal, tenant_id, method, key, input_hash, answer, request_id, expires_at)"
        " VALUES (%s, %s, %s, %s, '0123456789abcdef0123456789abcdef', %s, %s, compute_now())",
        [HOSTILE[:200], HOSTILE[:200], HOSTILE[:200], HOSTILE[:255], b"{}", HOSTILE],
    )
    rows.execute(
        "INSERT INTO compute_workers (id, role, host, pid, started_at, expires_at) VALUES"
        " (%s, 'controllers', %s, 1, compute_now(), compute_now() + interval '1 h')",
        [HOSTILE[:300], HOSTILE],
    )
    rows.execute(
        "INSERT INTO compute_leases (name, holder, epoch, acquired_at) VALUES"
        " ('shard:1', %s, 1, compute_now()), (%s, %s, 1, compute_now())",
        [HOSTILE[:300], "singleton:" + HOSTILE[:300], HOSTILE[:300]],
    )
    rows.execute(
        "INSERT INTO compute_processes (id, role, host, pid, fingerprint, modules, started_at, seen_at) VALUES"
        " (gen_random_uuid(), %s, %s, 1, %s, to_jsonb(ARRAY[%s]::text[]), compute_now(), compute_now())",
        [HOSTILE] * 4,
    )
    rows.history([HOSTILE[:200], "plain.kind"], hours=2)
    rows.pause("kind:" + HOSTILE[:200], HOSTILE)
    Token.objects.create(
        user=django_user_model.objects.create_user("u"), label=HOSTILE[:128], tenant_id=HOSTILE[:128], digest=b"x" * 32
    )


def pages() -> list[str]:
    return [
        "",
        "compute/workitem/",
        "compute/workitem/history/?span=1h",
        "compute/outboxevent/",
        f"compute/outboxevent/{OutboxEvent.objects.get().pk}/change/",
        "compute/auditevent/",
        f"compute/auditevent/{AuditEvent.objects.get().pk}/change/",
        "compute/idempotencyrecord/",
        "compute/worker/",
        "compute/lease/",
        "compute/process/",
        "compute/pause/",
        "compute/pause/new/",
        "compute/token/",
        f"compute/token/{Token.objects.get().pk}/change/",
        "compute/ratelimit/",
    ]


def test_no_page_lets_text_become_markup_or_turn_around_what_stands_beside_it(
    admin_client: Client, hostile: None
) -> None:
    for address in pages():
        response = admin_client.get(f"/admin/{address}")
        assert response.status_code == 200, address
        page = response.content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x07\x1b]", _seen(page)), address


def _seen(page: str) -> str:
    """What is drawn: attributes carry a row's own name back to the server as it is."""
    return re.sub(r'\s(?:href|value|title|aria-label|action)="[^"]*"', "", page)


def test_a_cell_of_a_list_is_not_as_long_as_its_text(admin_client: Client, hostile: None) -> None:
    for address in ("compute/workitem/", "compute/outboxevent/", "compute/auditevent/", "compute/pause/"):
        assert LONG not in _seen(admin_client.get(f"/admin/{address}").content.decode()), address


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("plain", "plain"),
        ("ключ ü 鍵 مفتاح 🔑", "ключ ü 鍵 مفتاح 🔑"),
        ("a\u202eb", "a\\u202eb"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x00\x1b", "\\x00\\x1b"),
        ("x" * 81, "x" * 79 + "…"),
        ("x" * 80, "x" * 80),
    ],
)
def test_a_line_shows_what_is_unseen(value: str, shown: str) -> None:
    assert texts.line(value) == shown


def test_a_whole_text_keeps_its_lines() -> None:
    assert texts.text("a\n\tb\x07" + "x" * 9_000) == "a\n\tb\\x07" + "x" * 9_000
