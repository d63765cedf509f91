"""A plugin whose reconcilers do what tests ask of them; what ran is told by the outbox."""

from better_compute import ComputePlugin


class Plant(ComputePlugin):
    name = "tests.engine.plant"
    id = "plant"
