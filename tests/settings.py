"""The example project as the tests run it."""

from example_project.settings import *  # noqa: F403
