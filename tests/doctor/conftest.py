"""Doctor over modules that a test makes up."""

from __future__ import annotations

import pytest

from better_compute.doctor import examination
from better_compute.ledger import findings


@pytest.fixture
def made_up_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ledger knows the modules that are really installed and would call them orphans; it has its own tests."""
    kept = tuple(check for check in examination.CORE_CHECKS if check is not findings.check)
    monkeypatch.setattr(examination, "CORE_CHECKS", kept)
