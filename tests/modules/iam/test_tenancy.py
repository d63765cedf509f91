"""States of tenants in a tree, and how a subtree ends."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import pytest

from better_compute import DONE, SYNC_AGAIN, ComputeError, ErrorCode, compute
from better_compute.testing import advance_clock
from tests.modules.iam.conftest import OPERATOR, grant, may, poke, refused, revoke, rows, service, tenant, told, who
from tests.modules.tenancy.conftest import (
    Script,
    _things_hosted as _things_hosted,
    delete,
    hosting,
    in_thread,
    status,
    tick,
    tick_until_quiet,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


def sweep() -> None:
    advance_clock(timedelta(seconds=31))
    tick_until_quiet()


def test_a_suspended_organisation_suspends_what_is_below_and_nothing_else() -> None:
    compute.api.tenants.suspend(OPERATOR, {"tenantId": "org", "reason": "unpaid"})
    error = refused(lambda: poke(OPERATOR, "own"))
    assert error.reason == "TENANT_SUSPENDED"
    assert error.message == "The tenant 'org', which stands above 'own', is suspended: unpaid."
    assert poke(OPERATOR, "far").poked == "w1"
    compute.api.tenants.resume(OPERATOR, {"tenantId": "org", "reason": "paid"})
    assert poke(OPERATOR, "own", "w2").poked == "w2"


def test_rights_can_be_taken_but_not_given_in_a_suspended_tenant() -> None:
    bob = service("bob")
    given = grant("bob", "own", "viewer")
    compute.api.tenants.suspend(OPERATOR, {"tenantId": "org", "reason": "breach"})
    assert refused(lambda: grant("bob", "own", "owner")).reason == "TENANT_SUSPENDED"
    assert may(bob) == "yes"
    revoke(given.id)
    assert may(bob) == "NOT_FOUND"


@pytest.mark.parametrize("verb", ["suspend", "delete"])
def test_the_root_can_be_neither_suspended_nor_deleted(verb: str) -> None:
    error = refused(lambda: compute.api.tenants[verb](OPERATOR, {"tenantId": "root", "reason": "no"}))
    assert (error.code, error.reason) == (ErrorCode.INVALID_STATE, "ROOT_TENANT")


def test_a_deleted_organisation_takes_its_projects_with_it_from_below() -> None:
    poke(OPERATOR, "own")
    poke(OPERATOR, "sib", "w2")
    poke(OPERATOR, "far", "w3")
    delete("org")
    # At once, before any worker ran.
    assert refused(lambda: poke(OPERATOR, "own", "w4")).reason == "TENANT_DELETING"
    assert refused(lambda: tenant("new", "org")).reason == "TENANT_DELETING"
    tick()
    for _ in range(4):
        sweep()
    ended = [event["tenant"] for event in told("tenant.torn-down")]
    assert sorted(ended) == ["org", "own", "sib"]
    assert ended[-1] == "org"
    assert rows("SELECT tenant_id FROM plg_acme_widget") == [("far",)]


def test_a_project_that_is_blocked_blocks_its_organisation_by_name() -> None:
    def refuse(ctx: Any, tenant_id: str) -> Any:
        if tenant_id == "own":
            raise ValueError("stuck")
        return DONE

    with hosting(Script("one", refuse)):
        delete("org")
        tick_until_quiet()
        sweep()
        assert status("own").phase == "blocked"
        assert [blocker.module for blocker in status("org").blockers] == ["iam"]
        assert status("sib").phase == "torn_down"
        assert told("tenant.torn-down")[-1]["tenant"] == "sib"


class TestPeopleOfADyingTenant:
    """Whoever may have to mend what blocks the end can see it and act on it, until nothing does."""

    @pytest.fixture
    def owner(self) -> Any:
        owner = service("owner", home="own")
        grant("owner", "own", "owner")
        return owner

    def test_they_keep_their_rights_while_another_module_blocks_and_lose_them_with_the_end(self, owner: Any) -> None:
        stuck = {"own"}

        def refuse(ctx: Any, tenant_id: str) -> Any:
            if tenant_id in stuck:
                raise ComputeError(ErrorCode.IN_USE, "A disk is attached.", mend="Detach it with disks.detach.")
            return DONE

        with hosting(Script("disks", refuse)):
            delete("own")
            for _ in range(3):
                tick_until_quiet()
                sweep()
            seen = compute.api.tenants.deletion_status(owner, {"tenantId": "own"})
            assert seen.phase == "blocked"
            named = {blocker.module: (blocker.message, blocker.mend) for blocker in seen.blockers}
            assert named["disks"] == ("Module disks refuses: A disk is attached.", "Detach it with disks.detach.")
            # What removes a blocker may still be called, by its own people.
            erased = compute.api.plugins.script.things.erase
            assert erased(owner, {"tenantId": "own", "widgetId": "w"}).added == "w"
            stuck.clear()
            sweep()
        assert status("own").phase == "torn_down"
        error = refused(lambda: compute.api.tenants.deletion_status(owner, {"tenantId": "own"}))
        assert error.code is ErrorCode.NOT_FOUND
        assert len([event for event in told("tenant.torn-down") if event["tenant"] == "own"]) == 1

    def test_a_teardown_that_nothing_blocks_ends_them_at_once_and_without_the_sweep(self, owner: Any) -> None:
        delete("own")
        tick_until_quiet()
        assert status("own").phase == "torn_down"

    def test_a_dying_tenant_does_not_vanish_from_view(self, owner: Any) -> None:
        grant("owner", "org", "viewer")
        with hosting(Script("slow", lambda ctx, tenant_id: SYNC_AGAIN)):
            delete("own")
            tick_until_quiet()
            assert compute.api.tenants.get(owner, {"tenantId": "own"}).state == "deleting"
            listed = compute.api.tenant_tree.list(owner, {"tenantId": "org"}).items
            assert [node.id for node in listed] == ["own"]


@pytest.mark.parametrize(
    "hook", [lambda ctx, tenant_id: SYNC_AGAIN, lambda ctx, tenant_id: DONE], ids=["dying", "gone"]
)
def test_the_tree_shows_no_tenant_that_get_would_refuse(hook: Any) -> None:
    bob = service("bob")
    grant("bob", "root", "viewer", inherit=True)
    with hosting(Script("last", hook)):
        delete("own")
        tick_until_quiet()
        listed = compute.api.tenant_tree.list(bob, {"tenantId": "org"}).items
        assert [node.id for node in listed] == ["own", "sib"]
        for node in listed:
            assert compute.api.tenant_tree.get(bob, {"tenantId": node.id}) == node


def test_glass_that_is_broken_behind_the_last_hook_is_mended_before_the_end() -> None:
    """A call that a dying tenant admits adds to it after every hook was asked: the teardown asks them again."""
    answered: list[Any] = []
    service("guard", home="org")
    grant("guard", "org", actions=["compute:iam:break-glass"], inherit=True)

    def break_the_glass(ctx: Any, tenant_id: str) -> Any:
        if not answered:
            wanted = {"tenantId": "own", "reason": "fire"}
            breaking, answer = in_thread(lambda: compute.api.break_glass.activate(who("guard"), wanted))
            breaking.join(10)
            answered.extend(answer)
        return DONE

    with hosting(Script("last", break_the_glass)):
        delete("own")
        tick_until_quiet()
        assert answered[0].break_glass, answered
        assert status("own").phase == "torn_down"
    left = "SELECT count(*) FROM compute_iam_grants WHERE tenant_id = 'own' AND revoked_at IS NULL"
    assert rows(left) == [(0,)]
    # The log of what was broken outlives the tenant.
    (broken,) = compute.api.break_glass.list(OPERATOR, {"tenantId": "own"}).items
    assert (broken.reason, broken.state) == ("fire", "revoked")
    assert len([event for event in told("tenant.torn-down") if event["tenant"] == "own"]) == 1


def test_no_tenant_is_made_below_one_that_dies_in_either_order() -> None:
    """A deletion and a making that meet: the new tenant goes with its parent, or is refused."""
    start = threading.Barrier(2)

    def run(call: Any) -> Any:
        start.wait(10)
        return call()

    for number in range(4):
        parent = tenant(f"dying{number}", "root", "organisation").id
        making, made = in_thread(lambda parent=parent: run(lambda: tenant(f"{parent}-new", parent)))
        deleting, deleted = in_thread(lambda parent=parent: run(lambda: delete(parent)))
        making.join(20)
        deleting.join(20)
        assert deleted[0].state == "deleting", deleted
        if isinstance(made[0], ComputeError):
            assert made[0].reason == "TENANT_DELETING"
            assert rows("SELECT count(*) FROM compute_iam_tenants WHERE id = %s", f"{parent}-new") == [(0,)]
        tick_until_quiet(limit=200)
        for _ in range(2):
            sweep()
        assert status(parent).phase == "torn_down"
        if not isinstance(made[0], ComputeError):
            assert status(f"{parent}-new").phase == "torn_down"


def test_its_grants_tokens_services_and_roles_end_with_it() -> None:
    bob = service("bob", home="own")
    grant("bob", "own", "owner")
    grant("bob", "sib", "viewer")
    compute.api.roles.create(OPERATOR, {"tenantId": "own", "name": "r", "permits": ["*"]})
    compute.api.tokens.create(OPERATOR, {"tenantId": "own", "label": "t", "principal": "service/bob"})
    delete("own")
    tick_until_quiet()
    sweep()
    assert status("own").phase == "torn_down"
    assert rows("SELECT count(*) FROM compute_iam_grants WHERE tenant_id = 'own' AND revoked_at IS NULL") == [(0,)]
    assert rows("SELECT count(*) FROM compute_iam_tokens WHERE revoked_at IS NULL") == [(0,)]
    assert rows("SELECT count(*) FROM compute_iam_roles WHERE deleted_at IS NULL") == [(0,)]
    # A service account of the tenant is gone everywhere.
    assert may(bob, "sib") == "NOT_FOUND"


def test_a_torn_down_tenants_id_is_not_used_again() -> None:
    delete("own")
    tick_until_quiet()
    sweep()
    assert refused(lambda: tenant("own", "org")).code is ErrorCode.CONFLICT
    assert refused(lambda: poke(who("nobody"), "own")).code is ErrorCode.NOT_FOUND


def test_an_id_that_was_torn_down_before_it_had_a_place_is_not_used_either() -> None:
    delete("loose")
    tick_until_quiet()
    assert refused(lambda: tenant("loose", "org")).code is ErrorCode.CONFLICT
    assert rows("SELECT count(*) FROM compute_iam_tenants WHERE id = 'loose'") == [(0,)]


def test_many_grants_end_in_bounded_steps() -> None:
    service("bob")
    rows(
        "INSERT INTO compute_iam_grants (id, principal_id, effect, role, patterns, tenant_id, resource_type,"
        " resource_id, inherit, reason, break_glass, created_by, revoked_by)"
        " SELECT gen_random_uuid(), 'service/bob', 'permit', 'viewer', '[]', 'own', '', '', false, '', false, '', ''"
        " FROM generate_series(1, 250)"
    )
    tick_until_quiet()
    delete("own")
    left = []
    for _ in range(4):
        tick()
        left += rows("SELECT count(*) FROM compute_iam_grants WHERE revoked_at IS NULL AND tenant_id = 'own'")
    # The first pass sees that nobody else blocks.
    assert left == [(250,), (150,), (50,), (0,)]
    tick_until_quiet()
    assert status("own").phase == "torn_down"


class TestManyBelow:
    @pytest.fixture
    def below(self) -> int:
        """130 tenants below org, two of which are there already."""
        rows(
            "INSERT INTO compute_iam_tenants (id, parent_id, kind, name, path, depth)"
            " SELECT 'p' || n, 'org', 'project', 'p', '[]', 1 FROM generate_series(1, 128) AS n"
        )
        tick_until_quiet()
        return 130

    def states(self) -> dict[str, int]:
        return dict(
            rows(
                "SELECT here.state, count(*) FROM compute_tenant_states AS here JOIN compute_iam_tenants AS place"
                " ON place.id = here.tenant_id WHERE place.parent_id = 'org' GROUP BY here.state"
            )
        )

    def test_they_begin_to_be_deleted_in_bounded_steps(self, below: int) -> None:
        delete("org")
        tick()
        assert self.states() == {"deleting": 100}
        # The next pass follows at once, since rows were written.
        tick_until_quiet(limit=500)
        assert self.states() == {"torn_down": below}
        sweep()
        assert status("org").phase == "torn_down"

    def test_a_pass_that_merely_waits_takes_no_lock_and_few_statements(
        self, below: int, django_assert_max_num_queries: Any
    ) -> None:
        from better_compute.store import transaction
        from compute_modules.iam.tenancy import tenant_deleted

        ctx = compute.context("iam")
        for _ in range(2):
            with transaction.transaction():
                assert tenant_deleted(ctx, "org") == SYNC_AGAIN
        assert self.states() == {"deleting": below}
        with transaction.transaction(), django_assert_max_num_queries(4):
            assert tenant_deleted(ctx, "org") == SYNC_AGAIN
            locks = rows("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()")
        assert locks == [(0,)]
