"""Real workers, from the engine's tests."""

from tests.engine.conftest import start_worker
from tests.engine.test_frozen import freeze

__all__ = ["freeze", "start_worker"]
