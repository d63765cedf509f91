"""Rules that only the graph of migrations shows: all broken ones are named before anything runs."""

from __future__ import annotations

import pytest

from tests.ledger.host import Host, table


def refused(host: Host, *texts: str) -> None:
    """``compute_migrate`` says all of ``texts``, ends with 2 and leaves the database empty."""
    err = host.manage("compute_migrate", exit_code=2).err
    for text in texts:
        assert text in err
    assert not host.has_table("django_migrations")


@pytest.mark.usefixtures("from_nothing")
def test_two_leaves_are_refused(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "0002_two", table("plg_acme_two"), [("plg_acme", "0001_one")])
    host.migration(folder, "0003_three", table("plg_acme_three"), [("plg_acme", "0001_one")])
    refused(host, "acme_app: (compute.E015)", "'0003_three' have no successor each")


@pytest.mark.usefixtures("from_nothing")
def test_a_number_used_twice_is_refused(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "0001_two", table("plg_acme_two"), [("plg_acme", "0001_one")])
    refused(host, "0001_two")


@pytest.mark.usefixtures("from_nothing")
def test_a_dependency_on_a_higher_number_is_refused(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "0001_one", table("plg_acme_one"), [("plg_acme", "0002_two")])
    host.migration(folder, "0002_two", table("plg_acme_two"))
    refused(host, "acme/0001_one depends on acme/0002_two, whose number is not lower.")


def test_check_tells_an_author_what_the_graph_breaks(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "0001_one", table("plg_acme_one"), [("plg_acme", "0002_two")])
    host.migration(folder, "0002_two", table("plg_acme_two"))
    err = host.manage("check", exit_code=1).err
    assert (
        "?: (compute.E017) acme/0001_one depends on acme/0002_two, whose number is not lower.\n"
        "\tHINT: Give the dependent the higher number: migrations of an owner run in the order of their numbers.\n"
    ) in err


@pytest.mark.usefixtures("from_nothing")
def test_a_dependency_on_a_core_migration_that_is_not_there_is_explained(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "0001_one", table("plg_acme_one"), [("compute", "0999_future")])
    refused(
        host,
        "INVALID_CONFIG",
        "acme/0001_one depends on compute.0999_future, which the installed 'compute' does not have (its latest is ",
        "use a release of 'acme' made for this one.",
    )


@pytest.mark.usefixtures("from_nothing")
def test_a_dependency_on_an_app_that_is_not_installed_is_explained(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "0001_one", table("plg_acme_one"), [("nosuch", "0001_initial")])
    refused(host, "acme/0001_one depends on nosuch.0001_initial, but no installed app has the label 'nosuch'.")


@pytest.mark.usefixtures("from_nothing")
def test_two_bad_modules_are_both_named(host: Host) -> None:
    for name in ("acme", "beta"):
        folder = host.plugin(name, m0001_one=table(f"plg_{name}_one"))
        host.migration(folder, "0001_one", table(f"plg_{name}_one"), [("compute", "0999_future")])
    refused(host, "acme/0001_one depends on compute.0999_future", "beta/0001_one depends on compute.0999_future")


@pytest.mark.usefixtures("from_nothing")
def test_a_badly_named_migration_is_refused_before_anything_runs(host: Host) -> None:
    folder = host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.migration(folder, "Second", table("plg_acme_two"), [("plg_acme", "0001_one")])
    refused(host, "Second")


@pytest.mark.usefixtures("from_nothing")
def test_a_compute_migration_comes_after_the_core_without_saying_so(host: Host) -> None:
    host.plugin("acme", m0001_one=table("plg_acme_one"))
    host.manage("compute_migrate", "--module", "acme")
    assert host.ledger()[0] == ("core/0001_ledger", "applied")


@pytest.mark.usefixtures("from_nothing")
def test_two_dependency_cycles_between_apps_are_refused(host: Host) -> None:
    first = host.plugin("acme", m0001_one=table("plg_acme_one"))
    second = host.plugin("beta", m0001_one=table("plg_beta_one"))
    host.migration(first, "0001_one", table("plg_acme_one"), [("plg_beta", "0001_one")])
    host.migration(second, "0001_one", table("plg_beta_one"), [("plg_acme", "0001_one")])
    refused(host, "The graph of migrations is broken")
