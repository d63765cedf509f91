"""The operator's pages of who may do what.

Every act is a call through the envelope, judged like one over REST, and rows are there only for a session that may
do ``compute:iam:read`` in their tenant: what is another tenant's reads as if it were not there.
"""

from .grants import GrantAdmin
from .tenants import TenantAdmin
from .tokens import ScopedTokenAdmin

__all__ = ["GrantAdmin", "ScopedTokenAdmin", "TenantAdmin"]
