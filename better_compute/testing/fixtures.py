"""pytest fixtures for module authors: ``pytest_plugins = ["better_compute.testing.fixtures"]`` in your conftest.

They really commit, so a test that uses one needs ``@pytest.mark.django_db(transaction=True)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from better_compute import ledger
from better_compute.testing.clock import reset_clock
from better_compute.testing.member import SimulatedMember
from better_compute.testing.migrating import migrate_module


@pytest.fixture
def simulated_member(transactional_db: None) -> Iterator[Callable[..., SimulatedMember]]:
    """Make members that move only when told; closed, and the clock set right, when the test ends."""
    made: list[SimulatedMember] = []

    def make(*args: Any, **kwargs: Any) -> SimulatedMember:
        member = SimulatedMember(*args, **kwargs)
        made.append(member)
        member.step()
        return member

    yield make
    for member in made:
        member.close()
    reset_clock()


@pytest.fixture
def module_at(transactional_db: None) -> Iterator[Callable[[str, str | None], Any]]:
    """Call :func:`migrate_module`; everything is applied again after the test."""
    yield migrate_module
    ledger.migrate()
