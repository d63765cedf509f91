"""The core's own methods: what stands here (``system``) and the work queue (``work``)."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from typing import Annotated, Any

import django

from better_compute import (
    ComputeError,
    ComputeViewSet,
    ErrorCode,
    Input,
    Meta,
    MethodContext,
    Output,
    Page,
    PageInput,
    Report,
    Resource,
    __version__,
    compute_method,
    doctor,
    registry,
)
from better_compute.contract.module import ModuleSpec, ProfileDocument
from better_compute.contract.pages import PageKey
from better_compute.engine import pausing
from better_compute.store import pauses, queued, transaction


class Versions(Output):
    """Versions of what serves."""

    core: str
    django: str
    python: str
    postgresql: str


class HostedModule(Output):
    """One hosted module: its names, its version where its package states one, and how much it brings."""

    name: str
    label: str
    path: str
    plugin_id: str | None
    version: str | None
    migrations: int
    methods: int
    reconcilers: int
    command_kinds: int
    extensions: int
    actions: int


class HostedModules(Output):
    """Modules in hosted order; ``fingerprint`` is the same for processes that host the same."""

    fingerprint: str
    modules: list[HostedModule]


class ListProfilesInput(PageInput):
    """Which profiles: those of one name, or all."""

    name: str | None = None


class Profile(Output):
    """A profile that a hosted module registered."""

    name: str
    version: str
    module: str
    document: dict[str, Any]


class RequeueInput(Input):
    """A queued key, by its reconciler's name and the key."""

    kind: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9._-]{0,63}$(?!\n)")]
    key: Annotated[str, Meta(min_length=1, max_length=512)]


class Requeued(Output):
    """The key that is due now."""

    kind: str
    key: str


class ListWorkInput(PageInput):
    """Which queued keys: of one reconciler or of all, and how often they have failed at least."""

    kind: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9._-]{0,63}$(?!\n)")] | None = None
    attempts: Annotated[int, Meta(ge=0, le=1_000_000)] = 0


class QueuedKey(Output):
    """A key that waits, is due or runs. ``shard`` is -1 for a reconciler that is not sharded."""

    kind: str
    key: str
    shard: int
    generation: int
    not_before: datetime
    enqueued_at: datetime
    attempts: int
    last_error: str | None
    last_error_at: datetime | None


class ScopeInput(Input):
    """A reconciler by its name, or a member by its id; exactly one of them."""

    kind: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9._-]{0,63}$(?!\n)")] | None = None
    member: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


class PauseInput(ScopeInput, kw_only=True):
    """What to pause, and why, for whoever sees it."""

    reason: Annotated[str, Meta(min_length=1, max_length=500, pattern=r"\S")]


class Paused(Output):
    """A paused reconciler or member: the one that is null is not meant."""

    kind: str | None
    member: str | None
    reason: str
    paused_by: str
    paused_at: datetime


class AllPaused(Output):
    """Everything that is paused, reconcilers first."""

    paused: list[Paused]


class Resumed(Output):
    """What goes on."""

    kind: str | None
    member: str | None


def _scope(input: ScopeInput) -> Resource:
    return Resource("system", f"pause/{pausing.scope_of(kind=input.kind, member=input.member)}")


class System(ComputeViewSet):
    """The installation itself."""

    @compute_method(action="compute:system:read", kind="query", resource=lambda _: Resource("system", "installation"))
    def self_check(self, ctx: MethodContext) -> Report:
        """Report what an operator should act on, as `manage.py doctor` does."""
        return doctor.report()

    @compute_method(action="compute:system:read", kind="query", resource=lambda _: Resource("system", "installation"))
    def version(self, ctx: MethodContext) -> Versions:
        """Tell the versions of the core, Django, Python and PostgreSQL."""
        server = ctx.sql.query("SHOW server_version").rows[0]["server_version"]
        return Versions(
            core=__version__, django=django.get_version(), python=platform.python_version(), postgresql=server
        )

    @compute_method(action="compute:system:read", kind="query", resource=lambda _: Resource("system", "installation"))
    def modules(self, ctx: MethodContext) -> HostedModules:
        """List the hosted modules in hosted order."""
        hosted = registry.current()
        return HostedModules(fingerprint=hosted.fingerprint, modules=[_hosted(spec) for spec in hosted.modules])

    @compute_method(action="compute:system:read", kind="query", resource=lambda _: Resource("system", "installation"))
    def profiles(self, ctx: MethodContext, input: ListProfilesInput) -> Page[Profile]:
        """List the profiles of hosted modules by name and version."""
        known = sorted(
            ((each, spec.name) for spec in registry.current().modules for each in spec.profiles),
            key=lambda pair: (pair[0].name, pair[0].version),
        )
        wanted = [pair for pair in known if input.name in (None, pair[0].name)]

        def read(after: PageKey | None, limit: int) -> Sequence[tuple[ProfileDocument, str]]:
            behind = ("", "") if after is None else (str(after[0]), str(after[1]))
            return [pair for pair in wanted if (pair[0].name, pair[0].version) > behind][:limit]

        return ctx.page(input, read, key=lambda pair: (pair[0].name, pair[0].version), show=_profile)


