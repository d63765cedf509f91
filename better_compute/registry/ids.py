"""Stable ids of the registration rules, as ``manage.py check`` and ``SILENCED_SYSTEM_CHECKS`` name them."""

from __future__ import annotations

from typing import Final

MODULE_NAME: Final = "compute.E001"
DUPLICATE_MODULE: Final = "compute.E002"
REQUIRES: Final = "compute.E003"
PLUGIN_ID: Final = "compute.E004"
DECLARATION: Final = "compute.E005"
CORE_VERSIONS: Final = "compute.E006"
IMPORT: Final = "compute.E007"

MIGRATION_NAME: Final = "compute.E010"
MIGRATION_OWNER: Final = "compute.E011"
MIGRATION_NUMBER: Final = "compute.E012"
MIGRATION_CLASS: Final = "compute.E013"
MIGRATION_ATOMIC: Final = "compute.E014"
MIGRATION_LEAVES: Final = "compute.E015"
MIGRATIONS_DISABLED: Final = "compute.E016"
MIGRATION_GRAPH: Final = "compute.E017"

EXTENSION_BUILT: Final = "compute.E020"
DUPLICATE_EXTENSION: Final = "compute.E021"
USAGE_SINK: Final = "compute.E022"
EXTENSION_NAME: Final = "compute.E023"

COMMAND_KIND: Final = "compute.E030"
DUPLICATE_COMMAND_KIND: Final = "compute.E031"

ROUTE_NAME: Final = "compute.E040"
RESERVED_ROUTE: Final = "compute.E041"
DUPLICATE_ROUTE: Final = "compute.E042"
ACTION: Final = "compute.E043"
PLUGIN_ACTION: Final = "compute.E044"
METHOD_ACTION: Final = "compute.E045"
DUPLICATE_CATALOG: Final = "compute.E046"
METHOD_SIGNATURE: Final = "compute.E047"
RESOURCE_TYPE: Final = "compute.E048"

RECONCILER_NAME: Final = "compute.E050"
DUPLICATE_RECONCILER: Final = "compute.E051"
RESERVED_RECONCILER: Final = "compute.E052"
PERIODIC: Final = "compute.E053"
RECONCILER_PLACE: Final = "compute.E054"

PROFILE: Final = "compute.E060"
CLI_COMMAND: Final = "compute.E061"
STATUS_HANDLER: Final = "compute.E062"

SETTINGS: Final = "compute.E070"
DATABASE: Final = "compute.E071"
SERVER_SIDE_BINDING: Final = "compute.W072"
UNDECLARED: Final = "compute.W073"
ISOLATION: Final = "compute.E074"
USE_TZ: Final = "compute.E075"
AUTODETECTOR: Final = "compute.W076"
