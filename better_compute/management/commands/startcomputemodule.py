"""``manage.py startcomputemodule``: a new module that passes its own tests before its author changes a line."""

from __future__ import annotations

import keyword
import re
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import CommandError
from django.core.management.templates import TemplateCommand

from better_compute import __version__
from better_compute.contract import names
from better_compute.registry.order import BUILT_IN, CORE

#: As many characters as a module's name may have (``MODULE_NAME``).
LONGEST = 64
TEMPLATE = Path(__file__).resolve().parent.parent / "module_template"


class Command(TemplateCommand):
    """Write a module, or with ``--plugin`` a plugin, below the current folder or the one given."""

    help = "Write a new module: model, migration, method, reconciler, self-check, tenant hook and tests of them."
    missing_args_message = "Name the package, e.g. `manage.py startcomputemodule acme_widgets --plugin`."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("name", help="name of the Python package, e.g. acme_widgets")
        parser.add_argument("directory", nargs="?", help="existing folder to write into (default: a new one)")
        parser.add_argument(
            "--plugin", action="store_true", help="routes below plugins.<id>, actions and tables of its own"
        )

    def handle(self, **options: Any) -> None:  # type: ignore[override]
        """Write the files.

        Raises
        ------
        CommandError
            When no id can be made of the name, or its files are there already.
        """
        name, plugin = options.pop("name"), options.pop("plugin")
        module_id = name.replace("_", "-").strip("-")
        if len(name) > LONGEST:
            raise CommandError(
                f"{name!r} is {len(name)} characters long, and a module's name at most {LONGEST}. Shorten it."
            )
        if not names.matches(names.MODULE_NAME, module_id) or not re.fullmatch(r"[a-z][a-z0-9_]*", name):
            raise CommandError(
                f"{name!r} is no name for a module: use lower-case letters, digits and underscores, a letter first."
            )
        if keyword.iskeyword(name):
            raise CommandError(
                f"{name!r} is a word of Python's own, so nothing could import the module. Name it otherwise."
            )
        if name in sys.stdlib_module_names:
            raise CommandError(
                f"{name!r} is a module of Python's own library, which yours would hide. Name it otherwise."
            )
        if module_id in {CORE, *BUILT_IN}:
            raise CommandError(f"{module_id!r} is the name of a module that comes with the core. Name yours otherwise.")
        label = f"plg_{module_id.replace('-', '_')}" if plugin else name
        self._refuse_taken(module_id, label)
        directory = options.pop("directory")
        options |= {"template": str(TEMPLATE), "extensions": ["py"], "files": [], "exclude": None}
        super().handle(
            "app",
            name,
            directory,
            **options,
            id=module_id,
            label=label,
            title=name.replace("_", " ").strip().capitalize(),
            sort="plugin" if plugin else "module",
            base="ComputePlugin" if plugin else "ComputeModule",
            identity=f'    {"id" if plugin else "module_name"} = "{module_id}"',
            route=f"plugins/{module_id}/" if plugin else "",
            core_versions=_core_versions(),
        )
        # As it was typed: many a project's script is not executable.
        script = f"python {Path(sys.argv[0]).name}"
        self.stdout.write(
            f"Wrote {directory or name}. Add {name!r} to INSTALLED_APPS, then run:\n"
            f"  {script} check && {script} compute_migrate\n"
            f"  python -m pip install pytest pytest-django\n"
            f"  python -m pytest --ds={settings.SETTINGS_MODULE} {directory or name}"
        )
        if not plugin:
            self.stdout.write(
                "check warns (compute.W073) that its methods have no row in the core's method table; what is not part "
                "of Better Compute is written with --plugin."
            )

    def _refuse_taken(self, module_id: str, label: str) -> None:
        for config in apps.get_app_configs():
            called = {getattr(config, "module_name", ""), config.label}
            for taken in (module_id, label):
                if taken in called:
                    raise CommandError(
                        f"The installed app {config.name!r} is called {taken!r} already. Name yours otherwise."
                    )


def _core_versions() -> str:
    """From this core on, up to the next major release, which may change the contract."""
    major, minor = __version__.split(".")[:2]
    return f">={major}.{minor},<{int(major) + 1}"
