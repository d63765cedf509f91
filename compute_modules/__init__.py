"""The built-in modules, which are released together with the core."""

from better_compute import __version__ as __version__
