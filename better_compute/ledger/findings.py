"""What doctor says about migrations: drift, interruptions, what a removed app left, what goes round the ledger."""

from __future__ import annotations

from collections.abc import Iterator

from django.core.management import get_commands

from better_compute import conf
from better_compute.contract.findings import Finding
from better_compute.ledger import drift, run
from better_compute.ledger.executor import LedgerExecutor
from better_compute.store import indexes, ledger_rows, migration_lock

#: Most names that one finding lists.
NAMED = 5


def check(using: str) -> list[Finding]:
    """Every finding about the migrations of the database behind ``using``; reads only."""
    executor = run.reader(using)
    return [
        *_drift(executor),
        *_interrupted(executor),
        *_invalid_indexes(executor),
        *_orphans(executor),
        *_shadowed(),
    ]


def orphans(executor: LedgerExecutor) -> dict[str, int]:
    """Owners that are not hosted any more, and how many of their migrations stand in the schema."""
    hosted = {owner.name for owner in executor.owners.values()}
    counts: dict[str, int] = {}
    for row in ledger_rows.standings(executor.connection).values():
        if row.owner not in hosted and row.in_schema:
            counts[row.owner] = counts.get(row.owner, 0) + 1
    return counts


def _drift(executor: LedgerExecutor) -> Iterator[Finding]:
    found = drift.find(executor)
    if not found:
        return
    adoptable = all(each.kind in drift.ADOPTABLE for each in found)
    yield Finding(
        check="migrations.drift",
        severity="error",
        message=" ".join(str(each) for each in found[:NAMED]),
        fix="Run `manage.py compute_migrate --adopt`."
        if adoptable
        else "Do what is said of each; `manage.py compute_migrate --check` lists them all.",
        count=len(found),
    )


def _interrupted(executor: LedgerExecutor) -> Iterator[Finding]:
    # While a migrator is at work its own `started` row is no interruption.
    if migration_lock.holder(executor.connection) is not None:
        return
    names = [row.name for row in ledger_rows.standings(executor.connection).values() if row.action == "started"]
    if names:
        yield Finding(
            check="migrations.interrupted",
            severity="error",
            message=f"Started without a transaction and not ended: {', '.join(names[:NAMED])}.",
            fix="Run `manage.py compute_migrate`: it builds an interrupted concurrent index again; for other "
            "operations look first at what of it stands.",
            count=len(names),
        )


def _invalid_indexes(executor: LedgerExecutor) -> Iterator[Finding]:
    found = indexes.invalid(executor.connection)
    if found:
        named = ", ".join(f"{index} on {table}" for table, index in found[:NAMED])
        yield Finding(
            check="indexes.invalid",
            severity="warning",
            message=f"A concurrent build did not end and left what no query uses: {named}.",
            fix=f"Run `DROP INDEX CONCURRENTLY {found[0][1]}` as the owner, then migrate again or build it anew.",
            count=len(found),
        )


def _orphans(executor: LedgerExecutor) -> Iterator[Finding]:
    for owner, count in sorted(orphans(executor).items()):
        yield Finding(
            check="migrations.orphans",
            severity="warning",
            message=f"Module {owner!r} is not installed any more, but {count} of its migrations stand in the schema.",
            fix=f"Put it back into INSTALLED_APPS; to make its tables go, then run `manage.py compute_module remove "
            f"{owner} --yes` before you take it out.",
            count=count,
        )


def _shadowed() -> Iterator[Finding]:
    app = get_commands().get("migrate")
    if conf.current().wrap_migrate and app != "better_compute":
        yield Finding(
            check="migrations.shadowed",
            severity="warning",
            message=f"`manage.py migrate` is the command of {app!r}, so it goes round the lock, order and ledger.",
            fix="Put better_compute's apps before it in INSTALLED_APPS, or use `manage.py compute_migrate` only.",
        )
