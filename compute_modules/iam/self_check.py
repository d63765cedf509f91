"""What an operator should know about who may do what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from better_compute import Finding, ModuleContext, compute

from . import owners, principals
from .apps import Options
from .authorizer import Grants
from .lifecycle import binding
from .projection import projection

#: Most makers of tokens that are looked at.
_MOST_MAKERS: Final = 200
_MAKERS: Final = """
SELECT made.maker, count(*) AS n, bool_or(who.disabled_at IS NOT NULL) AS disabled
FROM compute_iam_tokens AS token
CROSS JOIN LATERAL jsonb_array_elements_text(token.makers) AS made (maker)
LEFT JOIN compute_iam_principals AS who ON who.id = made.maker
WHERE token.revoked_at IS NULL AND (token.expires_at IS NULL OR token.expires_at > compute_now())
GROUP BY made.maker ORDER BY made.maker LIMIT %s
"""
#: Most events or tenants that are named; the count says how many there are.
_NAMED: Final = 3
_POISON: Final = """
SELECT received_at, problem, count(*) OVER () AS n FROM compute_iam_inbox
WHERE problem <> '' AND received_at > compute_now() - interval '7 days' ORDER BY received_at DESC LIMIT %s
"""
_NOT_FOLLOWED: Final = """
SELECT tenant_id, problem, count(*) OVER () AS n FROM compute_iam_outside
WHERE problem <> '' ORDER BY problem_since, tenant_id LIMIT %s
"""


def self_check(ctx: ModuleContext) -> Iterator[Finding]:
    """Tell of a root without an owner, broken glass, orphaned tokens, unknown plugins, and tenants not followed."""
    options: Options = ctx.options
    reading = projection.read(ctx)
    if isinstance(compute.authorizer, Grants) and not owners.of(reading.facts, options.root_tenant_id, reading.at):
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
    yield from _orphaned(ctx)
    yield from _unknown_plugins(ctx, options)
    yield from _followed(ctx)


def _orphaned(ctx: ModuleContext) -> Iterator[Finding]:
    """Tokens of programs that are refused since whoever made them may not call any more."""
    for row in ctx.sql.query(_MAKERS, [_MOST_MAKERS]).rows:
        if not row["disabled"] and principals.may_call(row["maker"]):
            continue
        yield Finding(
            check="iam.token-orphaned",
            severity="warning",
            message=f"{row['maker']} may not call any more, so {row['n']} tokens made by it for others are refused.",
            fix="Let somebody who holds the rights of their accounts rotate them with tokens.rotate, or revoke them.",
            count=row["n"],
        )


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


def _followed(ctx: ModuleContext) -> Iterator[Finding]:
    """What came of following tenants that are kept elsewhere."""
    if binding.failed:
        yield Finding(
            check="iam.inbox-unbound",
            severity="warning",
            message=f"The tenant source could not be bound in this process: {binding.failed[:200]}",
            fix="Mend it and start the process again; until then its tenants are followed every five minutes only.",
        )
    for row in ctx.sql.query(_POISON, [_NAMED]).rows:
        yield Finding(
            check="iam.inbox-poison",
            severity="warning",
            message=f"What came at {row['received_at']:%Y-%m-%dT%H:%M:%SZ} is no event: {row['problem']}",
            fix="See what the tenant source sends; the sweep re-reads every tenant, so none is lost.",
            count=row["n"],
        )
    for row in ctx.sql.query(_NOT_FOLLOWED, [_NAMED]).rows:
        yield Finding(
            check="iam.tenant-not-followed",
            severity="warning",
            message=f"The tenant {row['tenant_id']!r} is not as it is outside: {row['problem']}",
            fix="Mend it where the tenant is kept; it is tried again by itself.",
            count=row["n"],
        )
