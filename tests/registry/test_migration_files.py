"""Migrations as they stand in an app's files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from better_compute.registry.reading import Reading

from .conftest import APPS, problems_of, spec_of

ReadApp = Callable[..., Reading]


def migration(body: str = "", base: str = "ComputeMigration") -> str:
    """A migration file whose class has ``body``."""
    return (
        "from django.db import migrations\n"
        "from better_compute import ComputeMigration\n"
        f"class Migration({base}):\n"
        f"    operations = []\n"
        f"    {body}\n"
    )


def after(name: str) -> str:
    return f"dependencies = [(__name__.partition('.')[0], {name!r})]"


def test_ledger_names_come_from_the_files_in_number_order(read_app: ReadApp) -> None:
    files = {
        "migrations/0002_b.py": migration(after("0001_a")),
        "migrations/0001_a.py": migration(),
        "migrations/_draft.py": "",
    }
    assert spec_of(read_app(files)).migrations == ("gadgets/0001_a", "gadgets/0002_b")


def test_an_app_without_migrations_has_none(read_app: ReadApp) -> None:
    assert spec_of(read_app({})).migrations == ()


def test_migration_modules_of_the_settings_are_honoured(read_app: ReadApp) -> None:
    config = APPS.replace('label = "{path}"', 'label = "written_elsewhere"')
    elsewhere = {"written_elsewhere": "example_project.acme_widgets.migrations"}
    reading = read_app({"apps.py": config, "migrations/0009_x.py": migration()}, MIGRATION_MODULES=elsewhere)
    assert spec_of(reading).migrations == ("gadgets/0001_widgets",)


def test_disabled_migrations_are_refused(read_app: ReadApp) -> None:
    config = APPS.replace('label = "{path}"', 'label = "written_elsewhere"')
    disabled = {"written_elsewhere": None}
    reading = read_app({"apps.py": config, "migrations/0001_a.py": migration()}, MIGRATION_MODULES=disabled)
    assert problems_of(reading) == [
        (
            "compute.E016",
            "Module 'gadgets': MIGRATION_MODULES['written_elsewhere'] is None, so its migrations are disabled.",
            "Remove the entry, and run tests without --nomigrations: tables and triggers come from migrations alone.",
        )
    ]


def test_a_plain_django_migration_is_refused(read_app: ReadApp) -> None:
    reading = read_app({"migrations/0001_a.py": migration(base="migrations.Migration")})
    assert problems_of(reading) == [
        (
            "compute.E013",
            "Module 'gadgets': migration '0001_a' has Migration = "
            f"<class '{reading.spec.path}.migrations.0001_a.Migration'>, which is no subclass of ComputeMigration.",
            "Write `from better_compute import ComputeMigration` and `class Migration(ComputeMigration):`.",
        )
    ]


def test_a_file_without_a_migration_is_refused(read_app: ReadApp) -> None:
    assert problems_of(read_app({"migrations/0001_a.py": ""})) == [
        (
            "compute.E013",
            "Module 'gadgets': migration '0001_a' has Migration = None, which is no subclass of ComputeMigration.",
            "Write `from better_compute import ComputeMigration` and `class Migration(ComputeMigration):`.",
        )
    ]


def test_an_owner_that_is_not_the_module_is_refused(read_app: ReadApp) -> None:
    assert problems_of(read_app({"migrations/0001_a.py": migration("owner = 'core'")})) == [
        (
            "compute.E011",
            "Module 'gadgets': migration '0001_a' states owner = 'core'.",
            "Remove it or write 'gadgets': a module ships migrations of its own only.",
        )
    ]


def test_an_owner_that_is_the_module_may_be_stated(read_app: ReadApp) -> None:
    assert problems_of(read_app({"migrations/0001_a.py": migration("owner = 'gadgets'")})) == []


def test_a_non_atomic_migration_needs_a_reason_and_one_operation(read_app: ReadApp) -> None:
    assert problems_of(read_app({"migrations/0001_a.py": migration("atomic = False")})) == [
        (
            "compute.E014",
            "Module 'gadgets': migration '0001_a' has atomic = False without a reason.",
            "Remove it, or say in non_atomic_reason why it cannot run in a transaction.",
        ),
        (
            "compute.E014",
            "Module 'gadgets': migration '0001_a' has atomic = False and 0 operations.",
            "Let a non-atomic migration hold exactly one operation, so that an interrupted one can be told.",
        ),
    ]


def test_a_non_atomic_migration_with_a_reason_and_one_operation_is_accepted(read_app: ReadApp) -> None:
    body = (
        "atomic = False; non_atomic_reason = 'The index is built concurrently.'; "
        "operations = [migrations.RunSQL('SELECT 1')]"
    )
    assert problems_of(read_app({"migrations/0001_a.py": migration(body)})) == []


def test_several_leaves_are_refused(read_app: ReadApp) -> None:
    files = {
        "migrations/0001_a.py": migration(),
        "migrations/0002_b.py": migration(after("0001_a")),
        "migrations/0003_c.py": migration(after("0001_a")),
    }
    assert problems_of(read_app(files)) == [
        (
            "compute.E015",
            "Module 'gadgets': migrations '0002_b', '0003_c' have no successor each; there may be one leaf.",
            "Let '0003_c' depend on the one before it.",
        )
    ]


def test_a_squash_is_no_second_leaf(read_app: ReadApp) -> None:
    files = {
        "migrations/0001_a.py": migration(),
        "migrations/0002_b.py": migration(after("0001_a")),
        "migrations/0003_squash.py": migration(
            "label = __name__.partition('.')[0]; replaces = [(label, '0001_a'), (label, '0002_b')]"
        ),
    }
    assert problems_of(read_app(files)) == []


@pytest.mark.parametrize(
    ("text", "said", "place"),
    [
        ("x = 1\nclass Migration(:\n", "SyntaxError: invalid syntax", ".py:2"),
        ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'", ".py:1"),
        ("\nraise RuntimeError('one\\ntwo')", "RuntimeError: one two", ".py:2"),
        ("x = '\0'", "SyntaxError: source code ", ""),
    ],
    ids=["syntax", "import", "raises", "null"],
)
def test_a_migration_that_cannot_be_imported_is_named_with_its_place(
    read_app: ReadApp, text: str, said: str, place: str
) -> None:
    files = {"migrations/0001_a.py": migration(), "migrations/0002_b.py": text, "migrations/0003_c.py": ""}
    reading = read_app(files)
    path = f"{reading.spec.path}.migrations.0002_b"
    # The other files are judged all the same.
    (id, message, hint), (other, *_) = problems_of(reading)
    assert (id, other) == ("compute.E007", "compute.E013")
    assert message.startswith(f"Module 'gadgets': importing {path} raised {said}")
    assert f"migrations{'.' if not place else '/'}0002_b{place})." in message
    assert "\n" not in message
    assert hint == f"Mend it; `manage.py shell -c '__import__(\"{path}\")'` shows the whole traceback."


def test_a_migrations_package_that_cannot_be_imported_is_named(read_app: ReadApp) -> None:
    [(id, message, _)] = problems_of(read_app({"migrations/__init__.py": "def (", "migrations/0001_a.py": migration()}))
    assert id == "compute.E007"
    assert message.endswith("migrations/__init__.py:1).")


def test_a_migrations_package_that_the_settings_misname_is_refused(read_app: ReadApp) -> None:
    config = APPS.replace('label = "{path}"', 'label = "written_elsewhere"')
    reading = read_app({"apps.py": config}, MIGRATION_MODULES={"written_elsewhere": "no_such_package.migrations"})
    [(id, message, _)] = problems_of(reading)
    assert id == "compute.E007"
    assert "importing no_such_package.migrations raised ModuleNotFoundError" in message
