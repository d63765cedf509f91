"""Reconcilers: names, places and periodic keys."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from better_compute import Periodic

from .specs import module, plugin, reconciler, told

NAME = "^[a-z][a-z0-9._-]{0,63}$"


@pytest.mark.parametrize("name", ["", "Gadgets", "1st", "sync\n", "a:b", "a" * 65, None, 5])
def test_a_reconcilers_name_matches_the_seeds_pattern(name: object) -> None:
    assert told(module(reconcilers=(reconciler(name),))) == [
        (
            "compute.E050",
            f"Module 'gadgets': reconciler Sync has name {name!r}, which does not match {NAME}.",
            "Set `name` on the class, e.g. 'acme.widgets'.",
        )
    ]


def test_names_are_unique_across_modules() -> None:
    assert told(module(reconcilers=(reconciler("sync"),)), plugin(reconcilers=(reconciler("sync"),))) == [
        (
            "compute.E051",
            "Plugin 'acme': reconciler name 'sync' of Sync is also declared by module 'gadgets'.",
            "Give one of the two another name; a name is also a work kind.",
        )
    ]


def test_names_are_unique_within_a_module() -> None:
    assert told(module(reconcilers=(reconciler("sync"), reconciler("sync")))) == [
        (
            "compute.E051",
            "Module 'gadgets': reconciler name 'sync' of Sync is also declared by module 'gadgets'.",
            "Give one of the two another name; a name is also a work kind.",
        )
    ]


@pytest.mark.parametrize("name", ["command-sweeper", "outbox-dispatch", "event-subscribers"])
def test_names_of_the_runtime_are_reserved(name: str) -> None:
    assert told(module(reconcilers=(reconciler(name),))) == [
        (
            "compute.E052",
            f"Module 'gadgets': reconciler name {name!r} is reserved for the runtime.",
            "Name it after your own module, e.g. 'acme.widgets'.",
        )
    ]


def test_the_core_may_use_the_names_of_the_runtime() -> None:
    assert told(module("core", reconcilers=(reconciler("outbox-dispatch"),))) == []


@pytest.mark.parametrize(
    ("periodic", "message", "mend"),
    [
        (
            Periodic("sweep", "999ms"),
            "key 'sweep' every '999ms', under 1 s.",
            "Let it come back every 1s or slower.",
        ),
        (
            Periodic("sweep", timedelta(0)),
            "key 'sweep' every datetime.timedelta(0), under 1 s.",
            "Let it come back every 1s or slower.",
        ),
        (
            Periodic("sweep", "99999d"),
            "key 'sweep' every '99999d', over ten years.",
            "Let it come back sooner.",
        ),
        (
            Periodic("sweep", "10 minutes"),
            "key 'sweep' whose every is malformed: '10 minutes' is no duration; write a number and a unit "
            "(ms, s, m, h, d), e.g. '10m'.",
            "Write it like every='10m'.",
        ),
        (Periodic("", "10m"), "key '' that is empty.", "Use 1 to 512 characters."),
        (Periodic("a\x00", "10m"), "key 'a\\x00' that holds a NUL character.", "Use 1 to 512 characters."),
        ("sweep", "entry 'sweep' that is no Periodic.", "Write Periodic('sweep', every='10m')."),
    ],
)
def test_a_malformed_periodic_key_is_refused(periodic: Any, message: str, mend: str) -> None:
    assert told(module(reconcilers=(reconciler(periodic=(periodic,)),))) == [
        ("compute.E053", f"Module 'gadgets': reconciler 'gadgets.sync' has a periodic {message}", mend)
    ]


def test_a_periodic_key_stands_once() -> None:
    twice = (Periodic("sweep", "10m"), Periodic("sweep", "20m"))
    assert told(module(reconcilers=(reconciler(periodic=twice),))) == [
        (
            "compute.E053",
            "Module 'gadgets': reconciler 'gadgets.sync' has a periodic key 'sweep' twice.",
            "Keep one of the two; a key comes back at one pace.",
        )
    ]


def test_a_periodic_key_may_come_back_every_second() -> None:
    assert told(module(reconcilers=(reconciler(periodic=(Periodic("sweep", "1s"),)),))) == []


def test_periodic_is_a_sequence() -> None:
    assert told(module(reconcilers=(reconciler(periodic=Periodic("sweep", "10m")),))) == [
        (
            "compute.E053",
            "Module 'gadgets': reconciler 'gadgets.sync' has periodic = Periodic(key='sweep', every='10m'), which is "
            "no sequence.",
            "Write periodic = (Periodic('sweep', every='10m'),).",
        )
    ]


@pytest.mark.parametrize(
    ("field", "value", "mend"),
    [
        ("shard_by", "tenant", "Choose one of 'node', 'pool', 'none'."),
        ("role", "api", "Choose one of 'controllers', 'scheduler'."),
    ],
)
def test_a_reconciler_runs_in_a_place_there_is(field: str, value: str, mend: str) -> None:
    assert told(module(reconcilers=(reconciler(**{field: value}),))) == [
        ("compute.E054", f"Module 'gadgets': reconciler 'gadgets.sync' has {field} = {value!r}.", mend)
    ]
