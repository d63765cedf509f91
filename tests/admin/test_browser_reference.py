"""The reference page of the API in a real Chromium: every method, light and dark, wide and narrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from better_compute import registry
from tests.admin.browser import SIZES, Watched, fits

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.slow, pytest.mark.django_db(transaction=True)]

#: Methods whose pages are kept as pictures.
SHOWN = ("plugins.acme.widgets.poke", "work.pause", "grants.create", "iam.batchCheck")


@pytest.fixture
def watched(db: None, live_server: Any, page: Any) -> Iterator[Watched]:
    """A signed-in operator's page; the test fails on any complaint."""
    get_user_model().objects.create_superuser("operator", password="operator")
    page.set_default_timeout(15_000)
    watched = Watched(page, live_server.url)
    watched.come_signed_in()
    yield watched
    assert watched.complaints == []


#: Goes to each method in turn; answers how many pixels too wide each is, or what stands there in its place.
VISIT = """async (names) => {
  const spare = {};
  for (const name of names) {
    const gone = new Promise((resolve) => addEventListener("hashchange", resolve, { once: true }));
    location.hash = name;
    await gone;
    const heading = document.querySelector("#detail h2");
    const root = document.documentElement;
    const shown = heading?.textContent === name && heading.checkVisibility();
    spare[name] = shown ? root.scrollWidth - root.clientWidth : document.getElementById("detail").textContent;
  }
  return spare;
}"""


def test_the_page_of_every_method_is_whole_and_legible(watched: Watched) -> None:
    page = watched.page
    answer = page.goto(f"{watched.base}/api/compute/reference")
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert "unsafe" not in answer.headers["content-security-policy"]
    methods = sorted(spec.dotted for spec in registry.current().methods.values())
    assert set(SHOWN) <= set(methods)
    for size, viewport in SIZES.items():
        page.set_viewport_size(viewport)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            page.evaluate("location.hash = ''")
            page.get_by_text("Choose a method.").wait_for()
            fits(watched, f"reference-{size}-{scheme}")
            assert page.locator("nav a").count() == len(methods)
            assert page.evaluate(VISIT, methods) == dict.fromkeys(methods, 0), f"{size}, {scheme}"
            for name in SHOWN:
                page.evaluate(VISIT, [name])
                page.get_by_role("heading", name=name, exact=True).wait_for()
                fits(watched, f"reference-{name}-{size}-{scheme}")


def test_the_fields_of_what_a_field_holds_are_shown(watched: Watched) -> None:
    page = watched.page
    page.goto(f"{watched.base}/api/compute/reference#grants.create")
    page.get_by_role("heading", name="ResourceRef", exact=True).wait_for()
    first = page.locator("h4:text-is('ResourceRef') + table tbody tr").first
    assert first.locator("td").all_inner_texts() == ["type", "string", "required", "pattern ^[a-z][a-z0-9-]{0,63}$"]
    page.goto(f"{watched.base}/api/compute/reference#tokens.list")
    page.get_by_role("heading", name="Token", exact=True).wait_for()
    assert page.get_by_role("cell", name="hint", exact=True).count() == 1


def test_a_call_from_the_page_is_the_operators_own(watched: Watched) -> None:
    page = watched.page
    page.goto(f"{watched.base}/api/compute/reference#work.pause")
    page.get_by_label("Input as JSON").fill('{"kind": "acme.widgets", "reason": "incident 7"}')
    page.get_by_role("button", name="Send").click()
    page.get_by_text("200 OK").wait_for()

    assert (
        f'"pausedBy": "user/{get_user_model().objects.get().pk}"'
        in page.get_by_label("Answer", exact=True).inner_text()
    )


def test_the_methods_are_found_with_the_keyboard(watched: Watched) -> None:
    page = watched.page
    page.goto(f"{watched.base}/api/compute/reference")
    page.get_by_text("Choose a method.").wait_for()
    page.get_by_placeholder("Search methods").focus()
    page.keyboard.type("requeue")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")

    page.get_by_role("heading", name="work.requeue").wait_for()
    assert page.evaluate("document.activeElement.id") == "detail"
