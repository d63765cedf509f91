"""Every method of the table and of every plugin, as every built-in role, towards one's own and other tenants."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client

from better_compute import ComputeError, ErrorCode, Principal, compute
from better_compute.contract.methods import MethodSpec
from better_compute.envelope import call
from better_compute.envelope.matrix import matrix as authz_matrix, resource_type
from compute_modules.iam.role_matrix import RoleMatrixPort
from compute_modules.iam.roles import BUILT_IN
from tests.modules.iam.conftest import OPERATOR, grant, rows, service
from tests.modules.iam.samples import Belongings, sample

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

#: Whose tenants a caller meets, seen from ``own``.
PLACES = {"own": "org", "org": "root", "sib": "org", "far": "other"}
#: How a place stands to ``own``, and to ``org`` when the role is granted there with `inherit`.
BESIDE = {"own": "own", "org": "parent", "root": "parent", "sib": "sibling", "far": "foreign", "other": "foreign"}
BELOW = {"org": "own", "own": "below", "sib": "below", "root": "parent", "far": "foreign", "other": "foreign"}


@pytest.fixture
def belongings(world: None) -> dict[str, Belongings]:
    return {place: Belongings.make(place, parent) for place, parent in PLACES.items()}


def methods() -> list[MethodSpec]:
    return list(compute.registry.methods.values())


def tries(spec: MethodSpec, caller: Principal, input: Any) -> ComputeError | None:
    """Call and roll back; what refused it."""
    try:
        call.call(spec, caller, input, dry_run=spec.kind == "mutation")
    except ComputeError as error:
        return error
    return None


def judged(error: ComputeError | None, denied: bool) -> str:
    """``allowed``, or how the authorizer refused; what a handler refuses later counts as allowed."""
    if not denied:
        return "allowed"
    assert error is not None
    return error.code.value


#: Reasons of refusals that a handler makes after the authorizer allowed the call.
HANDLERS_OWN = {"EXCEEDS_GIVER", "NOT_YOURSELF", "CEILING"}


def expected(spec: MethodSpec, role: str | None, reaches: bool) -> str:
    """What the table says: the action within the role, where the role reaches."""
    if resource_type(spec) == "system":
        return "ACCESS_DENIED"
    if role is None or not reaches:
        return "NOT_FOUND"
    return "allowed" if BUILT_IN[role].match(spec.action) else "ACCESS_DENIED"


def outcome(spec: MethodSpec, caller: Principal, input: Any) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM compute_audit_events WHERE outcome = 'denied'")
        before = cursor.fetchone()[0]
        error = tries(spec, caller, input)
        cursor.execute("SELECT count(*) FROM compute_audit_events WHERE outcome = 'denied'")
        denied = cursor.fetchone()[0] > before
    if error is not None and error.reason in HANDLERS_OWN:
        denied = False
    return judged(error, denied)


@pytest.mark.parametrize("inherit", [False, True], ids=["own-only", "and-below"])
@pytest.mark.parametrize("role", [None, *BUILT_IN])
def test_every_method_in_every_place_is_allowed_exactly_where_the_role_says(
    belongings: dict[str, Belongings], role: str | None, inherit: bool
) -> None:
    caller = service("caller")
    matrix = {row.method: row for row in authz_matrix().methods}
    granted_at = "org" if inherit else "own"
    reaches = {"org", "own", "sib"} if inherit else {"own"}
    if role is not None:
        grant("caller", granted_at, role, inherit=inherit)
    wrong = []
    for spec in methods():
        for place in PLACES:
            acts_on = PLACES[place] if spec.dotted == "tenantTree.setCeiling" else place
            wanted = expected(spec, role, acts_on in reaches)
            met = outcome(spec, caller, sample(spec, belongings[place]))
            if met != wanted:
                wrong.append(f"{spec.dotted} at {place}: {met} instead of {wanted}")
            if role is None:
                continue
            relation = (BELOW if inherit else BESIDE)[acts_on]
            relation = "foreign" if resource_type(spec) == "system" else relation
            printed = matrix[spec.dotted].roles[role][relation]
            if met != printed:
                wrong.append(f"{spec.dotted} at {place}: {met}, and the printed matrix says {printed} for {relation}")
    assert wrong == []


def test_the_installation_is_the_roots(belongings: dict[str, Belongings]) -> None:
    for role in BUILT_IN:
        caller = service(f"at-root-{role}")
        grant(f"at-root-{role}", "root", role)
        for spec in methods():
            if resource_type(spec) == "system":
                wanted = "allowed" if BUILT_IN[role].match(spec.action) else "ACCESS_DENIED"
                assert outcome(spec, caller, sample(spec, belongings["own"])) == wanted, (spec.dotted, role)
                (printed,) = (row for row in authz_matrix().methods if row.method == spec.dotted)
                assert printed.roles[role]["own"] == wanted, (spec.dotted, role)


def counts() -> dict[str, int]:
    """Rows of every table but the records of refused acts."""
    tables = rows(
        "SELECT relname FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'"
        " AND (relname LIKE 'compute\\_%' OR relname LIKE 'plg\\_%')"
        " AND relname NOT LIKE 'compute\\_audit%' AND relname <> 'compute_iam_version'"
    )
    return {table: rows(f"SELECT count(*) FROM {table}")[0][0] for (table,) in tables}


def swaps(value: Any, own: Belongings, other: Belongings, path: str = "") -> Iterator[tuple[str, Any]]:
    """The input with one id after the other put in its place by the other tenant's."""
    theirs = {getattr(own, name): getattr(other, name) for name in own.__slots__ if name not in ("parent", "child")}
    if isinstance(value, str):
        if value in theirs:
            yield path, theirs[value]
        return
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in items:
        for where, swapped in swaps(each, own, other, f"{path}/{key}"):
            copied = dict(value) if isinstance(value, dict) else list(value)
            copied[key] = swapped
            yield where, copied


