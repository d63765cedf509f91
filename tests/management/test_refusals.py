"""What the database refuses a command is one line that ends with the mend."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import DataError, IntegrityError, connection
from django.db.utils import ConnectionHandler

from better_compute.client.shell import NO_ANSWER
from better_compute.devtools import running
from better_compute.devtools.ports import free_port
from better_compute.management.refusals import REFUSED, told

COMMANDS = [
    ("compute_token", "create", "--user", "ops", "--installation", "--label", "trying"),
    ("compute_token", "list"),
    ("compute_token", "revoke", "0d1a9f3e-7d1f-4a39-9f35-52b0a3a4f9aa"),
    ("compute", "pause", "--kind", "acme.widgets"),
    ("compute", "resume", "--kind", "acme.widgets"),
    ("compute", "paused"),
    ("compute", "api", "work.list"),
    ("compute", "api", "work.pause", "kind=acme.widgets", "reason=trying"),
]


@pytest.fixture
def unmigrated(db: None) -> None:
    """A schema in which no table stands, as on a database that was made a moment ago."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL search_path = pg_temp")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_database_that_is_not_migrated_is_named_with_the_command_that_migrates_it(
    unmigrated: None, command: tuple[str, ...]
) -> None:
    with pytest.raises(CommandError) as raised:
        call_command(*command)
    assert re.fullmatch(
        r"UndefinedTable \(SQLSTATE 42P01\): relation \"\w+\" does not exist\. "
        r"Run `manage\.py compute_migrate` as the owner role\.",
        str(raised.value),
    )
    # The shell's own codes: no installation answers.
    assert raised.value.returncode == (NO_ANSWER if command[0] == "compute" else REFUSED)


@pytest.mark.django_db
@pytest.mark.parametrize("command", [("compute_migrate",), ("migrate",), ("compute_module", "list")], ids=" ".join)
def test_a_setting_of_a_wrong_type_is_told_in_one_line(settings: Any, command: tuple[str, ...]) -> None:
    settings.COMPUTE = {**settings.COMPUTE, "OBSERVE": {"PORT": None}}
    with pytest.raises(CommandError, match=r"^INVALID_CONFIG: COMPUTE in the settings: .*\$\.OBSERVE\.PORT") as raised:
        call_command(*command)
    assert raised.value.returncode == REFUSED


@pytest.mark.django_db
def test_a_server_that_does_not_answer_is_told_with_the_settings_that_name_it() -> None:
    nobody = {**connection.settings_dict, "HOST": "127.0.0.1", "PORT": str(free_port())}
    with pytest.raises(CommandError) as raised, told():
        ConnectionHandler({"default": nobody})["default"].ensure_connection()
    said = str(raised.value)
    assert "Connection refused" in said
    assert said.endswith(". Start PostgreSQL, or correct DATABASES in the settings.")
    assert "\n" not in said


@pytest.mark.django_db
def test_beside_an_installation_that_is_starting_the_mend_is_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "starting", "It is still starting: wait")
    nobody = {**connection.settings_dict, "HOST": "127.0.0.1", "PORT": str(free_port())}
    with pytest.raises(CommandError, match=r"\. It is still starting: wait\.$"), told():
        ConnectionHandler({"default": nobody})["default"].ensure_connection()


@pytest.mark.django_db
@pytest.mark.parametrize("missing", ["NAME", "ENGINE"])
def test_settings_that_name_no_database_are_told_in_one_line(missing: str) -> None:
    nameless = {**connection.settings_dict, missing: ""}
    with pytest.raises(CommandError) as raised, told():
        ConnectionHandler({"default": nameless})["default"].ensure_connection()
    said = str(raised.value)
    assert said.startswith("settings.DATABASES is improperly configured.")
    assert said.endswith(". Correct the settings; a variable of the environment that they read may be empty.")
    assert "\n" not in said


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "values", "defect"),
    [
        ("INSERT INTO auth_group (id, name) VALUES (7, 'a'), (7, 'b')", (), IntegrityError),
        ("SELECT 1/0", (), DataError),
        ("SELECT %s", ("\0",), DataError),
    ],
)
def test_a_defect_of_the_command_keeps_its_traceback(
    statement: str, values: tuple[str, ...], defect: type[Exception]
) -> None:
    with pytest.raises(defect), told(), connection.cursor() as cursor:
        cursor.execute(statement, values)
