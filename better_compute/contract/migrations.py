"""The base of every compute migration, and the operation that runs a packaged SQL file."""

from __future__ import annotations

from importlib import resources
from typing import Any, ClassVar

from django.db import migrations


class ComputeMigration(migrations.Migration):
    """A Django migration that stands in the ledger as ``<owner>/<nnnn>_<slug>``.

    It runs in a transaction of its own together with its ledger row. ``owner`` may be stated; it must then
    be the module's name. A migration with ``atomic = False`` needs ``non_atomic_reason``.
    """

    owner: ClassVar[str | None] = None
    non_atomic_reason: ClassVar[str] = ""

    def __init__(self, name: str, app_label: str) -> None:
        super().__init__(name, app_label)
        # Whatever a module needs of the core, it needs the ledger; its author need not say so.
        if app_label != "compute" and not any(app == "compute" for app, _ in self.dependencies):
            self.dependencies = [*self.dependencies, ("compute", "__first__")]  # type: ignore[misc]


class RunSqlFile(migrations.RunSQL):
    """Run a packaged SQL file, and another one to reverse it.

    Parameters
    ----------
    package
        Import path of the package that holds the files, e.g. ``"better_compute.store.schema"``.
    forward, reverse
        File names. Without ``reverse`` the operation cannot be reversed.
    """

    def __init__(self, package: str, forward: str, reverse: str | None = None, **kwargs: Any) -> None:
        self.package = package
        self.forward = forward
        self.reverse = reverse
        folder = resources.files(package)
        super().__init__(
            folder.joinpath(forward).read_text(encoding="utf-8"),
            folder.joinpath(reverse).read_text(encoding="utf-8") if reverse else None,
            **kwargs,
        )

    def files(self) -> list[bytes]:
        """The bytes of the files, which the migration's checksum covers."""
        return [text.encode() for text in (self.sql, self.reverse_sql) if isinstance(text, str)]

    def describe(self) -> str:
        """Name the file in plans."""
        return f"Run {self.forward}"
