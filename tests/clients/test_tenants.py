"""Through both generated clients: ids of another tenant in any position, and answers that are lost after the commit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from better_compute import compute
from better_compute.client import ApiError, AsyncTransport, Options, Transport, attempts
from better_compute.contract.methods import MethodSpec
from better_compute.envelope.clients.python import snake
from better_compute.envelope.matrix import resource_type
from better_compute.store import transaction
from better_compute.store.work import WorkRow
from tests.clients.conftest import with_typescript
from tests.clients.proxy import Fault, faulty
from tests.clients.test_python import run
from tests.modules.iam.conftest import OPERATOR, by_grants as by_grants, grant, rows, service, tenant, world as world
from tests.modules.iam.samples import Belongings, sample
from tests.modules.iam.test_matrix import counts, methods, swaps

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


def token(name: str, home: str) -> str:
    """The secret of a token that reaches whatever its service account reaches."""
    ask = {"tenantId": home, "principal": f"service/{name}", "label": "clients", "everywhere": True}
    return str(compute.api.tokens.create(OPERATOR, ask).secret)


def call(client: Any, method: str, input: dict[str, Any], **options: Any) -> Any:
    """The client's function for a method, called."""
    found = client
    for step in method.split("."):
        found = getattr(found, snake(step))
    return found(**{snake(name): value for name, value in input.items()}, options=Options(**options))


@pytest.fixture
def swapped(world: None) -> list[tuple[str, str, dict[str, Any]]]:
    """A label, a method and an input that names, in one position, what another tenant has."""
    own = Belongings.make("own", "org")
    found = []
    for place, parent in (("far", "other"), ("sib", "org")):
        theirs = Belongings.make(place, parent)
        for spec in methods():
            for where, input in swaps(sample(spec, own), own, theirs):
                found.append((f"{spec.dotted}{where} of {place}", spec.dotted, input))
    named = {method for _, method, _ in found}
    assert {spec.dotted for spec in methods() if resource_type(spec) != "system"} <= named
    return found


@pytest.fixture
def owner(swapped: Any) -> str:
    """A token of an owner of the tenant."""
    service("caller", home="own")
    grant("caller", "own", "owner")
    return token("caller", "own")


def test_ids_of_another_tenant_are_not_there_through_the_python_client(
    owner: str, swapped: list[tuple[str, str, dict[str, Any]]], generated: Any, live_server: Any
) -> None:
    before = counts()
    met = {}
    with Transport(live_server.url, owner) as transport:
        client = generated.Client(transport)
        for label, method, input in swapped:
            met[label] = refusal(lambda method=method, input=input: call(client, method, input))
    assert {label: code for label, code in met.items() if code != "NOT_FOUND"} == {}
    assert counts() == before


def test_ids_of_another_tenant_are_not_there_under_asyncio(
    owner: str, swapped: list[tuple[str, str, dict[str, Any]]], generated: Any, live_server: Any
) -> None:
    async def calling() -> dict[str, str]:
        met = {}
        async with AsyncTransport(live_server.url, owner) as transport:
            client = generated.AsyncClient(transport)
            for label, method, input in swapped[::3]:
                try:
                    met[label] = f"answered {await call(client, method, input)!r}"
                except ApiError as error:
                    met[label] = error.code
        return met

    before = counts()
    met = run(calling())
    assert {label: code for label, code in met.items() if code != "NOT_FOUND"} == {}
    assert counts() == before


@pytest.mark.slow
def test_ids_of_another_tenant_are_not_there_through_the_typescript_client(
    owner: str, swapped: list[tuple[str, str, dict[str, Any]]], built: Path, live_server: Any
) -> None:
    before = counts()
    asked = [{"method": method, "input": input} for _, method, input in swapped]
    outcomes = with_typescript(built, live_server.url, owner, asked)
    wrong = {
        label: outcome
        for (label, _, _), outcome in zip(swapped, outcomes, strict=True)
        if outcome.get("code") != "NOT_FOUND"
    }
    assert wrong == {}
    assert counts() == before


def refusal(calling: Any) -> str:
    """The code that a call is refused with."""
    try:
        return f"answered {calling()!r}"
    except ApiError as error:
        return error.code


# Answers that are lost.

#: Mutations whose sample is refused by a rule: what it names is no break-glass grant.
REFUSED = {"breakGlass.end"}


def mutations() -> list[MethodSpec]:
    return [spec for spec in methods() if spec.kind == "mutation"]


@pytest.fixture
def operator(world: None) -> str:
    """A token that may do anything anywhere."""
    service("everything", home="root")
    grant("everything", "root", "owner", inherit=True)
    return token("everything", "root")


