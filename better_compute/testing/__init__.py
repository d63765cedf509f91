"""For module authors' tests: an empty store, and a clock that moves.

``compute.jobs[name].tick()`` steps a reconciler; ``compute.api`` calls a method in process; ``check_states(TABLE)``
walks a table of states.
"""

from better_compute.testing.clock import advance_clock, reset_clock
from better_compute.testing.migrating import migrate_module
from better_compute.testing.states import check_states
from better_compute.testing.store import clear_store, restore_baseline, take_baseline

__all__ = [
    "advance_clock",
    "check_states",
    "clear_store",
    "migrate_module",
    "reset_clock",
    "restore_baseline",
    "take_baseline",
]
