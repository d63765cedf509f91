"""The fixtures that pages of the book use."""

from better_compute.testing.fixtures import simulated_member

__all__ = ["simulated_member"]
