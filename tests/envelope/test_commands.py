"""``authz_matrix`` and ``compute_token``."""

from __future__ import annotations

import dataclasses
import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from better_compute import registry
from better_compute.access import Token
from better_compute.contract.methods import Resource
from better_compute.registry import table
from tests.envelope.conftest import make_user


def run(*arguments: str) -> str:
    out = io.StringIO()
    call_command(*arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


class TestMatrix:
    def test_it_lists_every_method_and_agrees_with_the_table(self) -> None:
        found = json.loads(run("authz_matrix", "--format", "json", "--check"))
        assert found["differences"] == []
        everywhere = dict.fromkeys(("parent", "sibling", "foreign"), "NOT_FOUND")
        may, may_not = (
            {**dict.fromkeys(("own", "below"), each), **everywhere} for each in ("allowed", "ACCESS_DENIED")
        )
        assert {
            "method": "plugins.acme.widgets.poke",
            "module": "acme",
            "plugin": True,
            "action": "compute:acme:poke",
            "kind": "mutation",
            "resource": "tenant",
            "deprecated": "",
            "roles": {"owner": may, "operator": may, "viewer": may_not},
        } in found["methods"]

    def test_a_method_without_a_row_fails_the_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(table, "rows", lambda: ())
        with pytest.raises(CommandError, match="difference"):
            run("authz_matrix", "--check")
        assert "undeclared: work.requeue: The module core hosts it" in run("authz_matrix")

    def test_a_row_without_a_method_fails_the_check(self, monkeypatch: pytest.MonkeyPatch) -> None:
        row = table.Row(method="pools.create", action="compute:pools:create", kind="mutation", resource="tenant")
        rows = table.rows()
        monkeypatch.setattr(table, "rows", lambda: (*rows, row))
        with pytest.raises(CommandError, match="1 difference"):
            run("authz_matrix", "--check")
        assert "missing: pools.create" in run("authz_matrix")

    @pytest.mark.parametrize(
        ("field", "value"),
        [("action", "compute:system:read"), ("kind", "query"), ("resource", lambda _: Resource("tenant", "t"))],
    )
    def test_a_row_that_says_otherwise_fails_the_check(self, field: str, value: Any) -> None:
        core, *others = registry.current().modules
        methods = tuple(
            dataclasses.replace(spec, **{field: value}) if spec.dotted == "work.requeue" else spec
            for spec in core.methods
        )
        with registry.override(dataclasses.replace(core, methods=methods), *others):
            with pytest.raises(CommandError, match="1 difference"):
                run("authz_matrix", "--check")
            assert f"Its {field} is" in run("authz_matrix")


@pytest.mark.django_db
class TestTokens:
    def test_a_created_token_calls_until_it_is_revoked(self, client: Client) -> None:
        make_user("mary", "compute:probe:read")
        secret = run("compute_token", "create", "--user", "mary", "--tenant", "t1", "--label", "ci").strip()

        def status() -> int:
            headers = {"Authorization": f"Bearer {secret}"}
            return client.get("/api/compute/plugins/probe/probes/peek?tenantId=t1", headers=headers).status_code

        assert status() == 200
        assert "is revoked" in run("compute_token", "revoke", str(Token.objects.get().pk))
        assert status() == 401

    def test_the_list_never_shows_a_secret(self) -> None:
        make_user("mary")
        secret = run("compute_token", "create", "--user", "mary", "--installation", "--label", "ops").strip()
        listed = run("compute_token", "list", "--format", "json")
        assert secret not in listed
        assert json.loads(listed)[0]["state"] == "live"
        assert secret not in run("compute_token", "list")
        assert run("compute_token", "list", "--tenant", "t1") == ""

    @pytest.mark.parametrize("end", ["2001-01-01T00:00:00Z", "tomorrow", "0", "2027-13-45T00:00:00Z"])
    def test_an_end_that_makes_no_sense_is_refused(self, end: str) -> None:
        make_user("mary")
        with pytest.raises(CommandError):
            run("compute_token", "create", "--user", "mary", "--tenant", "t1", "--label", "x", "--expires", end)
        assert not Token.objects.exists()

    def test_an_end_may_be_a_duration(self) -> None:
        make_user("mary")
        run("compute_token", "create", "--user", "mary", "--tenant", "t1", "--label", "x", "--expires", "90d")
        token = Token.objects.get()
        assert token.expires_at is not None
        assert (token.expires_at - token.created_at).days in (89, 90)

    @pytest.mark.parametrize(
        "arguments",
        [
            ("create", "--user", "nobody", "--tenant", "t1", "--label", "x"),
            ("create", "--user", "mary", "--tenant", "t 1", "--label", "x"),
            ("create", "--user", "mary", "--tenant", "t1", "--label", " "),
            ("create", "--user", "mary", "--label", "x"),
            ("revoke", "0d1a9f3e-7d1f-4a39-9f35-52b0a3a4f9aa"),
            ("revoke", "not-a-uuid"),
        ],
    )
    def test_what_cannot_be_done_is_said_in_one_line(self, arguments: tuple[str, ...]) -> None:
        make_user("mary")
        with pytest.raises(CommandError) as caught:
            run("compute_token", *arguments)
        assert "\n" not in str(caught.value).strip()
