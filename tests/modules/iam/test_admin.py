"""The operator's pages of tenants, grants and tokens: what they show, and that every act is a judged call."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from better_compute import Principal, compute
from tests.modules.iam.conftest import OPERATOR, grant, refused, rows, service
from tests.modules.tenancy.conftest import Script, delete, hosting, tick_until_quiet

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]


@pytest.fixture
def owner(django_user_model: Any) -> Any:
    """A superuser, so that Django shows every page, who owns org and below, so that calls are allowed there."""
    user = django_user_model.objects.create_superuser("ops", password="ops")
    grant(f"user/{user.pk}", "org", "owner", inherit=True)
    return user


@pytest.fixture
def session(client: Client, owner: Any) -> Client:
    client.force_login(owner)
    return client


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer.status_code
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", answer.content.decode()))


class TestTenants:
    def test_the_tree_is_shown_from_the_root_with_states(self, session: Client) -> None:
        compute.api.tenants.suspend(OPERATOR, {"tenantId": "far", "reason": "unpaid"})
        shown = text(session.get("/admin/compute_iam/tenantnode/"))
        listed = re.findall(
            r"\b(root|org|own|sib|other|far) (?:root|organisation|project|Root|Organisation|Project)", shown
        )
        assert listed == ["root", "org", "own", "sib", "other", "far"]
        assert "suspended" in shown

    def test_a_teardown_shows_who_blocks_it_and_how_to_mend_it(self, session: Client) -> None:
        def refuse(ctx: Any, tenant_id: str) -> Any:
            raise ValueError("<b>disk 7</b> is busy")

        with hosting(Script("one", refuse)):
            delete("own")
            tick_until_quiet()
            assert "deleting, blocked by one" in text(session.get("/admin/compute_iam/tenantnode/"))
            assert "one (RAISED)" in text(session.get("/admin/compute_tenancy/tenantstate/"))
            page = session.get("/admin/compute_tenancy/tenantstate/own/change/")
        assert "Mend what fails in one" in text(page)
        assert "&lt;b&gt;disk 7&lt;/b&gt;" in page.content.decode()

    def test_a_verb_is_asked_twice_and_called_like_over_rest(self, session: Client) -> None:
        url = "/admin/compute_tenancy/tenantstate/act/"
        ask = {"tenant_id": "own", "verb": "suspend", "reason": "unpaid"}
        assert "Every change to own is refused" in text(session.post(url, ask))
        assert compute.api.tenants.get(OPERATOR, {"tenantId": "own"}).state == "active"
        answer = session.post(url, {**ask, "confirmed": "yes"}, follow=True)
        assert "The tenant own is suspended." in text(answer)
        acts = rows("SELECT principal, outcome FROM compute_audit_events WHERE method = 'tenants.suspend'")
        assert acts[-1][0].startswith("user/")
        assert acts[-1][1] == "allowed"

    def test_a_refusal_is_shown_with_its_mend(self, session: Client) -> None:
        url = "/admin/compute_tenancy/tenantstate/act/"
        ask = {"tenant_id": "own", "verb": "resume", "reason": "paid", "confirmed": "yes"}
        assert "cannot resume. Legal now: suspend, delete." in text(session.post(url, ask))
        # What the session's user does not own is not there for it, superuser or not.
        ask = {"tenant_id": "far", "verb": "suspend", "reason": "x", "confirmed": "yes"}
        assert "that you can see" in text(session.post(url, ask))
        assert compute.api.tenants.get(OPERATOR, {"tenantId": "far"}).state == "active"


class TestGrants:
    def test_why_shows_every_grant_and_what_decided(self, session: Client) -> None:
        service("bob")
        permit = grant("bob", "org", "operator", inherit=True)
        forbid = grant("bob", "own", effect="forbid", actions=["compute:acme:poke"])
        ask = {"tenant": "own", "principal": "service/bob", "action": "compute:acme:poke"}
        shown = text(session.get("/admin/compute_iam/grantrow/why/", ask))
        assert "Refused : FORBIDDEN, decided by" in shown
        assert permit.id in shown
        assert forbid.id in shown
        shown = text(session.get("/admin/compute_iam/grantrow/why/", {**ask, "action": "compute:acme:read"}))
        assert "Allowed : GRANTED" in shown

    def test_what_why_is_refused_is_shown(self, session: Client) -> None:
        ask = {"tenant": "far", "principal": "service/bob", "action": "compute:acme:poke"}
        assert "that you can see" in text(session.get("/admin/compute_iam/grantrow/why/", ask))
        assert "iam.catalog lists" in text(
            session.get("/admin/compute_iam/grantrow/why/", {**ask, "tenant": "own", "action": "compute:no:such"})
        )

    def test_a_grant_is_revoked_through_the_envelope_by_post_only(self, session: Client) -> None:
        service("bob")
        given = grant("bob", "own", "viewer")
        url = f"/admin/compute_iam/grantrow/{given.id}/end/"
        assert session.get(url).status_code == 405
        assert "Revoked the grant." in text(session.post(url, follow=True))
        assert compute.api.grants.get(OPERATOR, {"grantId": given.id}).state == "revoked"
        assert "cannot revoke" in text(session.post(url, follow=True))

    def test_the_break_glass_log_is_a_filter_away(self, session: Client, owner: Any) -> None:
        caller = Principal(id=f"user/{owner.pk}", kind="session", user=owner)
        compute.api.break_glass.activate(caller, {"tenantId": "org", "reason": "water in the hall"})
        service("bob")
        grant("bob", "own", "viewer", reason="ordinary")
        shown = text(session.get("/admin/compute_iam/grantrow/?broken=yes"))
        assert "water in the hall" in shown
        assert "ordinary" not in shown

    def test_a_grants_page_offers_to_revoke_it(self, session: Client) -> None:
        service("bob")
        given = grant("bob", "own", "viewer")
        page = session.get(f"/admin/compute_iam/grantrow/{given.id}/change/")
        assert f"/admin/compute_iam/grantrow/{given.id}/end/" in page.content.decode()


class TestTokens:
    def test_a_secret_is_shown_once_and_kept_from_caches(self, session: Client) -> None:
        answer = session.post(
            "/admin/compute_iam/scopedtoken/new/", {"tenant": "own", "label": "laptop", "actions": "compute:acme:read"}
        )
        (secret,) = set(re.findall(r"bci_[A-Za-z0-9_-]{43}", answer.content.decode()))
        assert "no-store" in answer["Cache-Control"]
        listed = session.get("/admin/compute_iam/scopedtoken/").content.decode()
        assert "laptop" in listed
        assert secret not in listed
        assert "compute:acme:read in own" in text(session.get("/admin/compute_iam/scopedtoken/"))

    def test_it_is_judged_like_over_rest(self, session: Client) -> None:
        for ask in ({"tenant": "far", "label": "x"}, {"tenant": "own", "label": "x", "actions": "nonsense"}):
            answer = session.post("/admin/compute_iam/scopedtoken/new/", ask)
            assert "bci_" not in answer.content.decode()
        assert rows("SELECT count(*) FROM compute_iam_tokens") == [(0,)]

    def test_it_is_revoked_by_post_only(self, session: Client) -> None:
        session.post("/admin/compute_iam/scopedtoken/new/", {"tenant": "own", "label": "laptop"})
        ((id,),) = rows("SELECT id::text FROM compute_iam_tokens")
        url = f"/admin/compute_iam/scopedtoken/{id}/end/"
        assert session.get(url).status_code == 405
        assert "Revoked the token." in text(session.post(url, follow=True))


PAGES = [
    "/admin/compute_iam/tenantnode/",
    "/admin/compute_iam/grantrow/",
    "/admin/compute_iam/grantrow/why/",
    "/admin/compute_iam/scopedtoken/",
    "/admin/compute_iam/scopedtoken/new/",
    "/admin/compute_tenancy/tenantstate/",
    "/admin/compute_tenancy/tenantstate/act/",
]


@pytest.mark.parametrize("page", PAGES)
def test_no_page_without_a_staff_session(client: Client, page: str) -> None:
    assert client.get(page).status_code == 302


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_there_and_holds_no_inline_script_or_style(session: Client, page: str) -> None:
    html = session.get(page).content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)[^>]*>\s*\S|\sstyle=|\son\w+=", html)


def test_who_may_only_look_acts_no_more_than_it_was_granted(client: Client, django_user_model: Any) -> None:
    user = django_user_model.objects.create_user("looker", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=("compute_iam", "compute_tenancy")))
    client.force_login(user)
    service("bob")
    given = grant("bob", "own", "viewer")
    client.post(f"/admin/compute_iam/grantrow/{given.id}/end/")
    assert compute.api.grants.get(OPERATOR, {"grantId": given.id}).state == "active"
    client.post(
        "/admin/compute_tenancy/tenantstate/act/",
        {"tenant_id": "own", "verb": "delete", "reason": "x", "confirmed": "yes"},
    )
    assert compute.api.tenants.get(OPERATOR, {"tenantId": "own"}).state == "active"
    session = Principal(id=f"user/{user.pk}", kind="session", user=user)
    assert refused(lambda: compute.api.tenants.get(session, {"tenantId": "own"})).code == "NOT_FOUND"
