"""Real workers, from the engine's tests."""

from tests.engine.conftest import start_worker

__all__ = ["start_worker"]
