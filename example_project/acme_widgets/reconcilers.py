"""The plugin's reconciler, woken by ``poke`` and by its own sweep."""

from better_compute import DONE, Outcome, Periodic, ReconcileContext, Reconciler


class WidgetReconciler(Reconciler):
    """Level-triggered: looks at the state behind ``key`` and converges it. Safe to run twice."""

    name = "acme.widgets"
    shard_by = "none"
    periodic = (Periodic("sweep", every="10m"),)

    def run(self, ctx: ReconcileContext, key: str) -> Outcome:
        """Converge the widgets of tenant ``key``; there is nothing to do for a widget that exists."""
        ctx.log.info("widgets of %s are converged", key)
        return DONE
