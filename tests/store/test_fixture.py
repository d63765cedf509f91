"""A test database goes back to what migrations made, whatever a test did to it."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.db import InternalError, connection
from django.db.utils import IntegrityError

from better_compute.testing import clear_store, restore_baseline

pytestmark = pytest.mark.django_db(transaction=True)

#: More than a mebibyte of rows.
MANY = 40_000


def run(sql: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall()) if cursor.description else []


def publish() -> None:
    run("INSERT INTO compute_outbox (type, tenant_id, subject, data) VALUES ('t', 't', 's', '{}')")


def test_rows_that_migrations_made_are_there_again_with_their_ids() -> None:
    before = (dict(ContentType.objects.values_list("model", "id")), set(Permission.objects.values_list("id", "name")))
    Permission.objects.all().delete()
    ContentType.objects.filter(model="user").delete()
    ContentType.objects.create(app_label="zoo", model="ape")
    restore_baseline()
    assert before == (
        dict(ContentType.objects.values_list("model", "id")),
        set(Permission.objects.values_list("id", "name")),
    )


def test_rows_that_refer_to_each_other_are_gone() -> None:
    user = User.objects.create_user("mary")
    group = Group.objects.create(name="operators")
    user.groups.add(group)
    group.permissions.add(*Permission.objects.all()[:2])
    restore_baseline()
    assert not User.objects.exists()
    assert not Group.objects.exists()
    assert run("SELECT count(*) FROM auth_group_permissions") == [(0,)]


@pytest.mark.parametrize("go_back", [restore_baseline, clear_store])
def test_append_only_rows_are_gone_and_the_table_is_append_only_again(go_back: object) -> None:
    assert callable(go_back)
    publish()
    go_back()
    assert run("SELECT count(*) FROM compute_outbox") == [(0,)]
    publish()
    with pytest.raises((IntegrityError, InternalError), match="append-only"):
        run("DELETE FROM compute_outbox")
    with pytest.raises((IntegrityError, InternalError), match="append-only"):
        run("TRUNCATE compute_outbox_default")


def test_partitions_that_retention_made_are_gone_with_their_rows() -> None:
    before = run("SELECT name FROM compute_partitions('compute_outbox')")
    assert run("SELECT did FROM compute_retention_step('compute_outbox')") == [("MADE",)]
    publish()
    restore_baseline()
    assert run("SELECT name FROM compute_partitions('compute_outbox')") == before
    publish()
    assert run("SELECT count(*) FROM compute_outbox") == [(1,)]


@pytest.mark.parametrize("go_back", [restore_baseline, clear_store])
def test_the_clock_is_right_again(go_back: object) -> None:
    assert callable(go_back)
    run("UPDATE compute_clock SET clock_offset = interval '1 day', anchored_at = now()")
    go_back()
    assert run("SELECT clock_offset = interval '0', anchored_at FROM compute_clock") == [(True, None)]


def test_a_table_that_grew_is_small_again() -> None:
    run(
        "INSERT INTO compute_work (kind, key, shard, not_before, enqueued_at)"
        f" SELECT 'k', n::text, -1, now(), now() FROM generate_series(1, {MANY}) n"
    )
    restore_baseline()
    assert run("SELECT pg_relation_size('compute_work')") == [(0,)]


def test_the_ledgers_and_the_stores_identity_stay() -> None:
    kept = "SELECT (SELECT count(*) FROM compute_migrations), (SELECT incarnation FROM compute_store)"
    before = run(kept)
    restore_baseline()
    clear_store()
    assert run(kept) == before
    assert run("SELECT count(*) > 0 FROM django_migrations") == [(True,)]
