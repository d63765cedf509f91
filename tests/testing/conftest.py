"""The fixtures that module authors use."""

from better_compute.testing.fixtures import simulated_member

__all__ = ["simulated_member"]
