"""What the plugin tells operators."""

from collections.abc import Iterator

from better_compute import Finding, ModuleContext

MOST_WIDGETS = 1_000_000


def self_check(ctx: ModuleContext) -> Iterator[Finding]:
    """Warn when the table has outgrown its purpose."""
    rows = ctx.sql.query("SELECT count(*) AS n FROM plg_acme_widget").rows
    if rows[0]["n"] > MOST_WIDGETS:
        yield Finding(
            check="acme.widgets", severity="warning", message="Over a million widgets.", fix="Prune old widgets."
        )
