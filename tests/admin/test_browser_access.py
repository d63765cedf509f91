"""The pages of tenants, grants, tokens and teardowns in a real Chromium, under the content policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model

from better_compute import compute
from better_compute.models import AuditEvent
from tests.admin.browser import SHOTS, Watched, fits_everywhere
from tests.modules.iam.conftest import OPERATOR, by_grants, grant, rows, service, tenant, world
from tests.modules.tenancy.conftest import Script, delete, hosting, tick_until_quiet

__all__ = ["by_grants", "world"]

pytestmark = [
    pytest.mark.needs("chromium"),
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("world"),
]

HOSTILE = "<script>alert(1)</script> \N{RIGHT-TO-LEFT OVERRIDE}gnihtemos \x07 " + "wide" * 100


@pytest.fixture
def operator() -> Any:
    """An operator who owns everything."""
    user = get_user_model().objects.create_superuser("operator", password="operator")
    grant(f"user/{user.pk}", "root", "owner", inherit=True, reason="founded it")
    return user


@pytest.fixture
def teardown(operator: Any) -> Iterator[None]:
    """A tenant whose teardown one module fails and another has not finished."""

    def fail(ctx: Any, tenant_id: str) -> Any:
        raise ValueError(HOSTILE)

    with hosting(Script("broken", fail), Script("slow", lambda ctx, tenant_id: "SYNC_AGAIN")):
        tenant("going", "org")
        delete("going")
        tick_until_quiet()
        yield


@pytest.fixture
def access(operator: Any, teardown: None) -> dict[str, str]:
    """Records on every page; answers ids by what they are."""
    tenant("deep", "org", "organisation")
    tenant("deeper.with-a-name-that-is-as-long-as-a-tenant-id-may-well-be-in-practice-0123456789", "deep")
    compute.api.tenants.suspend(OPERATOR, {"tenantId": "far", "reason": HOSTILE[:400]})
    service("bob")
    permit = grant("bob", "org", "operator", inherit=True, reason=HOSTILE[:400])
    grant("bob", "own", effect="forbid", actions=["compute:acme:poke"])
    token = compute.api.tokens.create(OPERATOR, {"tenantId": "own", "label": "laptop", "principal": "service/bob"})
    compute.api.break_glass.activate(
        _session(operator), {"tenantId": "org", "reason": "water in the hall", "minutes": 20}
    )
    return {"permit": permit.id, "token": token.token.id}


def _session(user: Any) -> Any:
    from better_compute import session_principal

    return session_principal(user)


@pytest.fixture
def watched(access: dict[str, str], live_server: Any, page: Any) -> Iterator[Watched]:
    """A signed-in operator's page; the test fails on any complaint."""
    page.set_default_timeout(15_000)
    watched = Watched(page, live_server.url)
    watched.come_signed_in()
    yield watched
    assert watched.complaints == []


def addresses(access: dict[str, str]) -> dict[str, str]:
    why = "compute_iam/grantrow/why/"
    return {
        "tree": "compute_iam/tenantnode/",
        "tree-part": "compute_iam/tenantnode/?below=org",
        "tenant": "compute_iam/tenantnode/own/change/",
        "tenant-going": "compute_iam/tenantnode/going/change/",
        "tenant-new": "compute_iam/tenantnode/new/?parent=org",
        "grants": "compute_iam/grantrow/",
        "grants-glass": "compute_iam/grantrow/?broken=yes",
        "grant": f"compute_iam/grantrow/{access['permit']}/change/",
        "grant-new": "compute_iam/grantrow/new/?tenant=own",
        "glass": "compute_iam/grantrow/break-glass/",
        "why": why,
        "why-refused": f"{why}?tenant=own&principal=service/bob&action=compute:acme:poke",
        "why-allowed": f"{why}?tenant=own&principal=service/bob&action=compute:acme:read",
        "why-nothing": f"{why}?tenant=far&principal=service/bob&action=compute:acme:read",
        "tokens": "compute_iam/scopedtoken/",
        "token": f"compute_iam/scopedtoken/{access['token']}/change/",
        "token-new": "compute_iam/scopedtoken/new/",
        "token-rotate": f"compute_iam/scopedtoken/{access['token']}/rotate/",
        "states": "compute_tenancy/tenantstate/",
        "state-going": "compute_tenancy/tenantstate/going/change/",
        "state-far": "compute_tenancy/tenantstate/far/change/",
        "act": "compute_tenancy/tenantstate/act/?tenant=own&verb=suspend",
    }


