"""The module's methods, one file a group or two."""

from .break_glass import BreakGlass
from .decisions import Iam
from .grants import Grants
from .people import Principals
from .roles import Roles
from .services import ServiceAccounts
from .tokens import Tokens
from .tree import TenantTree

__all__ = ["BreakGlass", "Grants", "Iam", "Principals", "Roles", "ServiceAccounts", "TenantTree", "Tokens"]
