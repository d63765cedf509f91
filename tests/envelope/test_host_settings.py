"""The shell is deaf to a host's REST_FRAMEWORK settings, in a process of its own where they are read at import."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from tests.envelope.conftest import Caller

_HOSTILE = """
from tests.settings import *

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.BasicAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAdminUser"],
    "DEFAULT_THROTTLE_CLASSES": ["rest_framework.throttling.AnonRateThrottle"],
    "DEFAULT_THROTTLE_RATES": {"anon": "1/day"},
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.FormParser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.StaticHTMLRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "rest_framework.negotiation.DefaultContentNegotiation",
    "DEFAULT_VERSIONING_CLASS": "rest_framework.versioning.AcceptHeaderVersioning",
    "ALLOWED_VERSIONS": ["9"],
    "EXCEPTION_HANDLER": "hostile_settings.explode",
    "UNAUTHENTICATED_USER": "hostile_settings.Nobody",
    "URL_FORMAT_OVERRIDE": "format",
}
DATABASES["default"]["ATOMIC_REQUESTS"] = True


def explode(*_):
    raise AssertionError("the host's exception handler was called")


class Nobody:
    def __init__(self):
        raise AssertionError("the host's anonymous user was made")
"""

_CALLS = """
import json, sys
import django

django.setup()
from django.test import Client

client, headers = Client(), {"Authorization": "Bearer " + sys.argv[1]}
poke = "/api/compute/plugins/acme/widgets/poke"
answers = []
for widget in ("w1", "w1", "W!"):
    body = {"tenantId": "t1", "widgetId": widget}
    answers.append(client.post(poke, body, content_type="application/json", headers=headers))
answers.append(client.post(poke, {}, content_type="application/json"))
answers.append(client.get("/api/compute/plugins/acme/widgets/count?tenantId=t1&format=html", headers=headers))
answers.append(client.get("/api/compute/plugins/acme/widgets/count?tenantId=t1", headers=headers))
answers.append(client.get(poke, headers=headers))
print(json.dumps([[each.status_code, each["Content-Type"]] for each in answers]))
"""


@pytest.mark.django_db(transaction=True)
def test_a_hosts_rest_framework_defaults_change_nothing(
    caller: Caller, process_env: dict[str, str], tmp_path: os.PathLike[str]
) -> None:
    settings = os.path.join(tmp_path, "hostile_settings.py")
    with open(settings, "w", encoding="utf-8") as file:
        file.write(textwrap.dedent(_HOSTILE))
    path = os.pathsep.join([str(tmp_path), os.getcwd(), process_env.get("PYTHONPATH", "")])
    env = {**process_env, "DJANGO_SETTINGS_MODULE": "hostile_settings", "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", _CALLS, caller.secret], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    problem, answer = "application/problem+json", "application/json"
    assert json.loads(done.stdout) == [
        [200, answer],
        [409, problem],
        [400, problem],
        [401, problem],
        [400, problem],
        [200, answer],
        [405, problem],
    ]
