"""The tests' settings with a pool of two connections a process, shared by its threads."""

from tests.settings import *  # noqa: F403
from tests.settings import DATABASES

DATABASES["default"]["OPTIONS"] = {"pool": {"min_size": 1, "max_size": 2, "timeout": 30}}
