"""What the module serves to others."""

from better_compute import define_port

from .authenticator import AuthenticatorPort
from .tree import TreePort

extensions = [
    define_port("tenant-tree", version="1", port=TreePort),
    define_port("authenticator", version="1", port=AuthenticatorPort),
]
