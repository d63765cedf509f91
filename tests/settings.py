"""The example project as the tests run it: migrated and served by the owner role on one alias."""

import os

from example_project.settings import *  # noqa: F403
from example_project.settings import COMPUTE, INSTALLED_APPS, database

DATABASES = {"default": database(os.environ.get("DATABASE_URL", "postgresql:///better_compute"))}
# A connection that outlives its test would keep the test database from being dropped.
DATABASES["default"]["CONN_MAX_AGE"] = 0
COMPUTE = {**COMPUTE, "APP_ROLE": os.environ.get("COMPUTE_APP_ROLE", "bc_app")}
COMPUTE.pop("MIGRATION_DATABASE", None)
# Tests that judge by grants say so.
COMPUTE.pop("IAM", None)
COMPUTE.pop("iam", None)
INSTALLED_APPS = list(INSTALLED_APPS)
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Each test client makes the middleware anew, which would list every static file of every app.
WHITENOISE_AUTOREFRESH = True
