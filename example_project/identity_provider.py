"""``python -m example_project.identity_provider PORT``: a small OpenID provider for development.

Discovery, keys, a login page, the authorization code flow with PKCE (RFC 7636), and two people: mary, a member of the
group ``acme-operators``, and ben, of none; a password is the name again. Everything is kept in memory.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import sys
import time
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

AUDIENCE: Final = "better-compute"
CLIENT: Final = "example"
PEOPLE: Final = {"mary": ["acme-operators"], "ben": []}
#: How long a code can be redeemed, and how long a token is good, in seconds.
CODE_SECONDS, TOKEN_SECONDS = 60, 600
_PAGE: Final = """<!doctype html><html lang="en"><title>Log in</title><h1>Log in</h1><p>{message}</p>
<form method="post"><label>Name <input name="username"></label> <label>Password <input name="password" type="password">
</label> <button>Log in</button></form></html>"""


class Provider:
    """The keys, and the codes that were given out."""

    def __init__(self, issuer: str) -> None:
        self.issuer = issuer
        self._key = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
        self._codes: dict[str, tuple[str, str, str, float]] = {}

    def keys(self) -> dict[str, Any]:
        """The key set (RFC 7517)."""
        public = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(self._key.public_key()))
        return {"keys": [{**public, "kid": "dev", "use": "sig", "alg": "RS256"}]}

    def discovery(self) -> dict[str, Any]:
        """What the issuer says of itself."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
            "code_challenge_methods_supported": ["S256"],
        }

    def code(self, person: str, challenge: str, redirect_uri: str) -> str:
        """A code for whoever has logged in, bound to the challenge and the address."""
        code = secrets.token_urlsafe(24)
        self._codes[code] = (person, challenge, redirect_uri, time.monotonic() + CODE_SECONDS)
        return code

    def redeem(self, code: str, verifier: str, redirect_uri: str) -> str | None:
        """A token for a code, once; None when the code, the verifier or the address is another."""
        person, challenge, address, until = self._codes.pop(code, ("", "", "", 0.0))
        digest = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        if not person or time.monotonic() > until or redirect_uri != address:
            return None
        return self.token(person) if hmac.compare_digest(digest, challenge) else None

    def token(self, person: str) -> str:
        """A signed token with the person's groups."""
        now = int(time.time())
        claims = {
            "iss": self.issuer,
            "aud": AUDIENCE,
            "sub": person,
            "iat": now,
            "exp": now + TOKEN_SECONDS,
            "groups": PEOPLE[person],
        }
        return jwt.encode(claims, self._key, algorithm="RS256", headers={"kid": "dev"})


class Handler(BaseHTTPRequestHandler):
    """The endpoints."""

    provider: Provider

    def do_GET(self) -> None:
        """Documents and the login page."""
        parts = urlsplit(self.path)
        if parts.path == "/.well-known/openid-configuration":
            self._json(200, self.provider.discovery())
        elif parts.path == "/jwks":
            self._json(200, self.provider.keys())
        elif parts.path == "/authorize":
            problem = _refused(_form(parts.query))
            self._page(400 if problem else 200, problem or f"People here: {', '.join(PEOPLE)}.")
        else:
            self._json(404, {"error": "not_found"})

    def do_POST(self) -> None:
        """A login, or a code for a token."""
        parts = urlsplit(self.path)
        form = _form(
            self.rfile.read(min(int(self.headers.get("Content-Length") or 0), 65_536)).decode("utf-8", "replace")
        )
        if parts.path == "/token":
            self._token(form)
        elif parts.path == "/authorize" and not _refused(asked := _form(parts.query)):
            name = form.get("username", "")
            if name not in PEOPLE or form.get("password") != name:
                self._page(401, "No such name and password.")
                return
            code = self.provider.code(name, asked["code_challenge"], asked["redirect_uri"])
            answer = urlencode({"code": code, "state": asked.get("state", "")})
            self.send_response(303)
            self.send_header("Location", f"{asked['redirect_uri']}?{answer}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._json(400, {"error": "invalid_request"})

    def _token(self, form: dict[str, str]) -> None:
        token = None
        if form.get("grant_type") == "authorization_code" and form.get("client_id") == CLIENT:
            token = self.provider.redeem(
                form.get("code", ""), form.get("code_verifier", ""), form.get("redirect_uri", "")
            )
        if token is None:
            self._json(400, {"error": "invalid_grant"})
        else:
            self._json(200, {"access_token": token, "token_type": "Bearer", "expires_in": TOKEN_SECONDS})

    def _page(self, status: int, message: str) -> None:
        self._send(status, "text/html; charset=utf-8", _PAGE.format(message=escape(message)).encode())

    def _json(self, status: int, document: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(document).encode())

    def _send(self, status: int, type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", type)
        self.send_header("Cache-Control", "no-store")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing of each request."""


def _form(text: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(text).items()}


def _refused(asked: dict[str, str]) -> str:
    """Why an authorization request cannot be served; empty when it can."""
    if asked.get("client_id") != CLIENT or asked.get("response_type") != "code":
        return f"Ask with client_id={CLIENT} and response_type=code."
    if asked.get("code_challenge_method") != "S256" or not asked.get("code_challenge"):
        return "Ask with a code_challenge of method S256."
    if urlsplit(asked.get("redirect_uri", "")).hostname not in ("127.0.0.1", "localhost"):
        return "The redirect_uri is not on this machine."
    return ""


def main(port: int) -> None:
    """Serve until the process is ended."""
    Handler.provider = Provider(f"http://127.0.0.1:{port}")
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"People of {Handler.provider.issuer}: {', '.join(PEOPLE)}; a password is the name again.", flush=True)
        server.serve_forever(poll_interval=0.1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
