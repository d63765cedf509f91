"""Callers with a token of an identity provider that runs beside the tests, over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import jwt
import pytest
from django.conf import settings
from django.test import Client, override_settings

from better_compute import registry
from better_compute.testing import advance_clock
from compute_modules.iam.jwks import KeySet, ProviderUnreachable, fetch
from tests.modules.iam.conftest import AUTHORIZER, grant, rows, service
from tests.modules.iam.provider import AUDIENCE, Key, OpenIdProvider, running
from tests.modules.tenancy.conftest import in_thread

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("world")]

Count = Callable[[str], Any]


@pytest.fixture(scope="module")
def shared_provider() -> Iterator[OpenIdProvider]:
    with running() as provider:
        yield provider


@pytest.fixture
def provider(world: None, shared_provider: OpenIdProvider) -> Iterator[OpenIdProvider]:
    """A fresh provider on a port that stays, configured as ``corp``."""
    shared_provider.forget()
    with configured(shared_provider):
        yield shared_provider


def configured(provider: OpenIdProvider, **more: Any) -> Any:
    """Settings that know the provider, and map members of the group admins to operators of own."""
    described = {
        "NAME": "corp",
        "ISSUER": provider.issuer,
        "AUDIENCE": AUDIENCE,
        "ALGORITHMS": ["RS256", "ES256", "EdDSA"],
        "KEYS_PAUSE_S": 0,
        "CLAIM_GRANTS": [{"CLAIM": "groups", "VALUE": "admins", "TENANT": "own", "ROLE": "operator"}],
        **more,
    }
    return override_settings(COMPUTE={**settings.COMPUTE, "IAM": AUTHORIZER, "iam": {"PROVIDERS": [described]}})


@pytest.fixture
def count(client: Client) -> Count:
    def call(token: str) -> Any:
        return client.post(
            "/api/compute/plugins/acme/widgets/count",
            {"tenantId": "own"},
            content_type="application/json",
            headers={"Authorization": f"Bearer {token}"},
        )

    return call


def encoded(value: Any) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class TestWhoComesIn:
    def test_a_token_got_from_the_providers_endpoint_calls(self, provider: OpenIdProvider, count: Count) -> None:
        grant("external/corp/robot", "own", "viewer")
        form = urllib.parse.urlencode({"client_id": "robot", "client_secret": "let-me-in"}).encode()
        with urllib.request.urlopen(f"{provider.issuer}/token", data=form, timeout=5) as answer:  # noqa: S310
            token = json.load(answer)["access_token"]
        answered = count(token)
        assert (answered.status_code, answered.json()) == (200, {"count": 0})
        assert provider.asked == {"/.well-known/openid-configuration": 1, "/jwks": 1}

    def test_without_a_grant_or_a_claim_nothing_is_there(self, provider: OpenIdProvider, count: Count) -> None:
        assert count(provider.token()).status_code == 404

    @pytest.mark.parametrize("groups", ["admins", ["users", "admins"]])
    def test_claims_are_mapped_to_grants_for_as_long_as_they_say_so(
        self, provider: OpenIdProvider, count: Count, groups: Any
    ) -> None:
        # She stays visible in the tenant when her claim has ended, so that 403 tells what the claim brought.
        grant("external/corp/alice", "own", actions=["compute:iam:read"])
        token = provider.token(groups=groups)
        assert count(token).status_code == 200
        assert count(provider.token(groups=["users"])).status_code == 403
        assert rows("SELECT count(*) FROM compute_iam_grants") == [(1,)]
        advance_clock(timedelta(seconds=300 + 31))
        assert count(token).status_code == 401
        now = int(rows("SELECT compute_now()")[0][0].timestamp())
        assert count(provider.token(groups=groups, iat=now, exp=now + 300)).status_code == 200
        assert count(provider.token(groups=["users"], iat=now, exp=now + 300)).status_code == 403

    @pytest.mark.parametrize("groups", ["admins2", ["ADMINS"], {"admins": True}, "admins ", None, 7, [["admins"]]])
    def test_what_only_looks_like_the_claim_maps_to_nothing(
        self, provider: OpenIdProvider, count: Count, groups: Any
    ) -> None:
        assert count(provider.token(groups=groups)).status_code == 404

    def test_a_forbid_beats_what_a_claim_brings(self, provider: OpenIdProvider, count: Count) -> None:
        grant("external/corp/alice", "own", effect="forbid", actions=["compute:acme:read"])
        assert count(provider.token(groups="admins")).status_code == 403

    def test_who_is_disabled_here_stays_out_whatever_the_provider_says(
        self, provider: OpenIdProvider, count: Count
    ) -> None:
        grant("external/corp/alice", "own", "viewer")
        assert count(provider.token()).status_code == 200
        rows("UPDATE compute_iam_principals SET disabled_at = compute_now() WHERE id = 'external/corp/alice'")
        assert count(provider.token(groups="admins")).status_code == 404

    @pytest.mark.parametrize("algorithm", ["RS256", "ES256", "EdDSA"])
    @pytest.mark.parametrize("stated", [True, False])
    def test_every_allowed_algorithm_is_accepted(
        self, provider: OpenIdProvider, count: Count, algorithm: str, stated: bool
    ) -> None:
        provider.keys = [Key("k", algorithm, state_algorithm=stated)]
        assert count(provider.token(groups="admins")).status_code == 200

    def test_the_audience_may_be_one_of_several(self, provider: OpenIdProvider, count: Count) -> None:
        assert count(provider.token(groups="admins", aud=["other", AUDIENCE])).status_code == 200


def forged(provider: OpenIdProvider) -> dict[str, str]:
    """Tokens that must not come in, each good but for one thing."""
    good = provider.token(groups="admins")
    header, payload, signature = good.split(".")
    other = Key("k1")
    now = int(time.time())
    claims = {"iss": provider.issuer, "aud": AUDIENCE, "sub": "a", "iat": now, "exp": now + 300, "groups": "admins"}

    def unsigned(alg: str) -> str:
        return f"{encoded({'alg': alg, 'typ': 'JWT', 'kid': 'k1'})}.{payload}."

    def with_public_key_as_secret(alg: str) -> str:
        signed = f"{encoded({'alg': alg, 'typ': 'JWT', 'kid': 'k1'})}.{payload}"
        digest = hmac.new(provider.keys[0].public_pem, signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{encoded(digest)}"

    return {
        "none": unsigned("none"),
        "None": unsigned("None"),
        "unsigned RS256": unsigned("RS256"),
        "signature of another token": f"{provider.token('bob').rpartition('.')[0]}.{signature}",
        "changed claims": f"{header}.{encoded({**claims, 'sub': 'root'})}.{signature}",
        "cut signature": f"{header}.{payload}.{signature[:-8]}",
        "algorithm confusion HS256": with_public_key_as_secret("HS256"),
        "algorithm confusion RS256": with_public_key_as_secret("RS256"),
        "another algorithm of the same key": jwt.encode(
            claims, provider.keys[0].private, algorithm="RS512", headers={"kid": "k1"}
        ),
        "another key under the same id": provider.token(groups="admins", key=other),
        "unknown key id": provider.token(groups="admins", headers={"kid": "k9"}),
        "no key id": jwt.encode(claims, provider.keys[0].private, algorithm="RS256"),
        "key in the header": jwt.encode(
            claims, other.private, algorithm="RS256", headers={"kid": "k9", "jwk": other.jwk, "jku": "http://x/"}
        ),
        "wrong audience": provider.token(groups="admins", aud="somebody-else"),
        "no audience": provider.token(groups="admins", aud=None),
        "wrong issuer": provider.token(groups="admins", iss="https://evil.example"),
        "issuer with a slash more": provider.token(groups="admins", iss=provider.issuer + "/"),
        "no issuer": provider.token(groups="admins", iss=None),
        "issuer is a list": provider.token(groups="admins", iss=[provider.issuer]),
        "expired": provider.token(groups="admins", iat=now - 900, exp=now - 60),
        "future-dated": provider.token(groups="admins", iat=now + 120, exp=now + 300),
        "not before": provider.token(groups="admins", nbf=now + 120),
        "no end": provider.token(groups="admins", exp=None),
        "no beginning": provider.token(groups="admins", iat=None),
        "end is text": provider.token(groups="admins", exp="tomorrow"),
        "end is true": provider.token(groups="admins", exp=True),
        "subject is a number": provider.token(7, groups="admins"),  # type: ignore[arg-type]
        "lives for ever": provider.token(groups="admins", exp=now + 10_000_000),
        "end beyond time": provider.token(groups="admins", exp=10**18),
        "end at the end of time": provider.token(groups="admins", iat=253_402_300_799, exp=253_402_300_799),
        "beginning before time": provider.token(groups="admins", nbf=-62_135_596_800),
        "no subject": provider.token(None, groups="admins"),  # type: ignore[arg-type]
        "empty subject": provider.token("", groups="admins"),
        "subject with a line break": provider.token("a\nb", groups="admins"),
        "critical header": provider.token(groups="admins", headers={"crit": ["exp"]}),
        "logout token": provider.token(groups="admins", headers={"typ": "logout+jwt"}),
        "four parts": good + ".x",
        "two parts": good.rpartition(".")[0],
        "no JSON": f"{encoded(b'{')}.{payload}.{signature}",
        "a list": f"{header}.{encoded([1])}.{signature}",
        "huge": f"{header}.{'A' * 20_000}.{signature}",
    }


def test_no_forged_token_comes_in(provider: OpenIdProvider, count: Count) -> None:
    assert count(provider.token(groups="admins")).status_code == 200
    met = {name: count(token).status_code for name, token in forged(provider).items()}
    assert {name: status for name, status in met.items() if status != 401} == {}


class TestTime:
    def test_the_databases_clock_decides(self, provider: OpenIdProvider, count: Count) -> None:
        token = provider.token(groups="admins")
        assert count(token).status_code == 200
        advance_clock(timedelta(seconds=300 + 31))
        assert count(token).status_code == 401

    @pytest.mark.parametrize(("skew", "status"), [(-322, 200), (-331, 401), (28, 200), (40, 401)])
    def test_a_clock_may_be_off_by_the_leeway(
        self, provider: OpenIdProvider, count: Count, skew: int, status: int
    ) -> None:
        now = int(rows("SELECT compute_now()")[0][0].timestamp())
        assert count(provider.token(groups="admins", iat=now + skew, exp=now + skew + 300)).status_code == status


class TestGiving:
    """What somebody who calls with a token of the provider gives and makes, through real calls."""

    @pytest.fixture
    def post(self, client: Client) -> Callable[..., Any]:
        def call(token: str, path: str, **body: Any) -> Any:
            return client.post(
                f"/api/compute/{path}",
                {"tenantId": "own", **body},
                content_type="application/json",
                headers={"Authorization": f"Bearer {token}"},
            )

        return call

    OWNERS = [{"CLAIM": "groups", "VALUE": "owners", "TENANT": "own", "ROLE": "owner"}]
    TO_FRIEND = {"principal": "service/friend", "role": "viewer"}

    def ends(self, seconds: int) -> str:
        return str((rows("SELECT compute_now()")[0][0] + timedelta(seconds=seconds)).isoformat())

    def test_what_a_claim_conveys_is_given_no_further_than_the_token_lasts(
        self, provider: OpenIdProvider, post: Callable[..., Any]
    ) -> None:
        service("friend", home="own")
        for more in ({}, {"GIFTS_OUTLAST_TOKENS": True}):
            with configured(provider, CLAIM_GRANTS=self.OWNERS, **more):
                token = provider.token(groups="owners")
                for late in ({}, {"expiresAt": self.ends(3_600)}):
                    for ask in (self.TO_FRIEND, {"principal": "external/corp/alice", "role": "owner"}):
                        answer = post(token, "grants/create", **ask, **late)
                        assert (answer.status_code, answer.json()["reason"]) == (403, "EXCEEDS_GIVER")
                assert post(token, "grants/create", **self.TO_FRIEND, expiresAt=self.ends(120)).status_code == 200

    def test_nor_is_a_scoped_token_made_that_lasts_longer(
        self, provider: OpenIdProvider, post: Callable[..., Any]
    ) -> None:
        with configured(provider, CLAIM_GRANTS=self.OWNERS):
            token = provider.token(groups="owners")
            for late in ({}, {"expiresAt": self.ends(3_600)}):
                answer = post(token, "tokens/create", label="t", **late)
                assert (answer.status_code, answer.json()["reason"]) == (403, "EXCEEDS_GIVER")
            assert post(token, "tokens/create", label="t", expiresAt=self.ends(120)).status_code == 200

    def test_what_is_granted_here_is_given_for_good_only_where_the_settings_say_so(
        self, provider: OpenIdProvider, post: Callable[..., Any]
    ) -> None:
        service("friend", home="own")
        grant("external/corp/alice", "own", "owner")
        assert post(provider.token(), "grants/create", **self.TO_FRIEND).status_code == 403
        assert post(provider.token(), "tokens/create", label="t").status_code == 403
        with configured(provider, GIFTS_OUTLAST_TOKENS=True):
            assert post(provider.token(), "grants/create", **self.TO_FRIEND).status_code == 200
            assert post(provider.token(), "tokens/create", label="t").status_code == 200


class TestKeys:
    def test_they_are_fetched_once_for_many_calls(self, provider: OpenIdProvider, count: Count) -> None:
        for _ in range(5):
            assert count(provider.token(groups="admins")).status_code == 200
        assert provider.asked["/jwks"] == 1

    def test_a_rotation_is_followed_at_once(self, provider: OpenIdProvider, count: Count) -> None:
        old = provider.token(groups="admins")
        assert count(old).status_code == 200
        provider.keys = [Key("k2"), provider.keys[0]]
        assert count(provider.token(groups="admins")).status_code == 200
        assert count(old).status_code == 200

    def test_a_key_that_was_withdrawn_is_refused_after_the_time_keys_are_kept(
        self, provider: OpenIdProvider, count: Count
    ) -> None:
        with configured(provider, KEYS_TTL_S=0):
            old = provider.token(groups="admins")
            assert count(old).status_code == 200
            provider.keys = [Key("k2")]
            assert count(old).status_code == 401

    def test_made_up_key_ids_cause_no_storm(self, provider: OpenIdProvider, count: Count) -> None:
        with configured(provider, KEYS_PAUSE_S=60):
            assert count(provider.token(groups="admins")).status_code == 200
            for number in range(10):
                assert count(provider.token(headers={"kid": f"x{number}"})).status_code == 401
            assert provider.asked["/jwks"] == 1

    @pytest.mark.parametrize("path", ["/jwks", "/.well-known/openid-configuration"])
    def test_a_provider_that_does_not_answer_is_503_in_good_time(
        self, provider: OpenIdProvider, count: Count, path: str
    ) -> None:
        provider.delay[path] = 3.0
        with configured(provider, TIMEOUT_S=0.2):
            begun = time.monotonic()
            answer = count(provider.token(groups="admins"))
            assert time.monotonic() - begun < 2.0
        assert (answer.status_code, answer.json()["reason"]) == (503, "PROVIDER_UNREACHABLE")
        assert int(answer["Retry-After"]) > 0

    def test_keys_that_are_known_serve_while_the_provider_is_away(self, provider: OpenIdProvider, count: Count) -> None:
        with configured(provider, KEYS_TTL_S=0):
            assert count(provider.token(groups="admins")).status_code == 200
            provider.instead["/jwks"] = (500, b"down")
            assert count(provider.token(groups="admins")).status_code == 200

    @pytest.mark.parametrize(
        "body",
        [b"", b"[]", b"{", b'{"keys": 7}', b'{"keys": [' + b"{}," * 200 + b"{}]}", b" " * 300_000],
        ids=["empty", "list", "broken", "no-list", "many", "large"],
    )
    def test_a_key_set_that_makes_no_sense_is_as_none(
        self, provider: OpenIdProvider, count: Count, body: bytes
    ) -> None:
        provider.instead["/jwks"] = (200, body)
        assert count(provider.token(groups="admins")).status_code in (401, 503)

    def test_a_redirect_is_not_followed(self, provider: OpenIdProvider, count: Count) -> None:
        provider.instead["/.well-known/openid-configuration"] = (302, b"")
        assert count(provider.token(groups="admins")).status_code == 503

    def test_a_discovery_document_of_another_issuer_is_refused(self, provider: OpenIdProvider, count: Count) -> None:
        document = {"issuer": "https://evil.example", "jwks_uri": f"{provider.issuer}/jwks"}
        provider.instead["/.well-known/openid-configuration"] = (200, json.dumps(document).encode())
        assert count(provider.token(groups="admins")).status_code == 503

    def test_a_shared_secret_among_the_keys_signs_nothing(self, provider: OpenIdProvider, count: Count) -> None:
        secret = b"s" * 32
        document = {"keys": [{"kty": "oct", "kid": "s", "k": encoded(secret), "alg": "HS256"}]}
        provider.instead["/jwks"] = (200, json.dumps(document).encode())
        claims = jwt.decode(provider.token(groups="admins"), options={"verify_signature": False})
        token = jwt.encode(claims, secret, algorithm="HS256", headers={"kid": "s"})
        assert count(token).status_code == 401


class TestWhereKeysMayBe:
    """A provider that was taken over, or lies, sends this server nowhere inside its own network."""

    @pytest.mark.parametrize(
        "address",
        [
            "http://169.254.169.254/latest/meta-data",
            "https://169.254.169.254/jwks",
            "https://10.0.0.1/jwks",
            "https://192.168.1.1:8443/jwks",
            "https://127.0.0.2/jwks",
            "https://[::1]/jwks",
            "https://[::ffff:10.0.0.1]/jwks",
            "https://[fe80::1]/jwks",
            "https://localhost/jwks",
            "https://0.0.0.0/jwks",
            "https://224.0.0.1/jwks",
            "http://keys.example/jwks",
            "http://localhost:6379/",
            "https://user:secret@keys.example/jwks",
            "https://[broken/jwks",
            "file:///etc/passwd",
            "ftp://keys.example/jwks",
            "gopher://127.0.0.1:6379/_FLUSHALL",
            "/jwks",
            "",
        ],
    )
    def test_an_address_inside_is_503_and_nobody_connects(
        self, provider: OpenIdProvider, count: Count, monkeypatch: pytest.MonkeyPatch, address: str
    ) -> None:
        document = {"issuer": provider.issuer, "jwks_uri": address}
        provider.instead["/.well-known/openid-configuration"] = (200, json.dumps(document).encode())
        connected: list[Any] = []
        create = socket.create_connection

        def connect(address: Any, *args: Any, **kwargs: Any) -> Any:
            connected.append(address)
            return create(address, *args, **kwargs)

        monkeypatch.setattr(socket, "create_connection", connect)
        answer = count(provider.token(groups="admins"))
        assert (answer.status_code, answer.json()["reason"]) == (503, "PROVIDER_UNREACHABLE")
        assert {host for host, _ in connected} <= {urllib.parse.urlsplit(provider.issuer).hostname}
        assert provider.asked == {"/.well-known/openid-configuration": 1}
        assert "169.254" not in answer.content.decode()

    def test_a_name_that_resolves_inside_is_refused_whatever_it_resolved_to_before(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        answers = iter([["10.0.0.7"], ["93.184.216.34", "127.0.0.1"]])

        def resolve(host: str, port: int, **kwargs: Any) -> Any:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in next(answers)]

        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        monkeypatch.setattr(socket, "create_connection", lambda *args, **kwargs: pytest.fail("it connected"))
        for inside in ("10.0.0.7", "127.0.0.1"):
            with pytest.raises(ProviderUnreachable, match=f"{inside}, an address of this network"):
                fetch("https://keys.example/jwks", 1, public=True)

    def test_it_connects_to_the_very_address_that_was_judged(self, monkeypatch: pytest.MonkeyPatch) -> None:
        connected: list[Any] = []

        def connect(address: Any, *args: Any, **kwargs: Any) -> Any:
            connected.append(address)
            raise ConnectionRefusedError

        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("93.184.216.34", 443))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: found)
        monkeypatch.setattr(socket, "create_connection", connect)
        with pytest.raises(ProviderUnreachable):
            fetch("https://keys.example/jwks", 1, public=True)
        assert connected == [("93.184.216.34", 443)]

    def test_what_the_settings_name_is_trusted(self, provider: OpenIdProvider, count: Count) -> None:
        with configured(provider, JWKS_URL=f"{provider.issuer}/jwks"):
            assert count(provider.token(groups="admins")).status_code == 200
        assert provider.asked == {"/jwks": 1}


def test_while_one_asks_a_slow_provider_the_others_use_the_key_that_is_known() -> None:
    loads, entered, go_on = [0], threading.Event(), threading.Event()
    key = Key("k1")

    def load() -> dict[str, Any]:
        loads[0] += 1
        if loads[0] == 2:
            entered.set()
            assert go_on.wait(10)
        return {"keys": [key.jwk]}

    keys = KeySet(load, ttl_s=0, pause_s=0)
    assert keys.key("k1", "RS256") is not None
    slow, answers = in_thread(lambda: keys.key("k1", "RS256"))
    assert entered.wait(10)
    assert keys.key("k1", "RS256") is not None
    assert loads == [2]
    go_on.set()
    slow.join(10)
    assert answers[0] is not None


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"ALGORITHMS": ["HS256"]}, "HS256"),
        ({"ALGORITHMS": ["none"]}, "none"),
        ({"ALGORITHMS": []}, "ALGORITHMS"),
        ({"AUDIENCE": ""}, "AUDIENCE"),
        ({"ISSUER": "http://login.example"}, "login.example"),
        ({"JWKS_URL": "file:///etc/passwd"}, "file:"),
        ({"JWKS_URL": "https://user:secret@login.example/jwks"}, "neither https"),
        ({"ISSUER": "https://user@login.example"}, "neither https"),
        ({"ISSUER": "http://127.0.0.1.evil.example"}, "neither https"),
        ({"TIMEOUT_S": 31}, "TIMEOUT_S"),
        ({"NAME": "Corp/x"}, "NAME"),
        ({"LEEWAY_S": 301}, "LEEWAY_S"),
    ],
    ids=str,
)
def test_unsafe_settings_are_refused_by_the_registry(
    provider: OpenIdProvider, wrong: dict[str, Any], named: str
) -> None:
    with configured(provider, **wrong):
        messages = [message.msg for message in registry.problems()]
    assert any("COMPUTE['iam']" in message and named in message for message in messages), messages
