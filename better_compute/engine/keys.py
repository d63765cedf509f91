"""Keys derived from ``COMPUTE["SECRET"]``: the newest secret makes new values, earlier ones are still accepted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings as django_settings

from better_compute import conf


@dataclass(frozen=True, slots=True)
class Key:
    """32 bytes for one purpose. ``id`` (8 hexadecimal digits) names the secret, and tells nothing of it."""

    id: str
    material: bytes

    def __repr__(self) -> str:
        return f"<Key {self.id}>"


def keys(purpose: str) -> Sequence[Key]:
    """A key for each secret, newest first; empty when ``COMPUTE["SECRET"]`` is."""
    return _derived(purpose, conf.current().secret)


def keys_or_django(purpose: str) -> Sequence[Key]:
    """As :func:`keys`, from Django's own secret where there is no other: for what lives for a day at most."""
    django = (django_settings.SECRET_KEY, *django_settings.SECRET_KEY_FALLBACKS)
    return _derived(purpose, conf.current().secret or tuple(str(secret) for secret in django))


@lru_cache(maxsize=32)
def _derived(purpose: str, secrets: tuple[str, ...]) -> tuple[Key, ...]:
    return tuple(
        Key(_derive(secret, b"better_compute/id")[:4].hex(), _derive(secret, f"better_compute/{purpose}".encode()))
        for secret in secrets
    )


def _derive(secret: str, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret.encode())
