"""A client of one installation, written by `manage.py compute_client python`: write it anew when modules change."""
# ruff: noqa

from __future__ import annotations

import builtins
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from better_compute.client import AsyncTransport, AsyncWatch, Change, Options, Transport, Watch, Watching


class AllPaused(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything that is paused, reconcilers first."""

    paused: builtins.list[Paused]


class Allowed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A principal that may."""

    principal: str


class AllowedIds(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The ids that are the tenant's and allowed, in the order given."""

    ids: builtins.list[str]
    truncated: bool


class BatchChecked(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One answer for each question, in their order."""

    results: builtins.list[Checked]


class BlockedBy(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A module that has not let go of the tenant, how to mend it, and since when it answers so."""

    module: str
    answer: str
    message: str
    mend: str
    since: str
    passes: int


class CatalogAnswer(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What can be granted: the actions and resource types of every hosted module and plugin."""

    actions: builtins.list[str]
    resource_types: builtins.list[str] = msgspec.field(name='resourceTypes')
    roles: builtins.list[RoleMeaning]


class Checked(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The answer and its machine-readable reason."""

    allowed: bool
    reason: str


class Considered(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A grant that was looked at. It counts when it is active, reaches the tenant and matches the action."""

    grant_id: str = msgspec.field(name='grantId')
    effect: str
    role: str
    actions: builtins.list[str]
    tenant_id: str = msgspec.field(name='tenantId')
    inherit: bool
    expires_at: str | None = msgspec.field(name='expiresAt')
    active: bool
    reaches: bool
    matches: bool
    counts: bool


class Counted(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How many widgets the tenant has."""

    count: int


class DeletionStatus(msgspec.Struct, kw_only=True, omit_defaults=True):
    """How far a teardown is. ``phase`` is the state, or ``blocked`` while a hook fails."""

    tenant_id: str = msgspec.field(name='tenantId')
    phase: str
    reason: str
    started_at: str | None = msgspec.field(name='startedAt')
    passes: int
    last_pass_at: str | None = msgspec.field(name='lastPassAt')
    teardown_done_at: str | None = msgspec.field(name='teardownDoneAt')
    blockers: builtins.list[BlockedBy]


class Explained(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Why. ``decided_by`` is the grant, or the tenant whose ceiling it was."""

    allowed: bool
    reason: str
    decided_by: str = msgspec.field(name='decidedBy')
    path: builtins.list[str]
    considered: builtins.list[Considered]


class Finding(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Something an operator can act on."""

    check: str
    severity: str
    message: str
    fix: str
    count: int | None = None


class Grant(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A grant and its state by the database's clock."""

    id: str
    tenant_id: str = msgspec.field(name='tenantId')
    principal: str
    effect: str
    role: str
    actions: builtins.list[str]
    resource_type: str = msgspec.field(name='resourceType')
    resource_id: str = msgspec.field(name='resourceId')
    inherit: bool
    state: str
    starts_at: str | None = msgspec.field(name='startsAt')
    expires_at: str | None = msgspec.field(name='expiresAt')
    reason: str
    break_glass: bool = msgspec.field(name='breakGlass')
    created_at: str = msgspec.field(name='createdAt')
    created_by: str = msgspec.field(name='createdBy')
    revoked_at: str | None = msgspec.field(name='revokedAt')
    revoked_by: str = msgspec.field(name='revokedBy')


class HostedModule(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One hosted module: its names, its version where its package states one, and how much it brings."""

    name: str
    label: str
    path: str
    plugin_id: str | None = msgspec.field(name='pluginId')
    version: str | None
    migrations: int
    methods: int
    reconcilers: int
    command_kinds: int = msgspec.field(name='commandKinds')
    extensions: int
    actions: int


class HostedModules(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Modules in hosted order; ``fingerprint`` is the same for processes that host the same."""

    fingerprint: str
    modules: builtins.list[HostedModule]


class NewSecret(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A token and its secret, which is shown this once."""

    token: Token
    secret: str


class OneCheck(msgspec.Struct, kw_only=True, omit_defaults=True):
    """One of several questions about a tenant."""

    action: str
    principal: str | None = None
    resource: ResourceRef | None = None


class PageAllowed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[Allowed]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class PageGrant(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[Grant]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class PagePerson(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[Person]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class PageProfile(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[Profile]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class PageQueuedKey(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[QueuedKey]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class PageRole(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[Role]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class PageServiceAccount(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[ServiceAccount]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class PageToken(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[Token]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class Paused(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A paused reconciler or member: the one that is null is not meant."""

    kind: str | None
    member: str | None
    reason: str
    paused_by: str = msgspec.field(name='pausedBy')
    paused_at: str = msgspec.field(name='pausedAt')


class Person(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Somebody whom rights were ever granted to, or who was disabled."""

    principal: str
    kind: str
    disabled: bool
    disabled_at: str | None = msgspec.field(name='disabledAt')
    created_at: str = msgspec.field(name='createdAt')


class Poked(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The widget that was poked."""

    poked: str


class Profile(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A profile that a hosted module registered."""

    name: str
    version: str
    module: str
    document: builtins.dict[str, Any]


class QueuedKey(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A key that waits, is due or runs. ``shard`` is -1 for a reconciler that is not sharded."""

    kind: str
    key: str
    shard: int
    generation: int
    not_before: str = msgspec.field(name='notBefore')
    enqueued_at: str = msgspec.field(name='enqueuedAt')
    attempts: int
    last_error: str | None = msgspec.field(name='lastError')
    last_error_at: str | None = msgspec.field(name='lastErrorAt')


class Report(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The same answer from ``compute.self_check()``, ``system.selfCheck`` and ``manage.py doctor``."""

    ok: bool
    findings: builtins.list[Finding]


class Requeued(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The key that is due now."""

    kind: str
    key: str


class ResourceRef(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A single record of the tenant."""

    type: str
    id: str


class Resumed(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What goes on."""

    kind: str | None
    member: str | None


class Role(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A role; ``tenant_id`` is empty for a built-in one."""

    id: str
    tenant_id: str = msgspec.field(name='tenantId')
    permits: builtins.list[str]
    but_not: builtins.list[str] = msgspec.field(name='butNot')
    meaning: str


class RoleMeaning(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A role that every installation has."""

    role: str
    meaning: str


class ServiceAccount(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A program's principal; it has no rights until they are granted."""

    principal: str
    tenant_id: str = msgspec.field(name='tenantId')
    label: str
    disabled: bool
    created_at: str = msgspec.field(name='createdAt')


class Token(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A token without its secret. ``makers`` made it for another principal; it is worth no more than each of them."""

    id: str
    hint: str
    principal: str
    tenant_id: str = msgspec.field(name='tenantId')
    acts_in: str | None = msgspec.field(name='actsIn')
    actions: builtins.list[str] | None
    label: str
    state: str
    created_at: str = msgspec.field(name='createdAt')
    created_by: str = msgspec.field(name='createdBy')
    expires_at: str | None = msgspec.field(name='expiresAt')
    revoked_at: str | None = msgspec.field(name='revokedAt')
    last_used_at: str | None = msgspec.field(name='lastUsedAt')
    replaced_by: str | None = msgspec.field(name='replacedBy')
    makers: builtins.list[str]


class Versions(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Versions of what serves."""

    core: str
    django: str
    python: str
    postgresql: str


class ContractPagesPage(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[TenancyTenant]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class ContractPagesPage2(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Some items of a list. ``next_cursor`` is the ``cursor`` of the next page, null on the last one."""

    items: builtins.list[IamTreeTenant]
    next_cursor: str | None = msgspec.field(default=None, name='nextCursor')


class IamTreeTenant(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A tenant's place. ``path`` begins at the root."""

    id: str
    parent_id: str | None = msgspec.field(name='parentId')
    kind: str
    name: str
    path: builtins.list[str]
    ceiling: builtins.list[str] | None


class TenancyTenant(msgspec.Struct, kw_only=True, omit_defaults=True):
    """A tenant's state; ``changed_at`` is null for one whose state was never changed."""

    tenant_id: str = msgspec.field(name='tenantId')
    state: str
    reason: str
    changed_at: str | None = msgspec.field(name='changedAt')
    teardown_done_at: str | None = msgspec.field(name='teardownDoneAt')


class BreakGlassMethods:
    """breakGlass."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def activate(self, *, tenant_id: str, reason: str, minutes: int | UnsetType = UNSET, options: Options = Options()) -> Grant:
        """Become an owner of the tenant for some minutes; the event iam.break-glass-activated is the alarm."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason, 'minutes': minutes}
        answer: Grant = self.transport.call(
            'breakGlass.activate', input, Grant, mutation=True, options=options
        )
        return answer

    def end(self, *, grant_id: str, options: Options = Options()) -> Grant:
        """End it before its time."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        answer: Grant = self.transport.call(
            'breakGlass.end', input, Grant, mutation=True, options=options
        )
        return answer

    def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageGrant:
        """Show who broke the glass, when and why; also of a tenant that is gone."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageGrant = self.transport.call(
            'breakGlass.list', input, PageGrant, mutation=False, options=options
        )
        return answer

    def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> Iterator[Grant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Grant], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[Grant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return Watch(
            self.transport, 'breakGlass.list', input, PageGrant, listed=True, identify=identify, watching=watching, options=options
        )


class GrantsMethods:
    """grants."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def create(self, *, tenant_id: str, principal: str, effect: Literal['forbid', 'permit'] | UnsetType = UNSET, role: str | None | UnsetType = UNSET, actions: builtins.list[str] | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, inherit: bool | UnsetType = UNSET, starts_at: str | None | UnsetType = UNSET, expires_at: str | None | UnsetType = UNSET, reason: str | UnsetType = UNSET, options: Options = Options()) -> Grant:
        """Give somebody a role or actions, never more than the caller holds, or forbid somebody actions."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'principal': principal, 'effect': effect, 'role': role, 'actions': actions, 'resource': resource, 'inherit': inherit, 'startsAt': starts_at, 'expiresAt': expires_at, 'reason': reason}
        answer: Grant = self.transport.call(
            'grants.create', input, Grant, mutation=True, options=options
        )
        return answer

    def get(self, *, grant_id: str, options: Options = Options()) -> Grant:
        """Show a grant."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        answer: Grant = self.transport.call(
            'grants.get', input, Grant, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, grant_id: str, watching: Watching = Watching(), options: Options = Options()) -> Watch[Grant]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        return Watch(
            self.transport, 'grants.get', input, Grant, watching=watching, options=options
        )

    def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, role: str | None | UnsetType = UNSET, state: Literal['active', 'expired', 'pending', 'revoked'] | None | UnsetType = UNSET, options: Options = Options()) -> PageGrant:
        """List a tenant's own grants by id, ended ones included."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit, 'principal': principal, 'role': role, 'state': state}
        answer: PageGrant = self.transport.call(
            'grants.list', input, PageGrant, mutation=False, options=options
        )
        return answer

    def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, role: str | None | UnsetType = UNSET, state: Literal['active', 'expired', 'pending', 'revoked'] | None | UnsetType = UNSET, options: Options = Options()) -> Iterator[Grant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, principal=principal, role=role, state=state, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Grant], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, role: str | None | UnsetType = UNSET, state: Literal['active', 'expired', 'pending', 'revoked'] | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[Grant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit, 'principal': principal, 'role': role, 'state': state}
        return Watch(
            self.transport, 'grants.list', input, PageGrant, listed=True, identify=identify, watching=watching, options=options
        )

    def revoke(self, *, grant_id: str, options: Options = Options()) -> Grant:
        """Take a grant back; it acts at the next request of whoever had it."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        answer: Grant = self.transport.call(
            'grants.revoke', input, Grant, mutation=True, options=options
        )
        return answer


class IamMethods:
    """iam."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def batch_check(self, *, tenant_id: str, checks: builtins.list[OneCheck], options: Options = Options()) -> BatchChecked:
        """Answer up to 50 questions at once."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'checks': checks}
        answer: BatchChecked = self.transport.call(
            'iam.batchCheck', input, BatchChecked, mutation=False, options=options
        )
        return answer

    def batch_check_watch(self, *, tenant_id: str, checks: builtins.list[OneCheck], watching: Watching = Watching(), options: Options = Options()) -> Watch[BatchChecked]:
        """The answers of `batch_check`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'checks': checks}
        return Watch(
            self.transport, 'iam.batchCheck', input, BatchChecked, watching=watching, options=options
        )

    def catalog(self, *, tenant_id: str, options: Options = Options()) -> CatalogAnswer:
        """List the actions and resource types that can be granted, and the built-in roles."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: CatalogAnswer = self.transport.call(
            'iam.catalog', input, CatalogAnswer, mutation=False, options=options
        )
        return answer

    def catalog_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> Watch[CatalogAnswer]:
        """The answers of `catalog`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return Watch(
            self.transport, 'iam.catalog', input, CatalogAnswer, watching=watching, options=options
        )

    def check(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> Checked:
        """Tell whether a principal may do an action."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        answer: Checked = self.transport.call(
            'iam.check', input, Checked, mutation=False, options=options
        )
        return answer

    def check_watch(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Checked]:
        """The answers of `check`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        return Watch(
            self.transport, 'iam.check', input, Checked, watching=watching, options=options
        )

    def explain(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> Explained:
        """Tell why a principal may or may not do an action: every grant on the way from the root, and what decided."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        answer: Explained = self.transport.call(
            'iam.explain', input, Explained, mutation=False, options=options
        )
        return answer

    def explain_watch(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Explained]:
        """The answers of `explain`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        return Watch(
            self.transport, 'iam.explain', input, Explained, watching=watching, options=options
        )

    def list_allowed(self, *, tenant_id: str, action: str, resource_type: str | UnsetType = UNSET, ids: builtins.list[str] | None | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, options: Options = Options()) -> AllowedIds:
        """Tell which of up to 1,000 resources a principal may do an action on; never of what is not the tenant's."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'resourceType': resource_type, 'ids': ids, 'principal': principal}
        answer: AllowedIds = self.transport.call(
            'iam.listAllowed', input, AllowedIds, mutation=False, options=options
        )
        return answer

    def list_allowed_watch(self, *, tenant_id: str, action: str, resource_type: str | UnsetType = UNSET, ids: builtins.list[str] | None | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[AllowedIds]:
        """The answers of `list_allowed`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'resourceType': resource_type, 'ids': ids, 'principal': principal}
        return Watch(
            self.transport, 'iam.listAllowed', input, AllowedIds, watching=watching, options=options
        )

    def who_can(self, *, tenant_id: str, action: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> PageAllowed:
        """List the principals that may do an action, by id."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'cursor': cursor, 'limit': limit, 'resource': resource}
        answer: PageAllowed = self.transport.call(
            'iam.whoCan', input, PageAllowed, mutation=False, options=options
        )
        return answer

    def who_can_all(self, *, tenant_id: str, action: str, limit: int | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> Iterator[Allowed]:
        """Every item of `who_can`, page after page."""
        cursor: str = ''
        while True:
            page = self.who_can(tenant_id=tenant_id, action=action, cursor=cursor, limit=limit, resource=resource, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def who_can_watch(self, *, identify: Callable[[Allowed], str], tenant_id: str, action: str, limit: int | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[Allowed]]:
        """Changes of the items of `who_can`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'limit': limit, 'resource': resource}
        return Watch(
            self.transport, 'iam.whoCan', input, PageAllowed, listed=True, identify=identify, watching=watching, options=options
        )


class PluginsAcmeWidgetsMethods:
    """plugins.acme.widgets."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def count(self, *, tenant_id: str, options: Options = Options()) -> Counted:
        """Count a tenant's widgets."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: Counted = self.transport.call(
            'plugins.acme.widgets.count', input, Counted, mutation=False, options=options
        )
        return answer

    def count_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> Watch[Counted]:
        """The answers of `count`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return Watch(
            self.transport, 'plugins.acme.widgets.count', input, Counted, watching=watching, options=options
        )

    def poke(self, *, tenant_id: str, widget_id: str, options: Options = Options()) -> Poked:
        """Make a widget, tell of it, and wake the reconciler for its tenant."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'widgetId': widget_id}
        answer: Poked = self.transport.call(
            'plugins.acme.widgets.poke', input, Poked, mutation=True, options=options
        )
        return answer


class PluginsAcmeMethods:
    """plugins.acme."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.widgets = PluginsAcmeWidgetsMethods(transport)


class PluginsMethods:
    """plugins."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.acme = PluginsAcmeMethods(transport)


class PrincipalsMethods:
    """principals."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def disable(self, *, principal: str, reason: str, options: Options = Options()) -> Person:
        """Refuse everything to a person from the next request on: sessions, tokens, and what a provider vouches for."""
        input: builtins.dict[str, Any] = {'principal': principal, 'reason': reason}
        answer: Person = self.transport.call(
            'principals.disable', input, Person, mutation=True, options=options
        )
        return answer

    def enable(self, *, principal: str, options: Options = Options()) -> Person:
        """Let a disabled person in again; the caller must hold what that person gets back."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: Person = self.transport.call(
            'principals.enable', input, Person, mutation=True, options=options
        )
        return answer

    def get(self, *, principal: str, options: Options = Options()) -> Person:
        """Show a person."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: Person = self.transport.call(
            'principals.get', input, Person, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, principal: str, watching: Watching = Watching(), options: Options = Options()) -> Watch[Person]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'principal': principal}
        return Watch(
            self.transport, 'principals.get', input, Person, watching=watching, options=options
        )

    def list(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, kind: Literal['external', 'user'] | None | UnsetType = UNSET, disabled: bool | None | UnsetType = UNSET, options: Options = Options()) -> PagePerson:
        """List people that rights were ever granted to by id, disabled ones included."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'kind': kind, 'disabled': disabled}
        answer: PagePerson = self.transport.call(
            'principals.list', input, PagePerson, mutation=False, options=options
        )
        return answer

    def list_all(self, *, limit: int | UnsetType = UNSET, kind: Literal['external', 'user'] | None | UnsetType = UNSET, disabled: bool | None | UnsetType = UNSET, options: Options = Options()) -> Iterator[Person]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(cursor=cursor, limit=limit, kind=kind, disabled=disabled, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Person], str], limit: int | UnsetType = UNSET, kind: Literal['external', 'user'] | None | UnsetType = UNSET, disabled: bool | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[Person]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'kind': kind, 'disabled': disabled}
        return Watch(
            self.transport, 'principals.list', input, PagePerson, listed=True, identify=identify, watching=watching, options=options
        )


class RolesMethods:
    """roles."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def create(self, *, tenant_id: str, name: str, permits: builtins.list[str], but_not: builtins.list[str] | UnsetType = UNSET, options: Options = Options()) -> Role:
        """Make a role that can be granted in the tenant and below."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'name': name, 'permits': permits, 'butNot': but_not}
        answer: Role = self.transport.call(
            'roles.create', input, Role, mutation=True, options=options
        )
        return answer

    def delete(self, *, role_id: str, options: Options = Options()) -> Role:
        """End a role that no grant conveys."""
        input: builtins.dict[str, Any] = {'roleId': role_id}
        answer: Role = self.transport.call(
            'roles.delete', input, Role, mutation=True, options=options
        )
        return answer

    def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageRole:
        """List the roles that can be granted in a tenant: the built-in ones, then its own and those above, by id."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageRole = self.transport.call(
            'roles.list', input, PageRole, mutation=False, options=options
        )
        return answer

    def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> Iterator[Role]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Role], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[Role]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return Watch(
            self.transport, 'roles.list', input, PageRole, listed=True, identify=identify, watching=watching, options=options
        )

    def update(self, *, role_id: str, permits: builtins.list[str], but_not: builtins.list[str] | UnsetType = UNSET, options: Options = Options()) -> Role:
        """Change what a role conveys, for everybody who has it and never beyond what the caller could give them."""
        input: builtins.dict[str, Any] = {'roleId': role_id, 'permits': permits, 'butNot': but_not}
        answer: Role = self.transport.call(
            'roles.update', input, Role, mutation=True, options=options
        )
        return answer


class ServiceAccountsMethods:
    """serviceAccounts."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def create(self, *, tenant_id: str, name: str, label: str, options: Options = Options()) -> ServiceAccount:
        """Make a service account; grants give it rights and tokens let it in."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'name': name, 'label': label}
        answer: ServiceAccount = self.transport.call(
            'serviceAccounts.create', input, ServiceAccount, mutation=True, options=options
        )
        return answer

    def disable(self, *, principal: str, options: Options = Options()) -> ServiceAccount:
        """Refuse everything to a service account from its next request on, its tokens included."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: ServiceAccount = self.transport.call(
            'serviceAccounts.disable', input, ServiceAccount, mutation=True, options=options
        )
        return answer

    def enable(self, *, principal: str, options: Options = Options()) -> ServiceAccount:
        """Let a disabled service account in again; the caller must hold what it gets back."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: ServiceAccount = self.transport.call(
            'serviceAccounts.enable', input, ServiceAccount, mutation=True, options=options
        )
        return answer

    def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageServiceAccount:
        """List a tenant's service accounts by id."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageServiceAccount = self.transport.call(
            'serviceAccounts.list', input, PageServiceAccount, mutation=False, options=options
        )
        return answer

    def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> Iterator[ServiceAccount]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[ServiceAccount], str], tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[ServiceAccount]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return Watch(
            self.transport, 'serviceAccounts.list', input, PageServiceAccount, listed=True, identify=identify, watching=watching, options=options
        )


class SystemMethods:
    """system."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def modules(self, *, options: Options = Options()) -> HostedModules:
        """List the hosted modules in hosted order."""
        input: builtins.dict[str, Any] = {}
        answer: HostedModules = self.transport.call(
            'system.modules', input, HostedModules, mutation=False, options=options
        )
        return answer

    def modules_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> Watch[HostedModules]:
        """The answers of `modules`, as they come."""
        input: builtins.dict[str, Any] = {}
        return Watch(
            self.transport, 'system.modules', input, HostedModules, watching=watching, options=options
        )

    def profiles(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, name: str | None | UnsetType = UNSET, options: Options = Options()) -> PageProfile:
        """List the profiles of hosted modules by name and version."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'name': name}
        answer: PageProfile = self.transport.call(
            'system.profiles', input, PageProfile, mutation=False, options=options
        )
        return answer

    def profiles_all(self, *, limit: int | UnsetType = UNSET, name: str | None | UnsetType = UNSET, options: Options = Options()) -> Iterator[Profile]:
        """Every item of `profiles`, page after page."""
        cursor: str = ''
        while True:
            page = self.profiles(cursor=cursor, limit=limit, name=name, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def profiles_watch(self, *, identify: Callable[[Profile], str], limit: int | UnsetType = UNSET, name: str | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[Profile]]:
        """Changes of the items of `profiles`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'name': name}
        return Watch(
            self.transport, 'system.profiles', input, PageProfile, listed=True, identify=identify, watching=watching, options=options
        )

    def self_check(self, *, options: Options = Options()) -> Report:
        """Report what an operator should act on, as `manage.py doctor` does."""
        input: builtins.dict[str, Any] = {}
        answer: Report = self.transport.call(
            'system.selfCheck', input, Report, mutation=False, options=options
        )
        return answer

    def self_check_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> Watch[Report]:
        """The answers of `self_check`, as they come."""
        input: builtins.dict[str, Any] = {}
        return Watch(
            self.transport, 'system.selfCheck', input, Report, watching=watching, options=options
        )

    def version(self, *, options: Options = Options()) -> Versions:
        """Tell the versions of the core, Django, Python and PostgreSQL."""
        input: builtins.dict[str, Any] = {}
        answer: Versions = self.transport.call(
            'system.version', input, Versions, mutation=False, options=options
        )
        return answer

    def version_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> Watch[Versions]:
        """The answers of `version`, as they come."""
        input: builtins.dict[str, Any] = {}
        return Watch(
            self.transport, 'system.version', input, Versions, watching=watching, options=options
        )


class TenantTreeMethods:
    """tenantTree."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def create(self, *, parent_id: str, tenant_id: str, kind: Literal['organisation', 'project'], name: str, owner: str | None | UnsetType = UNSET, ceiling: builtins.list[str] | None | UnsetType = UNSET, options: Options = Options()) -> IamTreeTenant:
        """Make a tenant below another one."""
        input: builtins.dict[str, Any] = {'parentId': parent_id, 'tenantId': tenant_id, 'kind': kind, 'name': name, 'owner': owner, 'ceiling': ceiling}
        answer: IamTreeTenant = self.transport.call(
            'tenantTree.create', input, IamTreeTenant, mutation=True, options=options
        )
        return answer

    def get(self, *, tenant_id: str, options: Options = Options()) -> IamTreeTenant:
        """Show where a tenant stands, or stood: the list above it still shows one that is gone."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: IamTreeTenant = self.transport.call(
            'tenantTree.get', input, IamTreeTenant, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> Watch[IamTreeTenant]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return Watch(
            self.transport, 'tenantTree.get', input, IamTreeTenant, watching=watching, options=options
        )

    def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> ContractPagesPage2:
        """List the tenants right below one by id, except those that `get` would refuse to this caller."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: ContractPagesPage2 = self.transport.call(
            'tenantTree.list', input, ContractPagesPage2, mutation=False, options=options
        )
        return answer

    def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> Iterator[IamTreeTenant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[IamTreeTenant], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[IamTreeTenant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return Watch(
            self.transport, 'tenantTree.list', input, ContractPagesPage2, listed=True, identify=identify, watching=watching, options=options
        )

    def set_ceiling(self, *, parent_id: str, tenant_id: str, ceiling: builtins.list[str] | None, options: Options = Options()) -> IamTreeTenant:
        """Bound what may be done in a tenant and below; said by the tenant above it, within its own ceiling."""
        input: builtins.dict[str, Any] = {'parentId': parent_id, 'tenantId': tenant_id, 'ceiling': ceiling}
        answer: IamTreeTenant = self.transport.call(
            'tenantTree.setCeiling', input, IamTreeTenant, mutation=True, options=options
        )
        return answer


class TenantsMethods:
    """tenants."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def delete(self, *, tenant_id: str, reason: str, options: Options = Options()) -> TenancyTenant:
        """Begin the teardown of a tenant: nothing can be added to it, and every module ends what it holds for it."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason}
        answer: TenancyTenant = self.transport.call(
            'tenants.delete', input, TenancyTenant, mutation=True, options=options
        )
        return answer

    def deletion_status(self, *, tenant_id: str, options: Options = Options()) -> DeletionStatus:
        """Tell how far a tenant's teardown is, and which modules have not let go of it."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: DeletionStatus = self.transport.call(
            'tenants.deletionStatus', input, DeletionStatus, mutation=False, options=options
        )
        return answer

    def deletion_status_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> Watch[DeletionStatus]:
        """The answers of `deletion_status`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return Watch(
            self.transport, 'tenants.deletionStatus', input, DeletionStatus, watching=watching, options=options
        )

    def get(self, *, tenant_id: str, options: Options = Options()) -> TenancyTenant:
        """Tell a tenant's state."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: TenancyTenant = self.transport.call(
            'tenants.get', input, TenancyTenant, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> Watch[TenancyTenant]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return Watch(
            self.transport, 'tenants.get', input, TenancyTenant, watching=watching, options=options
        )

    def list(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, state: Literal['active', 'deleting', 'suspended', 'torn_down'] | None | UnsetType = UNSET, options: Options = Options()) -> ContractPagesPage:
        """List tenants whose state was ever changed by id, except those that `get` would refuse to this caller."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'state': state}
        answer: ContractPagesPage = self.transport.call(
            'tenants.list', input, ContractPagesPage, mutation=False, options=options
        )
        return answer

    def list_all(self, *, limit: int | UnsetType = UNSET, state: Literal['active', 'deleting', 'suspended', 'torn_down'] | None | UnsetType = UNSET, options: Options = Options()) -> Iterator[TenancyTenant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(cursor=cursor, limit=limit, state=state, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[TenancyTenant], str], limit: int | UnsetType = UNSET, state: Literal['active', 'deleting', 'suspended', 'torn_down'] | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[TenancyTenant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'state': state}
        return Watch(
            self.transport, 'tenants.list', input, ContractPagesPage, listed=True, identify=identify, watching=watching, options=options
        )

    def resume(self, *, tenant_id: str, reason: str, options: Options = Options()) -> TenancyTenant:
        """Let a suspended tenant change things again."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason}
        answer: TenancyTenant = self.transport.call(
            'tenants.resume', input, TenancyTenant, mutation=True, options=options
        )
        return answer

    def suspend(self, *, tenant_id: str, reason: str, options: Options = Options()) -> TenancyTenant:
        """Refuse every change to a tenant from now on; what runs goes on running, and reads are allowed."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason}
        answer: TenancyTenant = self.transport.call(
            'tenants.suspend', input, TenancyTenant, mutation=True, options=options
        )
        return answer


class TokensMethods:
    """tokens."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def create(self, *, tenant_id: str, label: str, principal: str | None | UnsetType = UNSET, acts_in: str | None | UnsetType = UNSET, everywhere: bool | UnsetType = UNSET, actions: builtins.list[str] | None | UnsetType = UNSET, expires_at: str | None | UnsetType = UNSET, options: Options = Options()) -> NewSecret:
        """Make a token and show its secret, once."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'label': label, 'principal': principal, 'actsIn': acts_in, 'everywhere': everywhere, 'actions': actions, 'expiresAt': expires_at}
        answer: NewSecret = self.transport.call(
            'tokens.create', input, NewSecret, mutation=True, options=options
        )
        return answer

    def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageToken:
        """List tokens by id, ended ones included; never a secret."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageToken = self.transport.call(
            'tokens.list', input, PageToken, mutation=False, options=options
        )
        return answer

    def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> Iterator[Token]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Token], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[Token]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return Watch(
            self.transport, 'tokens.list', input, PageToken, listed=True, identify=identify, watching=watching, options=options
        )

    def revoke(self, *, token_id: str, options: Options = Options()) -> Token:
        """End a token; it is refused from the next request on."""
        input: builtins.dict[str, Any] = {'tokenId': token_id}
        answer: Token = self.transport.call(
            'tokens.revoke', input, Token, mutation=True, options=options
        )
        return answer

    def rotate(self, *, token_id: str, grace_seconds: int | UnsetType = UNSET, options: Options = Options()) -> NewSecret:
        """Put a new secret in a token's place; the old one stays good for the grace that is given."""
        input: builtins.dict[str, Any] = {'tokenId': token_id, 'graceSeconds': grace_seconds}
        answer: NewSecret = self.transport.call(
            'tokens.rotate', input, NewSecret, mutation=True, options=options
        )
        return answer


class WorkMethods:
    """work."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def list(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, kind: str | None | UnsetType = UNSET, attempts: int | UnsetType = UNSET, options: Options = Options()) -> PageQueuedKey:
        """List queued keys by reconciler and key."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'kind': kind, 'attempts': attempts}
        answer: PageQueuedKey = self.transport.call(
            'work.list', input, PageQueuedKey, mutation=False, options=options
        )
        return answer

    def list_all(self, *, limit: int | UnsetType = UNSET, kind: str | None | UnsetType = UNSET, attempts: int | UnsetType = UNSET, options: Options = Options()) -> Iterator[QueuedKey]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = self.list(cursor=cursor, limit=limit, kind=kind, attempts=attempts, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[QueuedKey], str], limit: int | UnsetType = UNSET, kind: str | None | UnsetType = UNSET, attempts: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> Watch[Change[QueuedKey]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'kind': kind, 'attempts': attempts}
        return Watch(
            self.transport, 'work.list', input, PageQueuedKey, listed=True, identify=identify, watching=watching, options=options
        )

    def pause(self, *, reason: str, kind: str | None | UnsetType = UNSET, member: str | None | UnsetType = UNSET, options: Options = Options()) -> Paused:
        """Start no more keys of a reconciler, or on a member; what runs ends by itself, and keys wait."""
        input: builtins.dict[str, Any] = {'reason': reason, 'kind': kind, 'member': member}
        answer: Paused = self.transport.call(
            'work.pause', input, Paused, mutation=True, options=options
        )
        return answer

    def paused(self, *, options: Options = Options()) -> AllPaused:
        """List what is paused, by whom and why."""
        input: builtins.dict[str, Any] = {}
        answer: AllPaused = self.transport.call(
            'work.paused', input, AllPaused, mutation=False, options=options
        )
        return answer

    def paused_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> Watch[AllPaused]:
        """The answers of `paused`, as they come."""
        input: builtins.dict[str, Any] = {}
        return Watch(
            self.transport, 'work.paused', input, AllPaused, watching=watching, options=options
        )

    def requeue(self, *, kind: str, key: str, options: Options = Options()) -> Requeued:
        """Make a queued key due now, whatever its backoff."""
        input: builtins.dict[str, Any] = {'kind': kind, 'key': key}
        answer: Requeued = self.transport.call(
            'work.requeue', input, Requeued, mutation=True, options=options
        )
        return answer

    def resume(self, *, kind: str | None | UnsetType = UNSET, member: str | None | UnsetType = UNSET, options: Options = Options()) -> Resumed:
        """Let a paused reconciler or member go on, also one that is hosted or lives no more."""
        input: builtins.dict[str, Any] = {'kind': kind, 'member': member}
        answer: Resumed = self.transport.call(
            'work.resume', input, Resumed, mutation=True, options=options
        )
        return answer


class Client:
    """Every hosted method."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.break_glass = BreakGlassMethods(transport)
        self.grants = GrantsMethods(transport)
        self.iam = IamMethods(transport)
        self.plugins = PluginsMethods(transport)
        self.principals = PrincipalsMethods(transport)
        self.roles = RolesMethods(transport)
        self.service_accounts = ServiceAccountsMethods(transport)
        self.system = SystemMethods(transport)
        self.tenant_tree = TenantTreeMethods(transport)
        self.tenants = TenantsMethods(transport)
        self.tokens = TokensMethods(transport)
        self.work = WorkMethods(transport)


class AsyncBreakGlassMethods:
    """breakGlass."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def activate(self, *, tenant_id: str, reason: str, minutes: int | UnsetType = UNSET, options: Options = Options()) -> Grant:
        """Become an owner of the tenant for some minutes; the event iam.break-glass-activated is the alarm."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason, 'minutes': minutes}
        answer: Grant = await self.transport.call(
            'breakGlass.activate', input, Grant, mutation=True, options=options
        )
        return answer

    async def end(self, *, grant_id: str, options: Options = Options()) -> Grant:
        """End it before its time."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        answer: Grant = await self.transport.call(
            'breakGlass.end', input, Grant, mutation=True, options=options
        )
        return answer

    async def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageGrant:
        """Show who broke the glass, when and why; also of a tenant that is gone."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageGrant = await self.transport.call(
            'breakGlass.list', input, PageGrant, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[Grant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Grant], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[Grant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return AsyncWatch(
            self.transport, 'breakGlass.list', input, PageGrant, listed=True, identify=identify, watching=watching, options=options
        )


class AsyncGrantsMethods:
    """grants."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def create(self, *, tenant_id: str, principal: str, effect: Literal['forbid', 'permit'] | UnsetType = UNSET, role: str | None | UnsetType = UNSET, actions: builtins.list[str] | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, inherit: bool | UnsetType = UNSET, starts_at: str | None | UnsetType = UNSET, expires_at: str | None | UnsetType = UNSET, reason: str | UnsetType = UNSET, options: Options = Options()) -> Grant:
        """Give somebody a role or actions, never more than the caller holds, or forbid somebody actions."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'principal': principal, 'effect': effect, 'role': role, 'actions': actions, 'resource': resource, 'inherit': inherit, 'startsAt': starts_at, 'expiresAt': expires_at, 'reason': reason}
        answer: Grant = await self.transport.call(
            'grants.create', input, Grant, mutation=True, options=options
        )
        return answer

    async def get(self, *, grant_id: str, options: Options = Options()) -> Grant:
        """Show a grant."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        answer: Grant = await self.transport.call(
            'grants.get', input, Grant, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, grant_id: str, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Grant]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        return AsyncWatch(
            self.transport, 'grants.get', input, Grant, watching=watching, options=options
        )

    async def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, role: str | None | UnsetType = UNSET, state: Literal['active', 'expired', 'pending', 'revoked'] | None | UnsetType = UNSET, options: Options = Options()) -> PageGrant:
        """List a tenant's own grants by id, ended ones included."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit, 'principal': principal, 'role': role, 'state': state}
        answer: PageGrant = await self.transport.call(
            'grants.list', input, PageGrant, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, role: str | None | UnsetType = UNSET, state: Literal['active', 'expired', 'pending', 'revoked'] | None | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[Grant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, principal=principal, role=role, state=state, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Grant], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, role: str | None | UnsetType = UNSET, state: Literal['active', 'expired', 'pending', 'revoked'] | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[Grant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit, 'principal': principal, 'role': role, 'state': state}
        return AsyncWatch(
            self.transport, 'grants.list', input, PageGrant, listed=True, identify=identify, watching=watching, options=options
        )

    async def revoke(self, *, grant_id: str, options: Options = Options()) -> Grant:
        """Take a grant back; it acts at the next request of whoever had it."""
        input: builtins.dict[str, Any] = {'grantId': grant_id}
        answer: Grant = await self.transport.call(
            'grants.revoke', input, Grant, mutation=True, options=options
        )
        return answer


class AsyncIamMethods:
    """iam."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def batch_check(self, *, tenant_id: str, checks: builtins.list[OneCheck], options: Options = Options()) -> BatchChecked:
        """Answer up to 50 questions at once."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'checks': checks}
        answer: BatchChecked = await self.transport.call(
            'iam.batchCheck', input, BatchChecked, mutation=False, options=options
        )
        return answer

    def batch_check_watch(self, *, tenant_id: str, checks: builtins.list[OneCheck], watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[BatchChecked]:
        """The answers of `batch_check`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'checks': checks}
        return AsyncWatch(
            self.transport, 'iam.batchCheck', input, BatchChecked, watching=watching, options=options
        )

    async def catalog(self, *, tenant_id: str, options: Options = Options()) -> CatalogAnswer:
        """List the actions and resource types that can be granted, and the built-in roles."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: CatalogAnswer = await self.transport.call(
            'iam.catalog', input, CatalogAnswer, mutation=False, options=options
        )
        return answer

    def catalog_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[CatalogAnswer]:
        """The answers of `catalog`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return AsyncWatch(
            self.transport, 'iam.catalog', input, CatalogAnswer, watching=watching, options=options
        )

    async def check(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> Checked:
        """Tell whether a principal may do an action."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        answer: Checked = await self.transport.call(
            'iam.check', input, Checked, mutation=False, options=options
        )
        return answer

    def check_watch(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Checked]:
        """The answers of `check`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        return AsyncWatch(
            self.transport, 'iam.check', input, Checked, watching=watching, options=options
        )

    async def explain(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> Explained:
        """Tell why a principal may or may not do an action: every grant on the way from the root, and what decided."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        answer: Explained = await self.transport.call(
            'iam.explain', input, Explained, mutation=False, options=options
        )
        return answer

    def explain_watch(self, *, tenant_id: str, action: str, principal: str | None | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Explained]:
        """The answers of `explain`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'principal': principal, 'resource': resource}
        return AsyncWatch(
            self.transport, 'iam.explain', input, Explained, watching=watching, options=options
        )

    async def list_allowed(self, *, tenant_id: str, action: str, resource_type: str | UnsetType = UNSET, ids: builtins.list[str] | None | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, options: Options = Options()) -> AllowedIds:
        """Tell which of up to 1,000 resources a principal may do an action on; never of what is not the tenant's."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'resourceType': resource_type, 'ids': ids, 'principal': principal}
        answer: AllowedIds = await self.transport.call(
            'iam.listAllowed', input, AllowedIds, mutation=False, options=options
        )
        return answer

    def list_allowed_watch(self, *, tenant_id: str, action: str, resource_type: str | UnsetType = UNSET, ids: builtins.list[str] | None | UnsetType = UNSET, principal: str | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[AllowedIds]:
        """The answers of `list_allowed`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'resourceType': resource_type, 'ids': ids, 'principal': principal}
        return AsyncWatch(
            self.transport, 'iam.listAllowed', input, AllowedIds, watching=watching, options=options
        )

    async def who_can(self, *, tenant_id: str, action: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> PageAllowed:
        """List the principals that may do an action, by id."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'cursor': cursor, 'limit': limit, 'resource': resource}
        answer: PageAllowed = await self.transport.call(
            'iam.whoCan', input, PageAllowed, mutation=False, options=options
        )
        return answer

    async def who_can_all(self, *, tenant_id: str, action: str, limit: int | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[Allowed]:
        """Every item of `who_can`, page after page."""
        cursor: str = ''
        while True:
            page = await self.who_can(tenant_id=tenant_id, action=action, cursor=cursor, limit=limit, resource=resource, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def who_can_watch(self, *, identify: Callable[[Allowed], str], tenant_id: str, action: str, limit: int | UnsetType = UNSET, resource: ResourceRef | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[Allowed]]:
        """Changes of the items of `who_can`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'action': action, 'limit': limit, 'resource': resource}
        return AsyncWatch(
            self.transport, 'iam.whoCan', input, PageAllowed, listed=True, identify=identify, watching=watching, options=options
        )


class AsyncPluginsAcmeWidgetsMethods:
    """plugins.acme.widgets."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def count(self, *, tenant_id: str, options: Options = Options()) -> Counted:
        """Count a tenant's widgets."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: Counted = await self.transport.call(
            'plugins.acme.widgets.count', input, Counted, mutation=False, options=options
        )
        return answer

    def count_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Counted]:
        """The answers of `count`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return AsyncWatch(
            self.transport, 'plugins.acme.widgets.count', input, Counted, watching=watching, options=options
        )

    async def poke(self, *, tenant_id: str, widget_id: str, options: Options = Options()) -> Poked:
        """Make a widget, tell of it, and wake the reconciler for its tenant."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'widgetId': widget_id}
        answer: Poked = await self.transport.call(
            'plugins.acme.widgets.poke', input, Poked, mutation=True, options=options
        )
        return answer


class AsyncPluginsAcmeMethods:
    """plugins.acme."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport
        self.widgets = AsyncPluginsAcmeWidgetsMethods(transport)


class AsyncPluginsMethods:
    """plugins."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport
        self.acme = AsyncPluginsAcmeMethods(transport)


class AsyncPrincipalsMethods:
    """principals."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def disable(self, *, principal: str, reason: str, options: Options = Options()) -> Person:
        """Refuse everything to a person from the next request on: sessions, tokens, and what a provider vouches for."""
        input: builtins.dict[str, Any] = {'principal': principal, 'reason': reason}
        answer: Person = await self.transport.call(
            'principals.disable', input, Person, mutation=True, options=options
        )
        return answer

    async def enable(self, *, principal: str, options: Options = Options()) -> Person:
        """Let a disabled person in again; the caller must hold what that person gets back."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: Person = await self.transport.call(
            'principals.enable', input, Person, mutation=True, options=options
        )
        return answer

    async def get(self, *, principal: str, options: Options = Options()) -> Person:
        """Show a person."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: Person = await self.transport.call(
            'principals.get', input, Person, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, principal: str, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Person]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'principal': principal}
        return AsyncWatch(
            self.transport, 'principals.get', input, Person, watching=watching, options=options
        )

    async def list(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, kind: Literal['external', 'user'] | None | UnsetType = UNSET, disabled: bool | None | UnsetType = UNSET, options: Options = Options()) -> PagePerson:
        """List people that rights were ever granted to by id, disabled ones included."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'kind': kind, 'disabled': disabled}
        answer: PagePerson = await self.transport.call(
            'principals.list', input, PagePerson, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, limit: int | UnsetType = UNSET, kind: Literal['external', 'user'] | None | UnsetType = UNSET, disabled: bool | None | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[Person]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(cursor=cursor, limit=limit, kind=kind, disabled=disabled, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Person], str], limit: int | UnsetType = UNSET, kind: Literal['external', 'user'] | None | UnsetType = UNSET, disabled: bool | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[Person]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'kind': kind, 'disabled': disabled}
        return AsyncWatch(
            self.transport, 'principals.list', input, PagePerson, listed=True, identify=identify, watching=watching, options=options
        )


class AsyncRolesMethods:
    """roles."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def create(self, *, tenant_id: str, name: str, permits: builtins.list[str], but_not: builtins.list[str] | UnsetType = UNSET, options: Options = Options()) -> Role:
        """Make a role that can be granted in the tenant and below."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'name': name, 'permits': permits, 'butNot': but_not}
        answer: Role = await self.transport.call(
            'roles.create', input, Role, mutation=True, options=options
        )
        return answer

    async def delete(self, *, role_id: str, options: Options = Options()) -> Role:
        """End a role that no grant conveys."""
        input: builtins.dict[str, Any] = {'roleId': role_id}
        answer: Role = await self.transport.call(
            'roles.delete', input, Role, mutation=True, options=options
        )
        return answer

    async def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageRole:
        """List the roles that can be granted in a tenant: the built-in ones, then its own and those above, by id."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageRole = await self.transport.call(
            'roles.list', input, PageRole, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[Role]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Role], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[Role]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return AsyncWatch(
            self.transport, 'roles.list', input, PageRole, listed=True, identify=identify, watching=watching, options=options
        )

    async def update(self, *, role_id: str, permits: builtins.list[str], but_not: builtins.list[str] | UnsetType = UNSET, options: Options = Options()) -> Role:
        """Change what a role conveys, for everybody who has it and never beyond what the caller could give them."""
        input: builtins.dict[str, Any] = {'roleId': role_id, 'permits': permits, 'butNot': but_not}
        answer: Role = await self.transport.call(
            'roles.update', input, Role, mutation=True, options=options
        )
        return answer


class AsyncServiceAccountsMethods:
    """serviceAccounts."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def create(self, *, tenant_id: str, name: str, label: str, options: Options = Options()) -> ServiceAccount:
        """Make a service account; grants give it rights and tokens let it in."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'name': name, 'label': label}
        answer: ServiceAccount = await self.transport.call(
            'serviceAccounts.create', input, ServiceAccount, mutation=True, options=options
        )
        return answer

    async def disable(self, *, principal: str, options: Options = Options()) -> ServiceAccount:
        """Refuse everything to a service account from its next request on, its tokens included."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: ServiceAccount = await self.transport.call(
            'serviceAccounts.disable', input, ServiceAccount, mutation=True, options=options
        )
        return answer

    async def enable(self, *, principal: str, options: Options = Options()) -> ServiceAccount:
        """Let a disabled service account in again; the caller must hold what it gets back."""
        input: builtins.dict[str, Any] = {'principal': principal}
        answer: ServiceAccount = await self.transport.call(
            'serviceAccounts.enable', input, ServiceAccount, mutation=True, options=options
        )
        return answer

    async def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageServiceAccount:
        """List a tenant's service accounts by id."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageServiceAccount = await self.transport.call(
            'serviceAccounts.list', input, PageServiceAccount, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[ServiceAccount]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[ServiceAccount], str], tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[ServiceAccount]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return AsyncWatch(
            self.transport, 'serviceAccounts.list', input, PageServiceAccount, listed=True, identify=identify, watching=watching, options=options
        )


class AsyncSystemMethods:
    """system."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def modules(self, *, options: Options = Options()) -> HostedModules:
        """List the hosted modules in hosted order."""
        input: builtins.dict[str, Any] = {}
        answer: HostedModules = await self.transport.call(
            'system.modules', input, HostedModules, mutation=False, options=options
        )
        return answer

    def modules_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[HostedModules]:
        """The answers of `modules`, as they come."""
        input: builtins.dict[str, Any] = {}
        return AsyncWatch(
            self.transport, 'system.modules', input, HostedModules, watching=watching, options=options
        )

    async def profiles(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, name: str | None | UnsetType = UNSET, options: Options = Options()) -> PageProfile:
        """List the profiles of hosted modules by name and version."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'name': name}
        answer: PageProfile = await self.transport.call(
            'system.profiles', input, PageProfile, mutation=False, options=options
        )
        return answer

    async def profiles_all(self, *, limit: int | UnsetType = UNSET, name: str | None | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[Profile]:
        """Every item of `profiles`, page after page."""
        cursor: str = ''
        while True:
            page = await self.profiles(cursor=cursor, limit=limit, name=name, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def profiles_watch(self, *, identify: Callable[[Profile], str], limit: int | UnsetType = UNSET, name: str | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[Profile]]:
        """Changes of the items of `profiles`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'name': name}
        return AsyncWatch(
            self.transport, 'system.profiles', input, PageProfile, listed=True, identify=identify, watching=watching, options=options
        )

    async def self_check(self, *, options: Options = Options()) -> Report:
        """Report what an operator should act on, as `manage.py doctor` does."""
        input: builtins.dict[str, Any] = {}
        answer: Report = await self.transport.call(
            'system.selfCheck', input, Report, mutation=False, options=options
        )
        return answer

    def self_check_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Report]:
        """The answers of `self_check`, as they come."""
        input: builtins.dict[str, Any] = {}
        return AsyncWatch(
            self.transport, 'system.selfCheck', input, Report, watching=watching, options=options
        )

    async def version(self, *, options: Options = Options()) -> Versions:
        """Tell the versions of the core, Django, Python and PostgreSQL."""
        input: builtins.dict[str, Any] = {}
        answer: Versions = await self.transport.call(
            'system.version', input, Versions, mutation=False, options=options
        )
        return answer

    def version_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Versions]:
        """The answers of `version`, as they come."""
        input: builtins.dict[str, Any] = {}
        return AsyncWatch(
            self.transport, 'system.version', input, Versions, watching=watching, options=options
        )


class AsyncTenantTreeMethods:
    """tenantTree."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def create(self, *, parent_id: str, tenant_id: str, kind: Literal['organisation', 'project'], name: str, owner: str | None | UnsetType = UNSET, ceiling: builtins.list[str] | None | UnsetType = UNSET, options: Options = Options()) -> IamTreeTenant:
        """Make a tenant below another one."""
        input: builtins.dict[str, Any] = {'parentId': parent_id, 'tenantId': tenant_id, 'kind': kind, 'name': name, 'owner': owner, 'ceiling': ceiling}
        answer: IamTreeTenant = await self.transport.call(
            'tenantTree.create', input, IamTreeTenant, mutation=True, options=options
        )
        return answer

    async def get(self, *, tenant_id: str, options: Options = Options()) -> IamTreeTenant:
        """Show where a tenant stands, or stood: the list above it still shows one that is gone."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: IamTreeTenant = await self.transport.call(
            'tenantTree.get', input, IamTreeTenant, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[IamTreeTenant]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return AsyncWatch(
            self.transport, 'tenantTree.get', input, IamTreeTenant, watching=watching, options=options
        )

    async def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> ContractPagesPage2:
        """List the tenants right below one by id, except those that `get` would refuse to this caller."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: ContractPagesPage2 = await self.transport.call(
            'tenantTree.list', input, ContractPagesPage2, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[IamTreeTenant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[IamTreeTenant], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[IamTreeTenant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return AsyncWatch(
            self.transport, 'tenantTree.list', input, ContractPagesPage2, listed=True, identify=identify, watching=watching, options=options
        )

    async def set_ceiling(self, *, parent_id: str, tenant_id: str, ceiling: builtins.list[str] | None, options: Options = Options()) -> IamTreeTenant:
        """Bound what may be done in a tenant and below; said by the tenant above it, within its own ceiling."""
        input: builtins.dict[str, Any] = {'parentId': parent_id, 'tenantId': tenant_id, 'ceiling': ceiling}
        answer: IamTreeTenant = await self.transport.call(
            'tenantTree.setCeiling', input, IamTreeTenant, mutation=True, options=options
        )
        return answer


class AsyncTenantsMethods:
    """tenants."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def delete(self, *, tenant_id: str, reason: str, options: Options = Options()) -> TenancyTenant:
        """Begin the teardown of a tenant: nothing can be added to it, and every module ends what it holds for it."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason}
        answer: TenancyTenant = await self.transport.call(
            'tenants.delete', input, TenancyTenant, mutation=True, options=options
        )
        return answer

    async def deletion_status(self, *, tenant_id: str, options: Options = Options()) -> DeletionStatus:
        """Tell how far a tenant's teardown is, and which modules have not let go of it."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: DeletionStatus = await self.transport.call(
            'tenants.deletionStatus', input, DeletionStatus, mutation=False, options=options
        )
        return answer

    def deletion_status_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[DeletionStatus]:
        """The answers of `deletion_status`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return AsyncWatch(
            self.transport, 'tenants.deletionStatus', input, DeletionStatus, watching=watching, options=options
        )

    async def get(self, *, tenant_id: str, options: Options = Options()) -> TenancyTenant:
        """Tell a tenant's state."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        answer: TenancyTenant = await self.transport.call(
            'tenants.get', input, TenancyTenant, mutation=False, options=options
        )
        return answer

    def get_watch(self, *, tenant_id: str, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[TenancyTenant]:
        """The answers of `get`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id}
        return AsyncWatch(
            self.transport, 'tenants.get', input, TenancyTenant, watching=watching, options=options
        )

    async def list(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, state: Literal['active', 'deleting', 'suspended', 'torn_down'] | None | UnsetType = UNSET, options: Options = Options()) -> ContractPagesPage:
        """List tenants whose state was ever changed by id, except those that `get` would refuse to this caller."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'state': state}
        answer: ContractPagesPage = await self.transport.call(
            'tenants.list', input, ContractPagesPage, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, limit: int | UnsetType = UNSET, state: Literal['active', 'deleting', 'suspended', 'torn_down'] | None | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[TenancyTenant]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(cursor=cursor, limit=limit, state=state, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[TenancyTenant], str], limit: int | UnsetType = UNSET, state: Literal['active', 'deleting', 'suspended', 'torn_down'] | None | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[TenancyTenant]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'state': state}
        return AsyncWatch(
            self.transport, 'tenants.list', input, ContractPagesPage, listed=True, identify=identify, watching=watching, options=options
        )

    async def resume(self, *, tenant_id: str, reason: str, options: Options = Options()) -> TenancyTenant:
        """Let a suspended tenant change things again."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason}
        answer: TenancyTenant = await self.transport.call(
            'tenants.resume', input, TenancyTenant, mutation=True, options=options
        )
        return answer

    async def suspend(self, *, tenant_id: str, reason: str, options: Options = Options()) -> TenancyTenant:
        """Refuse every change to a tenant from now on; what runs goes on running, and reads are allowed."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'reason': reason}
        answer: TenancyTenant = await self.transport.call(
            'tenants.suspend', input, TenancyTenant, mutation=True, options=options
        )
        return answer


class AsyncTokensMethods:
    """tokens."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def create(self, *, tenant_id: str, label: str, principal: str | None | UnsetType = UNSET, acts_in: str | None | UnsetType = UNSET, everywhere: bool | UnsetType = UNSET, actions: builtins.list[str] | None | UnsetType = UNSET, expires_at: str | None | UnsetType = UNSET, options: Options = Options()) -> NewSecret:
        """Make a token and show its secret, once."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'label': label, 'principal': principal, 'actsIn': acts_in, 'everywhere': everywhere, 'actions': actions, 'expiresAt': expires_at}
        answer: NewSecret = await self.transport.call(
            'tokens.create', input, NewSecret, mutation=True, options=options
        )
        return answer

    async def list(self, *, tenant_id: str, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, options: Options = Options()) -> PageToken:
        """List tokens by id, ended ones included; never a secret."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'cursor': cursor, 'limit': limit}
        answer: PageToken = await self.transport.call(
            'tokens.list', input, PageToken, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, tenant_id: str, limit: int | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[Token]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(tenant_id=tenant_id, cursor=cursor, limit=limit, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[Token], str] | None = None, tenant_id: str, limit: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[Token]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'tenantId': tenant_id, 'limit': limit}
        return AsyncWatch(
            self.transport, 'tokens.list', input, PageToken, listed=True, identify=identify, watching=watching, options=options
        )

    async def revoke(self, *, token_id: str, options: Options = Options()) -> Token:
        """End a token; it is refused from the next request on."""
        input: builtins.dict[str, Any] = {'tokenId': token_id}
        answer: Token = await self.transport.call(
            'tokens.revoke', input, Token, mutation=True, options=options
        )
        return answer

    async def rotate(self, *, token_id: str, grace_seconds: int | UnsetType = UNSET, options: Options = Options()) -> NewSecret:
        """Put a new secret in a token's place; the old one stays good for the grace that is given."""
        input: builtins.dict[str, Any] = {'tokenId': token_id, 'graceSeconds': grace_seconds}
        answer: NewSecret = await self.transport.call(
            'tokens.rotate', input, NewSecret, mutation=True, options=options
        )
        return answer


class AsyncWorkMethods:
    """work."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport

    async def list(self, *, cursor: str | UnsetType = UNSET, limit: int | UnsetType = UNSET, kind: str | None | UnsetType = UNSET, attempts: int | UnsetType = UNSET, options: Options = Options()) -> PageQueuedKey:
        """List queued keys by reconciler and key."""
        input: builtins.dict[str, Any] = {'cursor': cursor, 'limit': limit, 'kind': kind, 'attempts': attempts}
        answer: PageQueuedKey = await self.transport.call(
            'work.list', input, PageQueuedKey, mutation=False, options=options
        )
        return answer

    async def list_all(self, *, limit: int | UnsetType = UNSET, kind: str | None | UnsetType = UNSET, attempts: int | UnsetType = UNSET, options: Options = Options()) -> AsyncIterator[QueuedKey]:
        """Every item of `list`, page after page."""
        cursor: str = ''
        while True:
            page = await self.list(cursor=cursor, limit=limit, kind=kind, attempts=attempts, options=options)
            for item in page.items:
                yield item
            if not page.next_cursor:
                return
            cursor = page.next_cursor

    def list_watch(self, *, identify: Callable[[QueuedKey], str], limit: int | UnsetType = UNSET, kind: str | None | UnsetType = UNSET, attempts: int | UnsetType = UNSET, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[Change[QueuedKey]]:
        """Changes of the items of `list`, as they come."""
        input: builtins.dict[str, Any] = {'limit': limit, 'kind': kind, 'attempts': attempts}
        return AsyncWatch(
            self.transport, 'work.list', input, PageQueuedKey, listed=True, identify=identify, watching=watching, options=options
        )

    async def pause(self, *, reason: str, kind: str | None | UnsetType = UNSET, member: str | None | UnsetType = UNSET, options: Options = Options()) -> Paused:
        """Start no more keys of a reconciler, or on a member; what runs ends by itself, and keys wait."""
        input: builtins.dict[str, Any] = {'reason': reason, 'kind': kind, 'member': member}
        answer: Paused = await self.transport.call(
            'work.pause', input, Paused, mutation=True, options=options
        )
        return answer

    async def paused(self, *, options: Options = Options()) -> AllPaused:
        """List what is paused, by whom and why."""
        input: builtins.dict[str, Any] = {}
        answer: AllPaused = await self.transport.call(
            'work.paused', input, AllPaused, mutation=False, options=options
        )
        return answer

    def paused_watch(self, *, watching: Watching = Watching(), options: Options = Options()) -> AsyncWatch[AllPaused]:
        """The answers of `paused`, as they come."""
        input: builtins.dict[str, Any] = {}
        return AsyncWatch(
            self.transport, 'work.paused', input, AllPaused, watching=watching, options=options
        )

    async def requeue(self, *, kind: str, key: str, options: Options = Options()) -> Requeued:
        """Make a queued key due now, whatever its backoff."""
        input: builtins.dict[str, Any] = {'kind': kind, 'key': key}
        answer: Requeued = await self.transport.call(
            'work.requeue', input, Requeued, mutation=True, options=options
        )
        return answer

    async def resume(self, *, kind: str | None | UnsetType = UNSET, member: str | None | UnsetType = UNSET, options: Options = Options()) -> Resumed:
        """Let a paused reconciler or member go on, also one that is hosted or lives no more."""
        input: builtins.dict[str, Any] = {'kind': kind, 'member': member}
        answer: Resumed = await self.transport.call(
            'work.resume', input, Resumed, mutation=True, options=options
        )
        return answer


class AsyncClient:
    """Every hosted method."""

    def __init__(self, transport: AsyncTransport) -> None:
        self.transport = transport
        self.break_glass = AsyncBreakGlassMethods(transport)
        self.grants = AsyncGrantsMethods(transport)
        self.iam = AsyncIamMethods(transport)
        self.plugins = AsyncPluginsMethods(transport)
        self.principals = AsyncPrincipalsMethods(transport)
        self.roles = AsyncRolesMethods(transport)
        self.service_accounts = AsyncServiceAccountsMethods(transport)
        self.system = AsyncSystemMethods(transport)
        self.tenant_tree = AsyncTenantTreeMethods(transport)
        self.tenants = AsyncTenantsMethods(transport)
        self.tokens = AsyncTokensMethods(transport)
        self.work = AsyncWorkMethods(transport)
