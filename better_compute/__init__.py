"""Better Compute: a control plane for GPU, bare-metal and VPS fleets, made of modules.

Public names are loaded on first use, so that ``import better_compute`` is safe in a settings file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from msgspec import Meta as Meta

    from better_compute.admin.read_only import ReadOnlyAdmin as ReadOnlyAdmin
    from better_compute.contract.command_kinds import CommandKind as CommandKind
    from better_compute.contract.commands import CliCommand as CliCommand
    from better_compute.contract.contexts import (
        MethodContext as MethodContext,
        ModuleContext as ModuleContext,
        ReconcileContext as ReconcileContext,
    )
    from better_compute.contract.errors import (
        ComputeError as ComputeError,
        ErrorCode as ErrorCode,
        LeaseLost as LeaseLost,
        Violation as Violation,
    )
    from better_compute.contract.extensions import (
        Extension as Extension,
        define_attestor as define_attestor,
        define_audit_sink as define_audit_sink,
        define_driver as define_driver,
        define_event_sink as define_event_sink,
        define_pool_policy as define_pool_policy,
        define_port as define_port,
        define_scheduler_plugin as define_scheduler_plugin,
        define_usage_sink as define_usage_sink,
    )
    from better_compute.contract.findings import Finding as Finding, Report as Report
    from better_compute.contract.generations import require_generation as require_generation
    from better_compute.contract.methods import (
        Catalog as Catalog,
        Deprecation as Deprecation,
        Empty as Empty,
        Input as Input,
        Output as Output,
        Resource as Resource,
        ResourceType as ResourceType,
        Secret as Secret,
        TenantId as TenantId,
        compute_method as compute_method,
    )
    from better_compute.contract.migrations import (
        ComputeMigration as ComputeMigration,
        RunSqlFile as RunSqlFile,
    )
    from better_compute.contract.module import (
        ComputeModule as ComputeModule,
        ComputePlugin as ComputePlugin,
        ModuleStatusHandler as ModuleStatusHandler,
        ProfileDocument as ProfileDocument,
    )
    from better_compute.contract.outcomes import DONE as DONE, SYNC_AGAIN as SYNC_AGAIN, Outcome as Outcome
    from better_compute.contract.pages import Page as Page, PageInput as PageInput, PageKey as PageKey
    from better_compute.contract.ports import Hosted as Hosted, KeySource as KeySource
    from better_compute.contract.principals import (
        Authorizer as Authorizer,
        BearerCredential as BearerCredential,
        Decision as Decision,
        Principal as Principal,
    )
    from better_compute.contract.reconcilers import (
        BatchReconciler as BatchReconciler,
        Periodic as Periodic,
        Reconciler as Reconciler,
    )
    from better_compute.contract.sql import Expression as Expression
    from better_compute.contract.states import StateTable as StateTable
    from better_compute.contract.tenants import TenantHook as TenantHook, TenantStanding as TenantStanding
    from better_compute.engine.celery import install_celery as install_celery
    from better_compute.engine.request_log import RequestIdFilter as RequestIdFilter
    from better_compute.envelope.identity import session_principal as session_principal
    from better_compute.envelope.router import ComputeRouter as ComputeRouter, bad_request as bad_request
    from better_compute.envelope.viewset import ComputeViewSet as ComputeViewSet
    from better_compute.facade import compute as compute
    from better_compute.store.clock import ComputeNow as ComputeNow
    from better_compute.store.failures import describe_failure as describe_failure

__version__ = "1.0.0.dev0"

_HOME = {
    "msgspec": ("Meta",),
    "better_compute.admin.read_only": ("ReadOnlyAdmin",),
    "better_compute.contract.command_kinds": ("CommandKind",),
    "better_compute.contract.commands": ("CliCommand",),
    "better_compute.contract.contexts": ("MethodContext", "ModuleContext", "ReconcileContext"),
    "better_compute.contract.errors": ("ComputeError", "ErrorCode", "LeaseLost", "Violation"),
    "better_compute.contract.extensions": (
        "Extension",
        "define_attestor",
        "define_audit_sink",
        "define_driver",
        "define_event_sink",
        "define_pool_policy",
        "define_port",
        "define_scheduler_plugin",
        "define_usage_sink",
    ),
    "better_compute.contract.findings": ("Finding", "Report"),
    "better_compute.contract.generations": ("require_generation",),
    "better_compute.contract.methods": (
        "Catalog",
        "Deprecation",
        "Empty",
        "Input",
        "Output",
        "Resource",
        "ResourceType",
        "Secret",
        "TenantId",
        "compute_method",
    ),
    "better_compute.contract.migrations": ("ComputeMigration", "RunSqlFile"),
    "better_compute.contract.module": ("ComputeModule", "ComputePlugin", "ProfileDocument", "ModuleStatusHandler"),
    "better_compute.contract.outcomes": ("DONE", "SYNC_AGAIN", "Outcome"),
    "better_compute.contract.pages": ("Page", "PageInput", "PageKey"),
    "better_compute.contract.ports": ("Hosted", "KeySource"),
    "better_compute.contract.principals": ("Authorizer", "BearerCredential", "Decision", "Principal"),
    "better_compute.contract.reconcilers": ("BatchReconciler", "Periodic", "Reconciler"),
    "better_compute.contract.sql": ("Expression",),
    "better_compute.contract.states": ("StateTable",),
    "better_compute.contract.tenants": ("TenantHook", "TenantStanding"),
    "better_compute.engine.celery": ("install_celery",),
    "better_compute.engine.request_log": ("RequestIdFilter",),
    "better_compute.envelope.identity": ("session_principal",),
    "better_compute.envelope.router": ("ComputeRouter", "bad_request"),
    "better_compute.envelope.viewset": ("ComputeViewSet",),
    "better_compute.facade": ("compute",),
    "better_compute.store.clock": ("ComputeNow",),
    "better_compute.store.failures": ("describe_failure",),
}
_MODULE_OF = {name: module for module, public in _HOME.items() for name in public}

__all__ = ["installed_apps", *_MODULE_OF]


def installed_apps() -> list[str]:
    """The core and the built-in modules, for ``INSTALLED_APPS = [*better_compute.installed_apps(), ...]``."""
    return ["better_compute", "compute_modules.tenancy"]


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'better_compute' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULE_OF})
