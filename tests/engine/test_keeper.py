"""The keeper goes on whatever happens in one look."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from better_compute import conf
from better_compute.engine.dispatch import Dispatcher
from better_compute.engine.keeper import Keeper
from better_compute.engine.membership import Membership
from better_compute.store.session import Session

from .conftest import eventually

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_look_that_raises_voids_trust_and_the_next_one_restores_it(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = conf.Worker(tick_ms=100)
    member = Membership("controllers", {}, settings=settings)
    keeper = Keeper([member], Dispatcher([], settings), Session("default", "t", {}), settings, lambda id: None)
    step: Callable[..., bool] = Keeper.step
    trusted: list[bool] = []

    def broken(self: Keeper, cursor: Any, membership: Membership) -> bool:
        trusted.append(membership.trusted)
        if len(trusted) == 2:
            raise ValueError("a defect")
        return step(self, cursor, membership)

    monkeypatch.setattr(Keeper, "step", broken)
    thread = Thread(target=keeper.run)
    thread.start()
    try:
        eventually(lambda: len(trusted) >= 4)
        assert trusted[:4] == [False, True, False, True]
    finally:
        keeper.stop()
        thread.join(10)
