"""A page of a real Chromium that keeps every complaint, and what every page must be: whole and legible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

SHOTS = Path(__file__).resolve().parents[2] / "test-results" / "admin"
SIZES = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 390, "height": 844}}

#: Ratios below 4.5 (WCAG 2.2, 1.4.3) of visible text in the page's main part, with the text.
CONTRAST = """() => {
  const parse = (color) => {
    const parts = color.match(/[\\d.]+/g).map(Number);
    return parts.length < 4 ? [...parts, 1] : parts;
  };
  const linear = (byte) => byte / 255 <= 0.03928 ? byte / 255 / 12.92 : ((byte / 255 + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const color = parse(getComputedStyle(element).backgroundColor);
      if (color[3] > 0.99) return color;
    }
    return [255, 255, 255, 1];
  };
  const bad = [];
  for (const element of document.querySelectorAll('main *')) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest('svg, select, .visually-hidden')) continue;
    const pair = [light(parse(getComputedStyle(element).color)), light(ground(element))].sort((x, y) => y - x);
    const ratio = (pair[0] + 0.05) / (pair[1] + 0.05);
    const name = `${element.tagName}.${element.className}: ${element.textContent.trim().slice(0, 40)}`;
    if (ratio < 4.5) bad.push(`${ratio.toFixed(2)} ${name}`);
  }
  return [...new Set(bad)];
}"""


class Watched:
    """A page that keeps every complaint of the browser."""

    def __init__(self, page: Any, base: str) -> None:
        self.page = page
        self.base = base
        self.complaints: list[str] = []
        page.on("console", lambda said: self._said(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(f"{page.url}: {error}"))
        page.on("requestfailed", lambda request: self._failed(request.url, str(request.failure)))
        page.on("response", self._answered)

    def _said(self, type: str, text: str) -> None:
        if type in ("error", "warning"):
            self.complaints.append(f"{self.page.url}: {text}")

    def _failed(self, url: str, why: str) -> None:
        # Leaving a page ends what it was still loading.
        if "ERR_ABORTED" not in why:
            self.complaints.append(f"{url}: {why}")

    def _answered(self, response: Any) -> None:
        if response.status >= 400:
            self.complaints.append(f"{response.url}: {response.status}")

    def come_signed_in(self) -> None:
        """Bring the operator's session, as from an earlier day, and open nothing."""
        client = Client()
        client.force_login(get_user_model().objects.get(username="operator"))
        cookie = client.cookies[settings.SESSION_COOKIE_NAME]
        self.page.context.add_cookies([{"name": cookie.key, "value": cookie.value, "url": self.base}])

    def sign_in(self) -> None:
        """Sign in as the operator through the form; ends on the home page."""
        self.page.goto(f"{self.base}/admin/login/?next=/admin/")
        self.page.fill("#id_username", "operator")
        self.page.fill("#id_password", "operator")
        self.page.click("input[type=submit]")

    def open(self, address: str) -> Any:
        return self.page.goto(f"{self.base}/admin/{address}")


def fits_everywhere(watched: Watched, name: str) -> None:
    """The page fits in every size and scheme; it is not loaded again for each."""
    for size, viewport in SIZES.items():
        watched.page.set_viewport_size(viewport)
        for scheme in ("light", "dark"):
            watched.page.emulate_media(color_scheme=scheme)
            fits(watched, f"{name}-{size}-{scheme}")


def fits(watched: Watched, name: str) -> None:
    """Keep a picture of the page; it is no wider than the window, and legible."""
    SHOTS.mkdir(parents=True, exist_ok=True)
    # Colours fade from one scheme into the other; judge where they end, without waiting for it.
    watched.page.evaluate("document.getAnimations().forEach((each) => each.finish())")
    watched.page.screenshot(path=SHOTS / f"{name}.jpeg", full_page=True, type="jpeg", quality=80)
    spare = watched.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert spare <= 0, f"{name} is {spare} px too wide"
    faint = watched.page.evaluate(CONTRAST)
    assert faint == [], f"{name}: {faint}"
