"""The read models read, and refuse every write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Permission
from django.core.management import call_command
from django.db import connection

from better_compute import conf
from better_compute.models import Lease, OutboxEvent, ReadModel, ReadOnlyTableError, WorkItem
from tests.admin import rows

READ_MODELS = [model for model in apps.get_app_config("compute").get_models() if issubclass(model, ReadModel)]


@pytest.mark.parametrize(
    "write",
    [
        lambda: WorkItem.objects.create(kind="a", key="b"),
        lambda: WorkItem.objects.filter(kind="a").update(attempts=0),
        lambda: WorkItem.objects.all().delete(),
        lambda: WorkItem.objects.bulk_create([WorkItem(kind="a", key="b")]),
        lambda: WorkItem.objects.get_or_create(kind="a", key="b"),
        lambda: WorkItem(kind="a", key="b").save(),
        lambda: Lease(name="shard:1").delete(),
        lambda: OutboxEvent.objects.select_for_update(),
    ],
)
def test_a_read_model_refuses_every_write(write: Callable[[], Any]) -> None:
    with pytest.raises(ReadOnlyTableError, match="is written by the core only, and its model only reads"):
        write()


@pytest.mark.django_db
@pytest.mark.parametrize("model", READ_MODELS, ids=lambda model: model._meta.model_name)
def test_a_read_model_matches_its_table(model: type[ReadModel]) -> None:
    assert list(model.objects.all()[:1]) is not None
    assert model._meta.managed is False


@pytest.mark.django_db
@pytest.mark.parametrize("model", READ_MODELS, ids=lambda model: model._meta.model_name)
def test_the_serving_role_may_read_what_the_pages_show(model: type[ReadModel]) -> None:
    role = conf.current().app_role
    with connection.cursor() as cursor:
        cursor.execute("SELECT has_table_privilege(%s, %s, 'SELECT')", [role, model._meta.db_table])
        assert cursor.fetchone() == (True,)


@pytest.mark.django_db
def test_a_read_model_reads_what_the_core_wrote() -> None:
    rows.outbox(1)

    event = OutboxEvent.objects.get()

    assert event.data == {"widgetId": "w1", "é": 1}
    assert event.xid.isdecimal()


@pytest.mark.django_db
def test_a_read_model_has_only_the_view_permission() -> None:
    permissions = Permission.objects.filter(content_type__app_label="compute", content_type__model="workitem")
    found = set(permissions.values_list("codename", flat=True))

    assert found == {"view_workitem"}


@pytest.mark.django_db
def test_migrations_are_complete() -> None:
    call_command("makemigrations", "compute", check=True, dry_run=True, verbosity=0)
