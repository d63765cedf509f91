"""A host project: the core, its modules and one plugin.

Read from the environment: ``DATABASE_URL`` (serves), ``OWNER_DATABASE_URL`` (migrates, when another role does),
``COMPUTE_APP_ROLE`` (the role that serves, granted by ``compute_migrate``), ``CELERY_BROKER_URL``, ``SECRET_KEY``,
``ALLOWED_HOSTS``, ``LOG_LEVEL`` and ``COMPUTE_DEV_IDENTITY_URL`` (an identity provider, which ``compute_dev`` runs).
"""

import os
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import django

import better_compute

BASE_DIR = Path(__file__).resolve().parent.parent


def database(url: str) -> dict[str, Any]:
    """Django's settings for ``postgresql://user:password@host:port/name``; ``?host=`` may name a socket directory."""
    parts = urlsplit(url)
    query = parse_qs(parts.query)
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.get("host", [parts.hostname or ""])[0],
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
    }


SECRET_KEY = os.environ.get("SECRET_KEY", "for development only, never for a server that others can reach")
DEBUG = False
ALLOWED_HOSTS = os.environ.get("ALLOWED_HOSTS", "localhost,127.0.0.1,testserver").split(",")
USE_TZ = True
TIME_ZONE = "UTC"
ROOT_URLCONF = "example_project.urls"
WSGI_APPLICATION = "example_project.wsgi.application"
STATIC_URL = "/static/"

INSTALLED_APPS = [
    *better_compute.installed_apps(),
    "compute_modules.iam",
    "example_project.acme_widgets",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "better_compute.admin.apps.ComputeAdminConfig",
    "rest_framework",
    "pgtrigger",
]

# What a page of this project may load: its own files and nothing else, no inline script or style.
CSP_DIRECTIVES = {
    "default-src": ["'self'"],
    "base-uri": ["'none'"],
    "form-action": ["'self'"],
    "frame-ancestors": ["'none'"],
    "object-src": ["'none'"],
}
if django.VERSION >= (6,):
    _CSP_MIDDLEWARE = "django.middleware.csp.ContentSecurityPolicyMiddleware"
    SECURE_CSP = CSP_DIRECTIVES
else:
    _CSP_MIDDLEWARE = "csp.middleware.CSPMiddleware"
    CONTENT_SECURITY_POLICY = {"DIRECTIVES": CSP_DIRECTIVES}

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    _CSP_MIDDLEWARE,
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
# Static files are served from the packages themselves; a host with a build step sets STATIC_ROOT instead.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    }
]

DATABASES = {"default": database(os.environ.get("DATABASE_URL", "postgresql:///better_compute"))}
COMPUTE: dict[str, Any] = {
    "APP_ROLE": os.environ.get("COMPUTE_APP_ROLE", ""),
    # Without this line Django's permissions decide.
    "IAM": "compute_modules.iam.authorizer.Grants",
}
if "COMPUTE_DEV_IDENTITY_URL" in os.environ:
    COMPUTE["iam"] = {
        "PROVIDERS": [
            {
                "NAME": "dev",
                "ISSUER": os.environ["COMPUTE_DEV_IDENTITY_URL"],
                "AUDIENCE": "better-compute",
                "CLAIM_GRANTS": [
                    {"CLAIM": "groups", "VALUE": "acme-operators", "TENANT": "acme-east", "ROLE": "operator"}
                ],
            }
        ]
    }
#: What ``compute_dev`` runs beside the API: name -> a module that serves on the port it is given.
COMPUTE_DEV_BESIDE = {"identity": "example_project.identity_provider"}
if "OWNER_DATABASE_URL" in os.environ:
    DATABASES["owner"] = database(os.environ["OWNER_DATABASE_URL"])
    COMPUTE["MIGRATION_DATABASE"] = "owner"

CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL", "redis://localhost:6379/0")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request": {"()": "better_compute.RequestIdFilter"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "filters": ["request"], "formatter": "line"}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {"better_compute": {"level": os.environ.get("LOG_LEVEL", "INFO")}},
}