def test_every_page_of_access_is_whole_and_legible_and_the_browser_has_no_complaint(
    watched: Watched, access: dict[str, str]
) -> None:
    for name, address in addresses(access).items():
        answer = watched.open(address)
        assert answer.status == 200
        assert "unsafe" not in answer.headers["content-security-policy"]
        fits_everywhere(watched, f"iam-{name}")


def test_an_operator_finds_out_why_and_takes_the_forbid_back(watched: Watched) -> None:
    page = watched.page
    watched.open("compute_iam/grantrow/")
    page.get_by_role("link", name="Why can this principal do this?").click()
    page.fill("#id_tenant", "own")
    page.fill("#id_principal", "service/bob")
    page.fill("#id_action", "compute:acme:poke")
    page.click("input[value='Tell me']")
    assert "Refused" in page.inner_text("#compute-verdict")
    assert page.locator(".compute-given li.compute-decides").inner_text().startswith("forbid")

    watched.open("compute_iam/grantrow/?tenant=own")
    page.get_by_role("row", name="forbid").get_by_role("link").first.click()
    page.get_by_role("button", name="Revoke").click()
    page.click("input[value=Revoke]")
    assert page.inner_text(".messagelist") == "Revoked the grant."

    watched.open("compute_iam/grantrow/why/?tenant=own&principal=service/bob&action=compute:acme:poke")
    assert "Allowed" in page.inner_text("#compute-verdict")


def test_an_operator_makes_a_token_whose_secret_is_shown_once(watched: Watched) -> None:
    page = watched.page
    watched.open("compute_iam/scopedtoken/")
    page.get_by_role("link", name="Make a token").click()
    page.fill("#id_tenant", "own")
    page.fill("#id_label", "deploy")
    page.click("input[value='Make the token']")
    assert page.locator(".errorlist").all_inner_texts() == []
    secret = page.inner_text("#compute-secret")
    assert secret.startswith("bci_")
    page.screenshot(path=SHOTS / "iam-token-made.png")
    watched.open("compute_iam/scopedtoken/")
    assert secret not in page.content()


def test_an_operator_watches_a_teardown_and_sees_what_blocks_it(watched: Watched) -> None:
    page = watched.page
    watched.open("compute_iam/tenantnode/")
    page.get_by_role("link", name="going", exact=True).click()

    shown = page.inner_text("[aria-labelledby=compute-deletion]")
    assert "blocked" in shown
    assert "Mend what fails in broken" in shown
    assert "It is asked again by itself" in shown


def test_an_operator_suspends_a_tenant_from_its_page(watched: Watched) -> None:
    page = watched.page
    watched.open("compute_iam/tenantnode/own/change/")
    page.get_by_role("link", name="Suspend").click()
    assert page.input_value("#id_tenant_id") == "own"
    page.fill("#id_reason", "unpaid")
    page.click("input[type=submit]")
    assert "Every change to own is refused" in page.inner_text("main")
    page.click("input[type=submit]")

    assert page.inner_text(".messagelist") == "The tenant own is suspended."
    assert AuditEvent.objects.filter(method="tenants.suspend", resource_id="own", outcome="allowed").exists()


def test_what_is_written_into_records_stays_text(watched: Watched) -> None:
    for address in (
        "compute_tenancy/tenantstate/going/change/",
        "compute_tenancy/tenantstate/",
        "compute_iam/grantrow/",
    ):
        watched.open(address)
        assert "<script>alert(1)</script>" in watched.page.inner_text("main")
        assert watched.page.locator("main script:not([src])").count() == 0
    assert rows("SELECT count(*) FROM compute_tenant_states WHERE state = 'deleting'") == [(1,)]
