"""What the module serves to others."""

from better_compute import define_port

from .authenticator import AuthenticatorPort
from .role_matrix import RoleMatrixPort
from .tree import TreePort

extensions = [
    define_port("tenant-tree", version="1", port=TreePort),
    define_port("authenticator", version="1", port=AuthenticatorPort),
    define_port("role-matrix", version="1", port=RoleMatrixPort),
]
