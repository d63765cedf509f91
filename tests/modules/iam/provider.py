"""An OpenID provider on a port of this machine: discovery, keys and a token endpoint, with faults to order."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "better-compute"


class Key:
    """A signing key of the provider."""

    def __init__(self, kid: str, algorithm: str = "RS256", *, state_algorithm: bool = True) -> None:
        self.kid, self.algorithm = kid, algorithm
        self.private: Any = {
            "RS": lambda: rsa.generate_private_key(65_537, 2_048),
            "PS": lambda: rsa.generate_private_key(65_537, 2_048),
            "ES": lambda: ec.generate_private_key(ec.SECP256R1()),
            "Ed": lambda: ed25519.Ed25519PrivateKey.generate(),
        }[algorithm[:2]]()
        maker = jwt.get_algorithm_by_name(algorithm)
        self.jwk: dict[str, Any] = json.loads(maker.to_jwk(self.private.public_key()))  # type: ignore[attr-defined]
        self.jwk |= {"kid": kid, "use": "sig"}
        if state_algorithm:
            self.jwk["alg"] = algorithm
        else:
            self.jwk.pop("alg", None)

    @property
    def public_pem(self) -> bytes:
        """What an attacker has, too."""
        return self.private.public_key().public_bytes(  # type: ignore[no-any-return]
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )


class OpenIdProvider:
    """Run it with :func:`running`."""

    def __init__(self) -> None:
        self.first = Key("k1")
        self.issuer = ""
        self.forget()

    def forget(self) -> None:
        """Be as at the beginning: one key, no faults."""
        self.keys = [self.first]
        #: Seconds that an answer takes, by path.
        self.delay: dict[str, float] = {}
        #: What a path answers instead, as (status, body).
        self.instead: dict[str, tuple[int, bytes]] = {}
        #: How often a path was asked.
        self.asked: dict[str, int] = {}

    def token(self, subject: str = "alice", *, key: Key | None = None, headers: Any = None, **claims: Any) -> str:
        """A token as this provider would give it, changed by ``claims`` (None removes one)."""
        key = key or self.keys[0]
        now = int(time.time())
        body = {"iss": self.issuer, "aud": AUDIENCE, "sub": subject, "iat": now, "exp": now + 300, **claims}
        body = {name: value for name, value in body.items() if value is not None}
        # As bytes, so that claims no library would sign can be signed too.
        return jwt.api_jws.encode(
            json.dumps(body).encode(), key.private, algorithm=key.algorithm, headers={"kid": key.kid, **(headers or {})}
        )

    def answer(self, path: str) -> tuple[int, bytes]:
        """What a GET is answered."""
        self.asked[path] = self.asked.get(path, 0) + 1
        time.sleep(self.delay.get(path, 0))
        if path in self.instead:
            return self.instead[path]
        if path == "/.well-known/openid-configuration":
            document: Any = {
                "issuer": self.issuer,
                "jwks_uri": f"{self.issuer}/jwks",
                "token_endpoint": f"{self.issuer}/token",
            }
        elif path == "/jwks":
            document = {"keys": [key.jwk for key in self.keys]}
        else:
            return 404, b"{}"
        return 200, json.dumps(document).encode()


@contextmanager
def running() -> Iterator[OpenIdProvider]:
    """A provider that answers over HTTP."""
    provider = OpenIdProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = provider.answer(self.path)
            self._send(status, body)

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            if self.path != "/token" or form.get("client_secret") != ["let-me-in"]:
                self._send(401, b"{}")
                return
            token = provider.token(form["client_id"][0])
            self._send(200, json.dumps({"access_token": token, "token_type": "Bearer"}).encode())

        def _send(self, status: int, body: bytes) -> None:
            try:
                self.send_response(status)
                if status == 302:
                    self.send_header("Location", f"{provider.issuer}/jwks")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                # The caller has given up.
                pass

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.issuer = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
