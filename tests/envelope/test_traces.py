"""One request id on everything a call leaves, and the headers of a method that will go."""

from __future__ import annotations

import dataclasses
import io
import json
import logging
from collections.abc import Iterator
from datetime import date
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings
from django.urls import include, path

from better_compute import ComputeRouter, Deprecation, RequestIdFilter, registry
from better_compute.envelope import clients, openapi
from better_compute.envelope.matrix import matrix
from tests.envelope.conftest import Caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What a handler with the filter writes."""
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(logging.Formatter("[%(request_id)s] %(message)s"))
    root = logging.getLogger()
    root.addHandler(handler)
    yield out
    root.removeHandler(handler)


def test_every_line_written_during_a_call_has_its_request_id(caller: Caller, lines: io.StringIO) -> None:
    caller.post("plugins/probe/probes/crash", {"tenantId": "t1"}, **{"X-Request-Id": "req-7"})
    logging.getLogger("somebody.else").warning("later")
    written = lines.getvalue()
    assert "[req-7] Call req-7 failed." in written
    assert "[-] later" in written


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("nothing/here", "Not Found"),
        ("plugins/probe/probes/refuse", "Conflict"),
        ("plugins/probe/probes/crash", "Internal Server Error"),
        ("plugins/probe/probes/peek", "Bad Request"),
    ],
)
def test_djangos_own_line_about_a_refusal_has_it_too(caller: Caller, lines: io.StringIO, path: str, told: str) -> None:
    body = {"tenantId": 1} if path.endswith("peek") else {"tenantId": "t1", "extra": "IN_USE"}
    caller.post(path, body, **{"X-Request-Id": "req-9"})
    assert f"[req-9] {told}: /api/compute/{path}" in lines.getvalue()
    assert "[-] " not in lines.getvalue()


def test_an_event_and_the_audit_record_have_it_too(caller: Caller) -> None:
    answer = caller.post("plugins/probe/probes/write", {"tenantId": "t1"}, **{"X-Request-Id": "req-8"})
    assert answer["X-Request-Id"] == "req-8"
    with connection.cursor() as cursor:
        for table in ("compute_outbox", "compute_audit_events"):
            cursor.execute(f"SELECT count(*) FROM {table} WHERE request_id = 'req-8'")
            assert cursor.fetchone() == (1,), table


@pytest.fixture
def deprecated() -> Iterator[None]:
    """Host acme with a count that will go."""
    specs = []
    for module in registry.current().modules:
        methods = tuple(
            dataclasses.replace(each, deprecated=Deprecation(date(2027, 1, 1), "widgets.tally", date(2027, 7, 1)))
            if each.dotted == "plugins.acme.widgets.count"
            else each
            for each in module.methods
        )
        specs.append(dataclasses.replace(module, methods=methods))
    with registry.override(*specs):
        urls = (path("api/compute/", include(ComputeRouter().urls)),)
        with override_settings(ROOT_URLCONF=urls):
            yield


@pytest.mark.usefixtures("deprecated")
class TestDeprecated:
    def test_its_answers_say_so(self, caller: Caller) -> None:
        answer = caller.get("plugins/acme/widgets/count?tenantId=t1")
        assert answer.status_code == 200
        assert answer["Deprecation"] == "@1798761600"
        assert answer["Sunset"] == "Thu, 01 Jul 2027 00:00:00 GMT"

    def test_its_refusals_say_so_too(self, caller: Caller) -> None:
        for answer in (caller.get("plugins/acme/widgets/count?tenantId=t2"), caller.get("plugins/acme/widgets/count")):
            assert answer.status_code in (400, 404)
            assert answer["Deprecation"] == "@1798761600"

    def test_others_say_nothing(self, caller: Caller) -> None:
        assert "Deprecation" not in caller.post("plugins/acme/widgets/poke", {"tenantId": "t1", "widgetId": "w"})

    def test_document_clients_and_matrix_say_so(self) -> None:
        document: dict[str, Any] = json.loads(openapi.encode())
        operations = document["paths"]["/plugins/acme/widgets/count"]
        assert all(each["deprecated"] for each in operations.values())
        assert "use widgets.tally. It may be gone from 2027-07-01." in operations["get"]["description"]
        notice = "Deprecated since 2027-01-01: use widgets.tally. It may be gone from 2027-07-01."
        assert all(each["x-compute"]["deprecated"] == notice for each in operations.values())
        assert f"widgets. @deprecated {notice.removeprefix('Deprecated ')} */" in clients.typescript(document)
        assert f'"""Count a tenant\'s widgets. {notice}"""' in clients.python(document)
        assert [row.method for row in matrix().methods if row.deprecated] == ["plugins.acme.widgets.count"]

    def test_the_table_of_the_matrix_says_what_to_use(self, capsys: pytest.CaptureFixture[str]) -> None:
        call_command("authz_matrix")
        assert "plugins.acme.widgets.count is deprecated: use widgets.tally.\n" in capsys.readouterr().out

    def test_a_shells_list_says_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        call_command("compute", "api", "--list", "plugins.acme")
        count, poke = capsys.readouterr().out.splitlines()[1:]
        assert "widgets. Deprecated since 2027-01-01: use widgets.tally." in count
        assert "Deprecated" not in poke


@pytest.mark.parametrize(
    ("use", "sunset", "told"),
    [(" ", None, "nothing to call"), ("a.b", date(2027, 1, 1), "not after"), ("a.b", date(2026, 1, 1), "not after")],
)
def test_a_deprecation_that_helps_nobody_is_refused(use: str, sunset: date | None, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Deprecation(date(2027, 1, 1), use, sunset)
