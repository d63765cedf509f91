"""No page of the admin makes a browser ask for an icon that is not there."""

from __future__ import annotations

import re

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

PAGES = ("", "login/", "password_change/", "password_change/done/", "compute/", "compute/workitem/")


@pytest.mark.parametrize("page", PAGES)
def test_a_page_links_the_packaged_icon(admin_client: Client, page: str) -> None:
    client = Client() if page == "login/" else admin_client
    linked = re.search(r'<link rel="icon"[^>]* href="/static/([^"]+)"', client.get(f"/admin/{page}").text)
    assert linked
    assert finders.find(linked[1])


def test_the_page_after_a_logout_links_the_packaged_icon(admin_client: Client) -> None:
    assert "compute/icon.svg" in admin_client.post("/admin/logout/").text


def test_the_icon_that_a_browser_asks_for_unasked_is_the_packaged_one(client: Client) -> None:
    answer = client.get("/favicon.ico")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/static/compute/icon.svg")