#: Roles and service accounts of the tenants above are there to be named below.
NAMED_FROM_BELOW = {("grants.create", "/role"), ("grants.create", "/principal")}


def test_ids_of_another_tenant_in_any_position_are_not_there_and_nothing_is_written(
    belongings: dict[str, Belongings],
) -> None:
    """The caller owns its tenant; every id that it could name elsewhere reads as if there were no such thing."""
    caller = service("caller")
    grant("caller", "own", "owner")
    before = counts()
    tried, wrong = 0, []
    for spec in methods():
        for place in ("far", "sib", "org"):
            for where, input in swaps(sample(spec, belongings["own"]), belongings["own"], belongings[place]):
                if place == "org" and (spec.dotted, where) in NAMED_FROM_BELOW:
                    continue
                tried += 1
                error = tries(spec, caller, input)
                code = None if error is None else error.code
                if code is not ErrorCode.NOT_FOUND:
                    wrong.append(f"{spec.dotted}{where} of {place}: {error or 'allowed'}")
    assert wrong == []
    assert counts() == before
    assert tried > 100


def test_over_http_ids_of_another_tenant_in_any_position_are_not_there_and_nothing_is_written(
    belongings: dict[str, Belongings], client: Client
) -> None:
    """Every built-in and plugin method by its route, with a token of an owner; queries by GET too."""
    service("caller", home="own")
    grant("caller", "own", "owner")
    token = compute.api.tokens.create(
        OPERATOR, {"tenantId": "own", "principal": "service/caller", "label": "t", "everywhere": True}
    )
    headers = {"Authorization": f"Bearer {token.secret}"}
    before = counts()
    tried, wrong = 0, []
    for spec in methods():
        own = sample(spec, belongings["own"])
        for place in ("far", "sib"):
            for where, input in swaps(own, belongings["own"], belongings[place]):
                tried += 1
                answers = [client.post(f"/api/compute/{spec.path}", input, "application/json", headers=headers)]
                if spec.kind == "query" and all(isinstance(value, str) for value in input.values()):
                    answers.append(client.get(f"/api/compute/{spec.path}", input, headers=headers))
                for answer in answers:
                    if (answer.status_code, answer.json().get("code")) != (404, "NOT_FOUND"):
                        wrong.append(f"{spec.dotted}{where} of {place}: {answer.status_code} {answer.content!r:.200}")
    assert wrong == []
    assert {table: n for table, n in counts().items() if before.get(table) != n} == {}
    # Each method that names a tenant or something of one was among them.
    named = [spec.dotted for spec in methods() if any(swaps(sample(spec, belongings["own"]), *_two(belongings)))]
    assert {spec.dotted for spec in methods() if resource_type(spec) != "system"} <= set(named)
    assert tried > 70


