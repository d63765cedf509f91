"""The operator's pages of tenants, grants and tokens: what they show, and that every act is a judged call."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from better_compute import Principal, compute
from tests.modules.iam.conftest import OPERATOR, grant, refused, rows, service, tenant
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


def tree(shown: str) -> list[str]:
    return re.findall(r"\b(root|org|own|sib|other|far) (?:Root|Organisation|Project)", shown)


class TestTenants:
    def test_the_tree_is_shown_from_the_root_with_states(self, session: Client, owner: Any) -> None:
        grant(f"user/{owner.pk}", "root", "viewer", inherit=True)
        compute.api.tenants.suspend(OPERATOR, {"tenantId": "far", "reason": "unpaid"})
        shown = text(session.get("/admin/compute_iam/tenantnode/"))
        assert tree(shown) == ["root", "org", "own", "sib", "other", "far"]
        assert "suspended" in shown

    def test_tenants_that_the_session_may_not_read_are_not_there(self, session: Client) -> None:
        assert tree(text(session.get("/admin/compute_iam/tenantnode/"))) == ["org", "own", "sib"]
        assert "Perhaps it was deleted" in text(session.get("/admin/compute_iam/tenantnode/far/change/", follow=True))

    def test_a_part_of_the_tree_is_a_link_away(self, session: Client, owner: Any) -> None:
        grant(f"user/{owner.pk}", "root", "viewer", inherit=True)
        assert tree(text(session.get("/admin/compute_iam/tenantnode/?below=org"))) == ["org", "own", "sib"]
        assert tree(text(session.get("/admin/compute_iam/tenantnode/?below=o"))) == []
        assert tree(text(session.get("/admin/compute_iam/tenantnode/?q=o"))) == ["org", "own", "other"]

    def test_the_tree_reads_as_many_statements_for_many_tenants_as_for_few(self, session: Client) -> None:
        page = "/admin/compute_iam/tenantnode/"
        session.get(page)
        with CaptureQueriesContext(connection) as few:
            session.get(page)
        for number in range(30):
            tenant(f"p{number}", "org")
            compute.api.tenants.suspend(OPERATOR, {"tenantId": f"p{number}", "reason": "unpaid"})
        session.get(page)
        with CaptureQueriesContext(connection) as many:
            assert text(session.get(page)).count("suspended") == 30
        assert len(many) == len(few)

    def test_a_tenant_is_made_below_another_one(self, session: Client) -> None:
        url = "/admin/compute_iam/tenantnode/new/"
        assert 'value="org"' in session.get(f"{url}?parent=org").content.decode()
        ask = {"parent": "org", "tenant": "fresh", "kind": "project", "name": "Fresh"}
        assert "Made the tenant fresh." in text(session.post(url, ask, follow=True))
        assert "that you can see" in text(session.post(url, {**ask, "parent": "other", "tenant": "x"}))
        assert "fresh" in text(session.post(url, ask))
        assert rows("SELECT count(*) FROM compute_iam_tenants WHERE id IN ('fresh', 'x')") == [(1,)]

    def test_a_tenants_page_offers_what_can_be_done_there(self, session: Client) -> None:
        page = session.get("/admin/compute_iam/tenantnode/own/change/").content.decode()
        for address in (
            "tenancy/tenantstate/act/?tenant=own&amp;verb=suspend",
            "tenantnode/new/?parent=own",
            "grantrow/new/?tenant=own",
            "grantrow/?tenant=own",
        ):
            assert address in page

    def test_a_teardown_shows_who_blocks_it_and_how_to_mend_it(self, session: Client) -> None:
        def refuse(ctx: Any, tenant_id: str) -> Any:
            raise ValueError("<b>disk 7</b> is busy")

        with hosting(Script("one", refuse)):
            delete("own")
            tick_until_quiet()
            assert re.search(
                r"deleting \d+ pass(es)?, blocked by one", text(session.get("/admin/compute_iam/tenantnode/"))
            )
            assert "one (RAISED)" in text(session.get("/admin/compute_tenancy/tenantstate/"))
            page = session.get("/admin/compute_tenancy/tenantstate/own/change/")
            place = text(session.get("/admin/compute_iam/tenantnode/own/change/"))
        assert "Teardown blocked" in place
        assert "Mend what fails in one" in place
        # What an exception said is for operators of the installation, on the page of states.
        assert "disk 7" not in place
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
        assert "Refused FORBIDDEN A forbid covers it" in shown
        assert re.search(rf"permit operator and below It counts.*Grant {permit.id}", shown)
        assert re.search(rf"forbid compute:acme:poke decides It counts.*Grant {forbid.id}", shown)
        assert shown.index(permit.id) < shown.index(forbid.id)
        shown = text(session.get("/admin/compute_iam/grantrow/why/", {**ask, "action": "compute:acme:read"}))
        assert "Allowed GRANTED" in shown
        assert "It does not count: it does not cover the action." in shown

    def test_why_shows_a_ceiling_and_that_nothing_was_granted(self, session: Client) -> None:
        service("bob")
        ask = {"tenant": "own", "principal": "service/bob", "action": "compute:acme:poke"}
        shown = text(session.get("/admin/compute_iam/grantrow/why/", ask))
        assert "Refused NOTHING_GRANTED" in shown
        assert "Nothing is granted to it on the way there." in shown
        grant("bob", "org", "operator", inherit=True)
        compute.api.tenant_tree.set_ceiling(
            OPERATOR, {"parentId": "org", "tenantId": "own", "ceiling": ["compute:acme:read", "compute:iam:*"]}
        )
        shown = text(session.get("/admin/compute_iam/grantrow/why/", ask))
        assert "Refused CEILING" in shown
        assert "own decides Its ceiling leaves the action out." in shown

    def test_why_asks_nothing_before_it_is_asked(self, session: Client) -> None:
        assert "Correct what is marked" not in text(session.get("/admin/compute_iam/grantrow/why/"))

    def test_a_grant_is_given_and_refused_like_over_rest(self, session: Client) -> None:
        service("bob")
        url = "/admin/compute_iam/grantrow/new/"
        ask = {"tenant": "own", "principal": "service/bob", "effect": "permit", "role": "viewer", "reason": "on call"}
        assert "Gave service/bob a permit in own." in text(session.post(url, ask, follow=True))
        assert "on call" in text(session.get("/admin/compute_iam/grantrow/?tenant=own"))
        assert "that you can see" in text(session.post(url, {**ask, "tenant": "far"}))
        assert "errornote" in session.post(url, {**ask, "role": "", "actions": ""}).content.decode()
        assert rows("SELECT count(*) FROM compute_iam_grants WHERE principal_id = 'service/bob'") == [(1,)]

    def test_broken_glass_is_logged_and_ends(self, session: Client, owner: Any) -> None:
        url = "/admin/compute_iam/grantrow/break-glass/"
        ask = {"tenant": "own", "reason": "water in the hall", "minutes": "10"}
        assert "You may do everything in own until" in text(session.post(url, ask, follow=True))
        assert "The glass is broken already" in text(session.post(url, ask))
        assert "break-glass" in text(session.get("/admin/compute_iam/grantrow/?broken=yes"))
        ((id,),) = rows("SELECT id::text FROM compute_iam_grants WHERE break_glass")
        ended = session.post(f"/admin/compute_iam/grantrow/{id}/end/", {"confirmed": "yes"}, follow=True)
        assert "Revoked the grant." in text(ended)
        methods = rows(
            "SELECT method FROM compute_audit_events WHERE method LIKE 'breakGlass.%%' AND outcome = 'allowed'"
        )
        assert methods == [("breakGlass.activate",), ("breakGlass.end",)]

    def test_grants_of_other_tenants_are_not_there(self, session: Client) -> None:
        service("eve", home="other")
        foreign = grant("eve", "far", "viewer", reason="theirs")
        for query in ("", "?tenant=far", "?q=service/eve", "?q=far"):
            assert "theirs" not in text(session.get(f"/admin/compute_iam/grantrow/{query}"))
        address = f"/admin/compute_iam/grantrow/{foreign.id}/"
        assert "Perhaps it was deleted" in text(session.get(f"{address}change/", follow=True))
        assert "that you can see" in text(session.post(f"{address}end/", {"confirmed": "yes"}, follow=True))
        assert compute.api.grants.get(OPERATOR, {"grantId": foreign.id}).state == "active"

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
        assert "This cannot be taken back" in text(session.post(url))
        assert compute.api.grants.get(OPERATOR, {"grantId": given.id}).state == "active"
        assert "Revoked the grant." in text(session.post(url, {"confirmed": "yes"}, follow=True))
        assert compute.api.grants.get(OPERATOR, {"grantId": given.id}).state == "revoked"
        assert "cannot revoke" in text(session.post(url, {"confirmed": "yes"}, follow=True))

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
        assert "Revoked the token." in text(session.post(url, {"confirmed": "yes"}, follow=True))

    def test_it_is_rotated_and_the_new_secret_shown_once(self, session: Client) -> None:
        session.post("/admin/compute_iam/scopedtoken/new/", {"tenant": "own", "label": "laptop"})
        ((id,),) = rows("SELECT id::text FROM compute_iam_tokens")
        answer = session.post(f"/admin/compute_iam/scopedtoken/{id}/rotate/", {"grace": "60"})
        assert re.search(r"bci_[A-Za-z0-9_-]{43}", answer.content.decode())
        assert "no-store" in answer["Cache-Control"]
        assert rows("SELECT count(*), count(replaced_by) FROM compute_iam_tokens") == [(2, 1)]

    def test_tokens_of_other_tenants_are_not_there(self, session: Client) -> None:
        service("eve", home="other")
        made = compute.api.tokens.create(
            OPERATOR, {"tenantId": "far", "label": "theirs", "principal": "service/eve"}
        ).token
        for query in ("", "?tenant=far", "?q=service/eve"):
            assert "theirs" not in text(session.get(f"/admin/compute_iam/scopedtoken/{query}"))
        address = f"/admin/compute_iam/scopedtoken/{made.id}/"
        assert "Perhaps it was deleted" in text(session.get(f"{address}change/", follow=True))
        assert "bci_" not in session.post(f"{address}rotate/", {"grace": "0"}).content.decode()
        assert "that you can see" in text(session.post(f"{address}end/", {"confirmed": "yes"}, follow=True))
        assert rows("SELECT count(*) FROM compute_iam_tokens WHERE revoked_at IS NULL") == [(1,)]


PAGES = [
    "/admin/compute_iam/tenantnode/",
    "/admin/compute_iam/grantrow/",
    "/admin/compute_iam/grantrow/why/",
    "/admin/compute_iam/scopedtoken/",
    "/admin/compute_iam/scopedtoken/new/",
    "/admin/compute_iam/tenantnode/new/",
    "/admin/compute_iam/grantrow/new/",
    "/admin/compute_iam/grantrow/break-glass/",
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
    client.post(f"/admin/compute_iam/grantrow/{given.id}/end/", {"confirmed": "yes"})
    assert compute.api.grants.get(OPERATOR, {"grantId": given.id}).state == "active"
    client.post(
        "/admin/compute_tenancy/tenantstate/act/",
        {"tenant_id": "own", "verb": "delete", "reason": "x", "confirmed": "yes"},
    )
    assert compute.api.tenants.get(OPERATOR, {"tenantId": "own"}).state == "active"
    session = Principal(id=f"user/{user.pk}", kind="session", user=user)
    assert refused(lambda: compute.api.tenants.get(session, {"tenantId": "own"})).code == "NOT_FOUND"


@pytest.mark.parametrize("superuser", [False, True])
def test_a_session_without_a_right_of_iam_sees_no_row_and_is_denied_every_act(
    client: Client, django_user_model: Any, superuser: bool
) -> None:
    make = django_user_model.objects.create_superuser if superuser else django_user_model.objects.create_user
    user = make("nobody", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(content_type__app_label__in=("compute_iam", "compute_tenancy")))
    client.force_login(user)
    service("bob")
    given = grant("bob", "own", "viewer", reason="secret reason")
    compute.api.tenants.suspend(OPERATOR, {"tenantId": "own", "reason": "secret reason"})
    for page in ("compute_iam/tenantnode/", "compute_iam/grantrow/", "compute_tenancy/tenantstate/"):
        shown = text(client.get(f"/admin/{page}"))
        assert "secret reason" not in shown
        assert "that you may" in shown
    for page in (
        "compute_iam/tenantnode/own/",
        f"compute_iam/grantrow/{given.id}/",
        "compute_tenancy/tenantstate/own/",
    ):
        assert "Perhaps it was deleted" in text(client.get(f"/admin/{page}change/", follow=True))
    before = rows("SELECT count(*) FROM compute_iam_grants"), rows("SELECT count(*) FROM compute_iam_tokens")
    for page, ask in {
        "compute_iam/tenantnode/new/": {"parent": "org", "tenant": "x", "kind": "project", "name": "x"},
        "compute_iam/grantrow/new/": {"tenant": "own", "principal": "service/bob", "effect": "permit", "role": "owner"},
        "compute_iam/grantrow/break-glass/": {"tenant": "own", "reason": "x", "minutes": "5"},
        "compute_iam/scopedtoken/new/": {"tenant": "own", "label": "x"},
        "compute_tenancy/tenantstate/act/": {"tenant_id": "own", "verb": "resume", "reason": "x", "confirmed": "yes"},
    }.items():
        assert "that you can see" in text(client.post(f"/admin/{page}", ask)), page
    assert before == (rows("SELECT count(*) FROM compute_iam_grants"), rows("SELECT count(*) FROM compute_iam_tokens"))
    denied = rows("SELECT DISTINCT outcome FROM compute_audit_events WHERE principal = %s", f"user/{user.pk}")
    assert denied == [("denied",)]


def test_a_session_without_the_view_permission_reaches_no_act(client: Client, django_user_model: Any) -> None:
    client.force_login(django_user_model.objects.create_user("clerk", is_staff=True))
    for page in PAGES:
        assert client.get(page).status_code == 403, page
