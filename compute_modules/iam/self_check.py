"""What an operator should know about who may do what."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings

from better_compute import Finding, ModuleContext

from . import grants
from .apps import Options
from .projection import projection


def self_check(ctx: ModuleContext) -> Iterator[Finding]:
    """Tell of a root without an owner, of glass that is broken, and of plugins that the settings do not know."""
    options: Options = ctx.options
    reading = projection.read(ctx)
    if _judges() and not grants.owners(reading.facts, options.root_tenant_id, reading.at):
        yield Finding(
            check="iam.no-owner",
            severity="warning",
            message=f"The root tenant {options.root_tenant_id!r} has no owner, so nobody can be given anything there.",
            fix="Run `manage.py compute iam:bootstrap --user <name>`.",
        )
    broken = [
        grant
        for holdings in reading.facts.holdings.values()
        for grant in holdings.by_id.values()
        if grant.break_glass and grant.active(reading.at)
    ]
    if broken:
        named = ", ".join(f"{grant.principal} in {grant.tenant!r}" for grant in broken[:5])
        yield Finding(
            check="iam.break-glass",
            severity="warning",
            message=f"The glass is broken by {named}.",
            fix="Ask them; breakGlass.end ends it before its time.",
            count=len(broken),
        )
    yield from _unknown_plugins(ctx, options)


def _judges() -> bool:
    """Whether calls are judged by this module's grants."""
    return str(getattr(settings, "COMPUTE", {}).get("IAM", "")).startswith("compute_modules.iam.")


def _unknown_plugins(ctx: ModuleContext, options: Options) -> Iterator[Finding]:
    if options.plugins is None:
        return
    hosted = {spec.plugin_id for spec in ctx.hosted.methods.values() if spec.plugin_id is not None}
    for plugin in sorted(hosted - set(options.plugins)):
        yield Finding(
            check="iam.plugin-unknown",
            severity="warning",
            message=f"The plugin {plugin!r} is hosted, and COMPUTE['iam']['PLUGINS'] does not name it.",
            fix="Add it there, or remove the plugin.",
        )