def _two(belongings: dict[str, Belongings]) -> tuple[Belongings, Belongings]:
    return belongings["own"], belongings["far"]


def test_what_does_not_exist_and_what_is_anothers_read_the_same(belongings: dict[str, Belongings]) -> None:
    caller = service("caller")
    grant("caller", "own", "owner")
    for spec in methods():
        ids = ("grantId", "tokenId", "roleId", "principal")
        fields = [name for name in sample(spec, belongings["own"]) if name in ids]
        if len(fields) != 1 or "tenantId" in sample(spec, belongings["own"]) or resource_type(spec) == "system":
            continue
        (field,) = fields
        missing = {
            "grantId": "00000000-0000-4000-8000-000000000000",
            "tokenId": "00000000-0000-4000-8000-000000000000",
            "roleId": "far/none",
            "principal": "service/none",
        }[field]
        theirs = sample(spec, belongings["far"])
        of_another = tries(spec, caller, theirs)
        of_nobody = tries(spec, caller, {**theirs, field: missing})
        assert of_another is not None
        assert of_nobody is not None
        assert of_another.message.replace(theirs[field], "X") == of_nobody.message.replace(missing, "X")
        assert (of_another.code, of_another.mend) == (of_nobody.code, of_nobody.mend)


def test_lists_never_show_what_get_refuses(belongings: dict[str, Belongings]) -> None:
    caller = service("caller")
    grant("caller", "org", "owner")
    listed = compute.api.tenant_tree.list(caller, {"tenantId": "org"}).items
    assert listed == []
    grant("caller", "own", "viewer")
    listed = compute.api.tenant_tree.list(caller, {"tenantId": "org"}).items
    assert [tenant.id for tenant in listed] == ["own"]
    for tenant in listed:
        compute.api.tenant_tree.get(caller, {"tenantId": tenant.id})


def test_the_table_and_the_hosted_methods_agree() -> None:
    call_command("authz_matrix", "--check", stdout=io.StringIO())


def test_the_matrix_is_printed_with_a_letter_for_each_relation() -> None:
    out = io.StringIO()
    call_command("authz_matrix", stdout=out)
    lines = {line.split()[0]: line.split() for line in out.getvalue().splitlines() if line.strip()}
    assert lines["method"][-3:] == ["owner", "operator", "viewer"]
    assert lines["grants.create"][-3:] == ["AA---", "DD---", "DD---"]
    assert lines["tenants.get"][-3:] == ["AA---", "AA---", "AA---"]
    assert lines["plugins.acme.widgets.poke"][-3:] == ["AA---", "AA---", "DD---"]
    assert lines["system.version"][-3:] == ["ADDDD", "ADDDD", "ADDDD"]
    assert "own, below, parent, sibling, foreign" in out.getvalue()


def test_a_role_that_reaches_another_tenant_or_a_method_of_nobody_fails_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def outcome(port: RoleMatrixPort, role: str, action: str, relation: str, *, installation: bool) -> str:
        if action == "compute:acme:poke":
            return "ACCESS_DENIED"
        return (
            "allowed"
            if (action, role, relation) == ("compute:acme:read", "viewer", "sibling")
            else "allowed" * (relation == "own")
        )

    monkeypatch.setattr(RoleMatrixPort, "outcome", outcome)
    found = {(each.method, each.what): each.detail for each in authz_matrix().differences}
    assert found == {
        ("plugins.acme.widgets.poke", "unreachable"): "No role holds compute:acme:poke in its own tenant.",
        ("plugins.acme.widgets.count", "leaks"): "The role viewer may do it in a sibling tenant.",
    }
    with pytest.raises(CommandError, match=r"2 difference\(s\)"):
        call_command("authz_matrix", "--check", stdout=io.StringIO())
