"""A plugin whose reconcilers record when they were inside their fenced transaction, and what they saw there."""

import os

from better_compute import ComputePlugin


class Arena(ComputePlugin):
    name = "tests.chaos.arena"
    id = "arena"

    def ready(self) -> None:
        """Leave out the rule that the harness asked to leave out."""
        from tests.chaos.breaks import leave_out

        rule = os.environ.get("CHAOS_BREAK")
        if rule:
            leave_out(rule)
