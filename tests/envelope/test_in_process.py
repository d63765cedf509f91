"""``compute.api``: the same envelope without HTTP."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from django.db import transaction

from better_compute import (
    DONE,
    ComputeError,
    ErrorCode,
    Outcome,
    Principal,
    ReconcileContext,
    Reconciler,
    compute,
    registry,
)
from better_compute.api import System
from better_compute.contract.module import ModuleSpec
from better_compute.store import transaction as store_transaction
from better_compute.store.work import WorkRow
from example_project.acme_widgets.api import Poked, PokeInput, Widgets
from example_project.acme_widgets.models import Widget
from tests.envelope.conftest import EVERYTHING, audit_rows, count_rows, grown, make_user
from tests.envelope.probe import tenant as probe_tenant

pytestmark = pytest.mark.django_db(transaction=True)

POKE = {"tenantId": "t1", "widgetId": "w1"}


@pytest.fixture
def mary(transactional_db: None) -> Principal:
    return Principal(id="token/mary", kind="token", tenant_id="t1", user=make_user("mary", *EVERYTHING))


class Calling(Reconciler):
    """Calls a method from inside its run."""

    name = "t.calling"
    refused: ClassVar[list[ComputeError]] = []

    def __init__(self, principal: Principal) -> None:
        self._principal = principal

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        try:
            compute.api.plugins.acme.widgets.poke(self._principal, POKE)
        except ComputeError as error:
            self.refused.append(error)
        return DONE


def test_a_call_inside_a_run_is_refused_and_afterwards_is_not(mary: Principal) -> None:
    spec = ModuleSpec("t", "tests", "t", reconcilers=(Calling(mary),))
    before = count_rows()
    with registry.override(*registry.current().modules, spec):
        with store_transaction.transaction():
            store_transaction.enqueue([WorkRow("t.calling", "k", -1)])
        assert compute.jobs["t.calling"].tick() == 1
        assert grown(before) == {}
        compute.api.plugins.acme.widgets.poke(mary, POKE)
    [error] = Calling.refused
    assert error.code is ErrorCode.INVALID_STATE
    assert error.reason == "INSIDE_RUN"
    assert str(error) == (
        "INVALID_STATE: This is a run of t.calling, and a call commits for itself, "
        "without the fence of the run's lease. "
        "Inside ctx.sql.transaction(), call the function that does the work instead."
    )


def test_a_method_is_called_by_name_with_a_struct_or_a_mapping(mary: Principal) -> None:
    before = count_rows()
    poke = compute.api.plugins.acme.widgets.poke
    assert poke(mary, PokeInput(tenant_id="t1", widget_id="w1")) == Poked(poked="w1")
    assert poke(mary, {"tenantId": "t1", "widgetId": "w2"}) == Poked(poked="w2")
    assert grown(before) == {
        "plg_acme_widget": 2,
        "compute_outbox": 2,
        "compute_work": 1,
        "compute_audit_events": 2,
    }


def test_a_method_is_called_by_its_function_with_types(mary: Principal) -> None:
    poked: Poked = compute.call(Widgets.poke, mary, PokeInput(tenant_id="t1", widget_id="w1"))
    assert poked.poked == "w1"
    assert compute.call(System.version, Principal(id="job", kind="internal")).core


def test_a_function_that_no_module_hosts_is_refused(mary: Principal) -> None:
    with pytest.raises(ComputeError, match="offered by 0 hosted methods") as caught:
        compute.call(probe_tenant, mary)  # type: ignore[arg-type]
    assert caught.value.code == "INVALID_CONFIG"


def test_names_may_be_camel_or_snake_and_attributes_or_keys(mary: Principal) -> None:
    probes = compute.api["plugins"]["probe"]["probes"]
    assert probes["getOrCreate"] is compute.api.plugins.probe.probes.get_or_create
    assert "getOrCreate" in dir(probes)
    assert {"plugins", "system", "work"} <= set(dir(compute.api))
    assert {"acme", "probe"} <= set(compute.api.plugins)
    assert repr(compute.api.system.version) == "<compute.api.system.version>"


@pytest.mark.parametrize("missing", ["nothing", "then", "__wrapped__"])
def test_a_name_that_is_not_hosted_is_an_attribute_error(missing: str) -> None:
    with pytest.raises(AttributeError):
        getattr(compute.api.plugins, missing)
    with pytest.raises((KeyError, AttributeError)):
        compute.api[missing]


def test_the_tree_follows_the_registry(mary: Principal) -> None:
    specs = [spec for spec in registry.current().modules if spec.name != "acme"]
    with registry.override(*specs):
        assert "acme" not in compute.api.plugins
    assert "acme" in compute.api.plugins


@pytest.mark.parametrize(
    ("input", "code"),
    [
        ({"tenantId": "t2", "widgetId": "w1"}, "NOT_FOUND"),
        ({"tenantId": "t1", "widgetId": "W!"}, "INVALID_INPUT"),
        ({"tenant_id": "t1", "widgetId": "w"}, "INVALID_INPUT"),
        (None, "INVALID_INPUT"),
    ],
)
def test_a_refusal_is_a_compute_error(mary: Principal, input: Any, code: str) -> None:
    with pytest.raises(ComputeError) as caught:
        compute.api.plugins.acme.widgets.poke(mary, input)
    assert caught.value.code == code
    assert not Widget.objects.exists()


def test_a_defect_is_a_compute_error_with_its_cause(mary: Principal) -> None:
    with pytest.raises(ComputeError) as caught:
        compute.api.plugins.probe.probes.crash(mary, {"tenantId": "t1"})
    assert caught.value.code == "INTERNAL_ERROR"
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_call_inside_the_hosts_transaction_is_refused(mary: Principal) -> None:
    before = count_rows()
    with pytest.raises(ComputeError, match="A transaction is open") as caught, transaction.atomic():
        compute.api.plugins.acme.widgets.poke(mary, POKE)
    assert (caught.value.code, caught.value.reason) == ("INVALID_STATE", "TRANSACTION_OPEN")
    assert grown(before) == {}


def test_a_call_inside_another_call_is_refused(mary: Principal) -> None:
    with pytest.raises(ComputeError, match="another call's"), store_transaction.transaction():
        compute.api.plugins.acme.widgets.poke(mary, POKE)


def test_an_inactive_user_is_refused(mary: Principal) -> None:
    mary.user.is_active = False
    with pytest.raises(ComputeError) as caught:
        compute.api.plugins.acme.widgets.poke(mary, POKE)
    assert caught.value.code == "UNAUTHENTICATED"


def test_code_of_this_process_is_trusted_within_its_tenant(transactional_db: None) -> None:
    poke = compute.api.plugins.acme.widgets.poke
    assert poke(Principal(id="job", kind="internal"), POKE).poked == "w1"
    with pytest.raises(ComputeError) as caught:
        poke(Principal(id="job", kind="internal", tenant_id="t2"), POKE)
    assert caught.value.code == "NOT_FOUND"
    assert audit_rows()[0]["principal"] == "job"


@pytest.mark.django_db(transaction=False)
class TestInsideATestCase:
    """A module author's ordinary ``django_db`` test keeps one transaction open, and may call all the same."""

    @pytest.fixture(autouse=True)
    def _in_test_case(self, db: None) -> None:
        pass

    def test_queries_and_mutations_may_follow_each_other(self) -> None:
        job = Principal(id="job", kind="internal")
        widgets = compute.api.plugins.acme.widgets
        assert widgets.count(job, {"tenantId": "t1"}).count == 0
        widgets.poke(job, POKE)
        assert widgets.count(job, {"tenantId": "t1"}).count == 1
