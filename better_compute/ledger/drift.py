"""Where the ledger, Django's table and the shipped files disagree; found before anything runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from django.db.migrations import Migration

from better_compute.ledger import checksum, made
from better_compute.ledger.errors import Drifted, Refused
from better_compute.ledger.executor import LedgerExecutor
from better_compute.ledger.owners import Owner
from better_compute.store import ledger_rows
from better_compute.store.ledger_rows import Standing

Node = tuple[str, str]
Kind = Literal["edited", "missing", "inserted", "unrecorded", "unapplied", "forgotten"]

#: Kinds that --adopt heals: someone migrated around the ledger, and the schema is as Django says.
ADOPTABLE: frozenset[Kind] = frozenset({"unrecorded", "unapplied"})


@dataclass(frozen=True, slots=True)
class Drift:
    """One disagreement. ``str()`` is the line an operator reads, with the mend."""

    kind: Kind
    name: str
    node: Node
    text: str

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


def find(executor: LedgerExecutor) -> list[Drift]:
    """Every disagreement about the hosted modules' migrations, in the order of their names."""
    standing = ledger_rows.standings(executor.connection)
    recorded = set(executor.recorder.applied_migrations())
    found: list[Drift] = []
    for owner in executor.owners.values():
        own = {key[1]: m for key, m in executor.loader.disk_migrations.items() if key[0] == owner.label}
        ledger = {row.name.partition("/")[2]: row for row in standing.values() if row.owner == owner.name}
        applied = {name for app, name in recorded if app == owner.label}
        found += _shipped(owner, own, ledger)
        found += _missing(owner, own, ledger)
        found += _recorded(executor, owner, own, ledger, applied)
    return sorted(found, key=lambda drift: drift.name)


def refuse(executor: LedgerExecutor) -> None:
    """Raise Drifted when anything disagrees."""
    found = find(executor)
    if found:
        raise Drifted([str(drift) for drift in found])


def adopt(executor: LedgerExecutor) -> list[str]:
    """Write what happened around the ledger into it; returns the names.

    Raises
    ------
    Drifted
        When something disagrees that adopting cannot heal; nothing is written then.
    """
    found = find(executor)
    rest = [str(drift) for drift in found if drift.kind not in ADOPTABLE]
    if rest:
        raise Drifted(rest)
    if found and not ledger_rows.exists(executor.connection):
        raise Drifted([str(drift) for drift in found])
    for drift in found:
        action: ledger_rows.Action = "adopted" if drift.kind == "unrecorded" else "reverted"
        executor.recorder.append(*drift.node, action, "done outside the ledger")
    return [drift.name for drift in found]


def rehash(executor: LedgerExecutor, name: str, reason: str) -> None:
    """Accept the shipped source of ``name`` as it is now, and say why in the ledger.

    For deliberate reformatting only: the database keeps what the old source made.

    Raises
    ------
    Refused
        When ``name`` is not an applied migration whose source changed, or no reason is given.
    """
    if not reason.strip():
        raise Refused(f"Rehashing {name} needs a reason.", mend='Give one: --reason "reformatted with ruff".')
    edited = {drift.name: drift for drift in find(executor) if drift.kind == "edited"}
    if name not in edited:
        raise Refused(
            f"{name} is not an applied migration whose source changed.",
            mend=f"Changed are: {', '.join(edited) or 'none'}.",
        )
    executor.recorder.append(*edited[name].node, "rehashed", reason.strip())


def _shipped(owner: Owner, own: Mapping[str, Migration], ledger: Mapping[str, Standing]) -> Iterator[Drift]:
    in_schema = [name for name, row in ledger.items() if row.in_schema]
    last = max(in_schema, default="")
    for name, migration in own.items():
        row = ledger.get(name)
        if row is not None and row.in_schema:
            if row.checksum != checksum.of(migration):
                yield Drift(
                    "edited",
                    row.name,
                    (owner.label, name),
                    f"its source is not the one that was applied by version {row.version}. Restore it and put the "
                    "change into the next number; if only its layout changed, compute_migrate --rehash it with a "
                    "--reason.",
                )
        elif row is None and name < last and not migration.replaces:
            yield Drift(
                "inserted",
                owner.ledger_name(name),
                (owner.label, name),
                f"it is new, but {owner.ledger_name(last)} with a higher number is applied. Give it the next number.",
            )


def _missing(owner: Owner, own: Mapping[str, Migration], ledger: Mapping[str, Standing]) -> Iterator[Drift]:
    replaced = {name for migration in own.values() for app, name in migration.replaces if app == owner.label}
    fresh = {name: migration for name, migration in own.items() if name not in ledger}
    for name, row in ledger.items():
        if not row.in_schema or name in own or name in replaced:
            continue
        twin = next(
            (new for new, m in fresh.items() if new[5:] == name[5:] or checksum.of(m) == row.checksum),
            None,
        )
        what = f"it is applied, but shipped as {owner.ledger_name(twin)}" if twin else "it is applied, but not shipped"
        yield Drift(
            "missing",
            row.name,
            (owner.label, name),
            f"{what}. Restore the file under this name; to make a module's tables go, use compute_module remove.",
        )


def _recorded(
    executor: LedgerExecutor,
    owner: Owner,
    own: Mapping[str, Migration],
    ledger: Mapping[str, Standing],
    applied: set[str],
) -> Iterator[Drift]:
    replaced = {name for migration in own.values() for app, name in migration.replaces if app == owner.label}
    for name in sorted({*own, *replaced} & (applied | set(ledger))):
        row = ledger.get(name)
        if row is not None and row.action == "started":
            # Interrupted: the next run completes it, whichever side the crash left it on.
            continue
        in_ledger = row is not None and row.in_schema
        if name in applied and not in_ledger:
            yield Drift(
                "unrecorded",
                owner.ledger_name(name),
                (owner.label, name),
                "django_migrations says it is applied, the ledger does not. If the schema has it, run "
                "compute_migrate --adopt.",
            )
        elif in_ledger and name not in applied and (there := made.standing(executor, own[name]) if name in own else []):
            # The ledger is right, and a second run of the migration could only fail on what the first has made.
            yield Drift(
                "forgotten",
                owner.ledger_name(name),
                (owner.label, name),
                f"the ledger says it is applied, django_migrations does not, and {', '.join(there)} stands. Put the "
                f"row back ({ledger_rows.django_row(owner.label, name)}), or drop what stands if it is to run again.",
            )
        elif in_ledger and name not in applied:
            yield Drift(
                "unapplied",
                owner.ledger_name(name),
                (owner.label, name),
                "the ledger says it is applied, django_migrations does not. If the schema no longer has it, run "
                "compute_migrate --adopt; else put the row back into django_migrations.",
            )
