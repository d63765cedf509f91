"""``compute_serve``: what the process of a role becomes."""

from __future__ import annotations

import io

from django.core.management import call_command


def test_serve_becomes_a_worker_or_a_server() -> None:
    output = io.StringIO()
    call_command("compute_serve", "--roles", "scheduler", "--print", stdout=output)
    assert "-m celery -A tests worker --pool threads" in output.getvalue()
    output = io.StringIO()
    call_command("compute_serve", "--roles", "api", "--port", "8123", "--threads", "3", "--print", stdout=output)
    assert output.getvalue().endswith(
        "-m granian --interface wsgi --workers 1 --blocking-threads 3 --no-ws "
        "--host 127.0.0.1 --port 8123 example_project.wsgi:application\n"
    )