@pytest.fixture
def real(world: None) -> dict[str, dict[str, Any]]:
    """An input of each mutation that has an effect, each in a tenant of its own."""
    with transaction.transaction():
        transaction.enqueue([WorkRow("tenancy", "*", -1)])
    inputs = {}
    for number, spec in enumerate(mutations()):
        tenant(f"m{number}", "org")
        inputs[spec.dotted] = sample(spec, Belongings.make(f"m{number}", "org"))
    compute.api.tenants.suspend(OPERATOR, {"tenantId": inputs["tenants.resume"]["tenantId"], "reason": "why"})
    compute.api.principals.disable(OPERATOR, {**inputs["principals.enable"], "reason": "why"})
    inputs["tenantTree.create"]["parentId"] = "org"
    return inputs


def effects(method: str, request_id: str) -> int:
    """How often a call had its effect."""
    found = rows(
        "SELECT count(*) FROM compute_audit_events WHERE method = %s AND request_id = %s AND outcome = 'allowed'",
        method,
        request_id,
    )
    return int(found[0][0])


def every(first: Fault) -> Any:
    """Do it to the first attempt of each call."""
    return lambda path, attempt: first if attempt == 1 else None


@pytest.mark.parametrize("fault", ["lost", "cut", "gateway", "unsent"])
def test_every_mutation_has_its_effect_once_when_the_first_answer_is_lost(
    fault: Fault,
    operator: str,
    real: dict[str, dict[str, Any]],
    generated: Any,
    live_server: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # How long it waits is claimed elsewhere; the sooner it asks again, the harder for the server.
    monkeypatch.setattr(attempts, "FIRST_WAIT_S", 0.001)
    met = {}
    with faulty(live_server.url, every(fault)) as proxy, Transport(proxy.url, operator) as transport:
        client = generated.Client(transport)
        for number, (method, input) in enumerate(real.items()):
            id = f"once-{number}"
            try:
                call(client, method, input, request_id=id)
            except ApiError as error:
                met[method] = f"{error.code} {effects(method, id)}"
                continue
            met[method] = f"answered {effects(method, id)}"
        assert len(proxy.reached) == len(real) * (1 if fault == "unsent" else 2)
    assert {method: found for method, found in met.items() if found != "answered 1"}.keys() == REFUSED, met


@pytest.mark.slow
def test_every_mutation_has_its_effect_once_through_the_typescript_client(
    operator: str, real: dict[str, dict[str, Any]], built: Path, live_server: Any
) -> None:
    asked = [
        {"method": method, "input": input, "options": {"requestId": f"once-{number}"}}
        for number, (method, input) in enumerate(real.items())
    ]
    with faulty(live_server.url, every("lost")) as proxy:
        outcomes = with_typescript(built, proxy.url, operator, asked)
    met = {
        case["method"]: ("answered" if "answer" in outcome else str(outcome), effects(case["method"], f"once-{number}"))
        for number, (case, outcome) in enumerate(zip(asked, outcomes, strict=True))
    }
    assert {method: found for method, found in met.items() if found != ("answered", 1)}.keys() == REFUSED, met


def test_a_deletion_made_again_answers_its_caller_and_nobody_else(
    operator: str, generated: Any, live_server: Any
) -> None:
    """What it deleted is gone, so that only the kept answer tells whose it was."""
    role = {"roleId": "own/r"}
    compute.api.roles.create(OPERATOR, {"tenantId": "own", "name": "r", "permits": ["compute:acme:read"]})
    service("stranger", home="own")
    held = grant("stranger", "own", "owner")
    with (
        Transport(live_server.url, operator) as transport,
        Transport(live_server.url, token("stranger", "own")) as other,
    ):
        client, stranger = generated.Client(transport), generated.Client(other)
        first = call(client, "roles.delete", role, idempotency_key="k")
        assert call(client, "roles.delete", role, idempotency_key="k") == first
        assert refusal(lambda: call(client, "roles.delete", role, idempotency_key="other")) == "NOT_FOUND"
        assert refusal(lambda: call(client, "roles.delete", {"roleId": "own/x"}, idempotency_key="k")) == "NOT_FOUND"
        assert refusal(lambda: call(stranger, "roles.delete", role, idempotency_key="k")) == "NOT_FOUND"
        compute.api.roles.create(OPERATOR, {"tenantId": "own", "name": "s", "permits": ["compute:acme:read"]})
        call(stranger, "roles.delete", {"roleId": "own/s"}, idempotency_key="mine")
        compute.api.grants.revoke(OPERATOR, {"grantId": held.id})
        assert (
            refusal(lambda: call(stranger, "roles.delete", {"roleId": "own/s"}, idempotency_key="mine")) == "NOT_FOUND"
        )
