"""The reference page: what it loads, what it shows, and that it calls methods, in a real browser."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from better_compute.envelope import tokens
from example_project.acme_widgets.models import Widget

SHOTS = Path("test-results")


@pytest.mark.django_db
class TestShell:
    def test_it_is_served_to_anyone_and_tells_nothing(self, client: Client) -> None:
        response = client.get("/api/compute/reference")
        assert response.status_code == 200
        assert "plugins.acme" not in response.content.decode()

    def test_it_has_nothing_inline_and_nothing_from_elsewhere(self, client: Client) -> None:
        response = client.get("/api/compute/reference")
        text = response.content.decode()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=|https?://", text)
        policy = response["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy

    def test_it_answers_get_alone(self, client: Client) -> None:
        assert client.post("/api/compute/reference").status_code == 404


@pytest.fixture(scope="session")
def base_url() -> str:
    """None: the live server's address is known to each test."""
    return ""


@pytest.mark.needs("chromium")
@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
class TestInABrowser:
    @pytest.fixture
    def page(self, browser_type: Any, live_server: Any) -> Any:
        # Playwright keeps an event loop in this thread; the guard would refuse the queries of every later test.
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
        program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
        browser = browser_type.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.problems = []
        page.on("console", lambda message: page.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: page.problems.append(str(error)))
        yield page
        browser.close()

    @pytest.fixture
    def token(self, db: None) -> str:
        user = get_user_model().objects.create_superuser("rita", password="x")
        return tokens.create(user=user, label="reference", tenant_id=None)[0]

    def test_a_method_is_found_tried_and_called(self, page: Any, live_server: Any, token: str) -> None:
        page.goto(f"{live_server.url}/api/compute/reference")
        page.get_by_text("UNAUTHENTICATED").wait_for()
        page.problems.clear()  # the browser reports the 401 itself
        page.get_by_label("Bearer token").fill(token)
        page.get_by_role("button", name="Use").click()
        page.get_by_placeholder("Search methods").fill("poke")
        page.get_by_role("link", name="poke mutation").click()
        page.get_by_role("heading", name="plugins.acme.widgets.poke").wait_for()
        page.get_by_label("Input as JSON").fill('{"tenantId": "t1", "widgetId": "w1"}')
        page.get_by_role("button", name="Send").click()
        page.get_by_text("200 OK").wait_for()
        page.get_by_text(", nothing was kept").wait_for()
        assert Widget.objects.count() == 0
        SHOTS.mkdir(exist_ok=True)
        page.screenshot(path=SHOTS / "reference.png", full_page=True)
        page.get_by_label("only try").uncheck()
        page.get_by_role("button", name="Send").click()
        page.get_by_text("200 OK").wait_for()
        page.locator("button.send:enabled").wait_for()
        assert page.get_by_text(", nothing was kept").count() == 0
        assert page.get_by_label("Answer", exact=True).inner_text() == '{\n  "poked": "w1"\n}'
        assert Widget.objects.get().id == "w1"
        assert page.problems == []

    def test_a_session_calls_with_its_csrf_token(self, page: Any, live_server: Any, token: str) -> None:
        client = Client()
        client.force_login(get_user_model().objects.get(username="rita"))
        session = client.cookies["sessionid"].value
        page.context.add_cookies([{"name": "sessionid", "value": session, "url": live_server.url}])
        page.goto(f"{live_server.url}/api/compute/reference#system.version")
        page.get_by_role("button", name="Send").click()
        page.get_by_text("200 OK").wait_for()
        assert page.problems == []
