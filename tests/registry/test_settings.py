"""``COMPUTE`` in the host's settings, and the databases it names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from django.conf import settings
from django.db import connections
from django.test import override_settings
from psycopg import IsolationLevel

from better_compute import ComputeError, conf, registry

from .specs import module, told


@pytest.mark.parametrize(
    ("compute", "message", "mend"),
    [
        (
            {"TUNNLES": {}},
            "COMPUTE['TUNNLES'] in the settings is no key of the core.",
            "Remove or correct it. Did you mean 'TUNNELS'?",
        ),
        (
            {"gagdets": {}},
            "COMPUTE['gagdets'] in the settings is not the name of a hosted module.",
            "Remove or correct it. Did you mean 'gadgets'?",
        ),
        (
            {5: {}},
            "COMPUTE[5] in the settings is not the name of a hosted module.",
            "Remove or correct it.",
        ),
        (
            {"gadgets": 5},
            "COMPUTE['gadgets'] in the settings is 5, which is no dictionary.",
            "Write the options of module 'gadgets' as a dictionary.",
        ),
        (
            {"WORKER": {"RESYNC_MS": "5m"}},
            "COMPUTE in the settings: Expected `int`, got `str` - at `$.WORKER.RESYNC_MS`.",
            "Correct the key that the path names.",
        ),
        (
            {"SINKS": {"EVENT": []}},
            "COMPUTE in the settings: Object contains unknown field `EVENT` - at `$.SINKS`.",
            "Correct the key that the path names.",
        ),
        (
            {"WORKER": {"THREADS": 0}},
            "COMPUTE in the settings: Expected `int` >= 1 - at `$.WORKER.THREADS`.",
            "Correct the key that the path names.",
        ),
        (
            {"CALL": {"MAX_BODY_BYTES": -1}},
            "COMPUTE in the settings: Expected `int` >= 1 - at `$.CALL.MAX_BODY_BYTES`.",
            "Correct the key that the path names.",
        ),
        (
            {"WORKER": {"TTL_MS": 3000}},
            "COMPUTE in the settings: a TICK_MS of 2000 leaves no second heartbeat within a TTL_MS of 3000; "
            "TICK_MS must be at most half of it - at `$.WORKER`.",
            "Correct the key that the path names.",
        ),
        ([], "COMPUTE in the settings is [], which is no dictionary.", "Write COMPUTE = {}."),
    ],
)
def test_a_setting_that_is_wrong_is_named_with_its_path(compute: Any, message: str, mend: str) -> None:
    with override_settings(COMPUTE=compute):
        assert told(module()) == [("compute.E070", message, mend)]


def test_a_compute_that_is_no_dictionary_refuses_the_registry_without_a_crash() -> None:
    with override_settings(COMPUTE=[]), registry.override(module()):
        with pytest.raises(ComputeError, match="COMPUTE in the settings is a list, which is no dictionary"):
            conf.current()
        with pytest.raises(ComputeError, match=r"^INVALID_CONFIG: .*compute\.E070"):
            registry.current()


def test_the_compute_database_is_one_of_databases() -> None:
    with override_settings(COMPUTE={"DATABASE": "other"}):
        known = ", ".join(sorted(settings.DATABASES))
        assert told(module()) == [
            (
                "compute.E071",
                "COMPUTE['DATABASE'] names the alias 'other', which DATABASES does not hold.",
                f"Add 'other' to DATABASES, or name one of {known}.",
            )
        ]


@pytest.fixture
def alias(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A further entry of DATABASES, to be changed by the test."""
    entry = deepcopy(connections.settings["default"])
    monkeypatch.setitem(connections.settings, "second", entry)
    yield entry
    with suppress(AttributeError):
        del connections["second"]


def test_a_database_that_is_not_postgresql_is_refused(alias: dict[str, Any]) -> None:
    alias["ENGINE"] = "django.db.backends.sqlite3"
    with override_settings(COMPUTE={"MIGRATION_DATABASE": "second"}):
        assert told(module()) == [
            (
                "compute.E071",
                "DATABASES['second'], which COMPUTE['MIGRATION_DATABASE'] names, is sqlite, not PostgreSQL.",
                "Use django.db.backends.postgresql on PostgreSQL 15 or later.",
            )
        ]


def test_server_side_binding_is_warned_of(alias: dict[str, Any]) -> None:
    alias["OPTIONS"] = {"server_side_binding": True}
    with override_settings(COMPUTE={"MIGRATION_DATABASE": "second"}):
        assert told(module()) == [
            (
                "compute.W072",
                "DATABASES['second'] has server_side_binding on, which refuses statements of several commands.",
                "Remove server_side_binding from its OPTIONS; triggers and packaged SQL need it off.",
            )
        ]


def test_another_isolation_than_read_committed_is_refused(alias: dict[str, Any]) -> None:
    alias["OPTIONS"] = {"isolation_level": IsolationLevel.REPEATABLE_READ}
    with override_settings(COMPUTE={"MIGRATION_DATABASE": "second"}):
        assert told(module()) == [
            (
                "compute.E074",
                f"DATABASES['second'] sets isolation_level {IsolationLevel.REPEATABLE_READ!r}; fences and tenant "
                "states are read under READ COMMITTED, so that a lock is followed by what is true after it.",
                "Remove isolation_level from its OPTIONS.",
            )
        ]


def test_times_without_zones_are_refused_with_the_reason() -> None:
    with override_settings(USE_TZ=False):
        ((id, message, hint),) = told(module())
    assert id == "compute.E075"
    assert message.startswith("USE_TZ in the settings is False, so times would be read without their zone")
    assert hint == "Set USE_TZ = True; Django keeps showing times in TIME_ZONE."