class Work(ComputeViewSet):
    """The work queue."""

    @compute_method(action="compute:work:read", kind="query", resource=lambda _: Resource("system", "work"))
    def list(self, ctx: MethodContext, input: ListWorkInput) -> Page[QueuedKey]:
        """List queued keys by reconciler and key."""

        def read(after: PageKey | None, limit: int) -> Sequence[queued.Queued]:
            kind, key = after or ("", "")
            return queued.page(after=(str(kind), str(key)), kind=input.kind, attempts=input.attempts, limit=limit)

        return ctx.page(input, read, key=lambda row: (row.kind, row.key), show=_queued)

    @compute_method(
        action="compute:work:requeue",
        kind="mutation",
        resource=lambda i: Resource("system", f"work/{i.kind}/{i.key}"),
    )
    def requeue(self, ctx: MethodContext, input: RequeueInput) -> Requeued:
        """Make a queued key due now, whatever its backoff."""
        if not transaction.requeue(input.kind, input.key):
            raise ComputeError(
                ErrorCode.NOT_FOUND,
                f"The key {input.key!r} of {input.kind!r} is not queued.",
                mend="It may have run already; the work page of the admin lists what is queued.",
            )
        return Requeued(kind=input.kind, key=input.key)

    @compute_method(action="compute:work:pause", kind="mutation", resource=_scope)
    def pause(self, ctx: MethodContext, input: PauseInput) -> Paused:
        """Start no more keys of a reconciler, or on a member; what runs ends by itself, and keys wait."""
        scope = pausing.scope_of(kind=input.kind, member=input.member)
        pausing.require_known(scope)
        pausing.pause(scope, reason=input.reason, by=ctx.principal.id)
        return next(_paused(each) for each in pausing.paused() if each.scope == scope)

    @compute_method(action="compute:work:pause", kind="mutation", resource=_scope)
    def resume(self, ctx: MethodContext, input: ScopeInput) -> Resumed:
        """Let a paused reconciler or member go on, also one that is hosted or lives no more."""
        scope = pausing.scope_of(kind=input.kind, member=input.member)
        if not pausing.resume(scope):
            raise ComputeError(
                ErrorCode.NOT_FOUND, f"{scope} is not paused.", mend="work.paused lists what is.", reason="NOT_PAUSED"
            )
        return Resumed(kind=input.kind, member=input.member)

    @compute_method(action="compute:work:read", kind="query", resource=lambda _: Resource("system", "work"))
    def paused(self, ctx: MethodContext) -> AllPaused:
        """List what is paused, by whom and why."""
        return AllPaused(paused=[_paused(each) for each in pausing.paused()])


def _paused(pause: pauses.Pause) -> Paused:
    what, _, name = pause.scope.partition(":")
    return Paused(
        kind=name if what == "kind" else None,
        member=name if what == "member" else None,
        reason=pause.reason,
        paused_by=pause.by,
        paused_at=pause.since,
    )


def _profile(pair: tuple[ProfileDocument, str]) -> Profile:
    profile, module = pair
    return Profile(name=profile.name, version=profile.version, module=module, document=dict(profile.document))


def _queued(row: queued.Queued) -> QueuedKey:
    # Field by field: `asdict` copies every time, which took three quarters of a page's CPU.
    return QueuedKey(
        kind=row.kind,
        key=row.key,
        shard=row.shard,
        generation=row.generation,
        not_before=row.not_before,
        enqueued_at=row.enqueued_at,
        attempts=row.attempts,
        last_error=row.last_error,
        last_error_at=row.last_error_at,
    )


def _hosted(spec: ModuleSpec) -> HostedModule:
    return HostedModule(
        name=spec.name,
        label=spec.label,
        path=spec.path,
        plugin_id=spec.plugin_id,
        version=_version(spec),
        migrations=len(spec.migrations),
        methods=len(spec.methods),
        reconcilers=len(spec.reconcilers),
        command_kinds=len(spec.command_kinds),
        extensions=len(spec.extensions),
        actions=len(spec.catalog.actions),
    )


def _version(spec: ModuleSpec) -> str | None:
    """The ``__version__`` of the module's package; built-in modules have the core's."""
    if spec.path.partition(".")[0] in ("better_compute", "compute_modules"):
        return __version__
    package = sys.modules.get(spec.path) or import_module(spec.path)
    version = getattr(package, "__version__", None)
    return version if isinstance(version, str) else None
