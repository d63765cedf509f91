"""The example project on the benchmark's database: one role, no middleware, no logging of requests."""

import os

from benchmarks import many_modules
from example_project.settings import *  # noqa: F403
from example_project.settings import INSTALLED_APPS, database

DEBUG = False
# No figure is about pages.
INSTALLED_APPS = [*(app for app in INSTALLED_APPS if ".admin" not in app), *many_modules.installed()]
DATABASES = {"default": {**database(os.environ["DATABASE_URL"]), "CONN_MAX_AGE": None}}
# What the project's middleware costs would be added to both sides of each ratio and flatter ours.
MIDDLEWARE: list[str] = []
ROOT_URLCONF = "benchmarks.urls"
#: Handler threads of a worker that the benchmark starts.
THREADS_VARIABLE = "BENCH_THREADS"
COMPUTE: dict[str, object] = {"WORKER": {"THREADS": int(os.environ.get(THREADS_VARIABLE, "4"))}}
LOGGING = {"version": 1, "disable_existing_loggers": False, "root": {"level": "ERROR"}}
