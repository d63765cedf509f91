"""``ctx.secrets``: values sealed with AES-256-GCM, each bound to its module, tenant and record.

A sealed value is ``0x01 || key id (4 bytes) || salt (32 bytes) || ciphertext and tag``. Key and nonce of a value come
from its own random salt through HKDF-SHA256, so that no nonce can meet the same key twice however many are sealed.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.engine import keys
from better_compute.store import seal_keys

FORM: Final = b"\x01"
PURPOSE: Final = "seal"
_SALT: Final = 32
_HEAD: Final = len(FORM) + 4 + _SALT


@dataclass(frozen=True, slots=True)
class SecretsPort:
    """See :class:`better_compute.contract.ports.Secrets`."""

    module: str

    def seal(self, plaintext: bytes, *, tenant_id: str, record: str) -> bytes:
        """Seal with the newest secret, and note in the open transaction that it is in use."""
        ring = keys.keys(PURPOSE)
        if not ring:
            raise ComputeError(
                ErrorCode.INVALID_CONFIG,
                f"The module {self.module} has a value to seal, and COMPUTE['SECRET'] is not set.",
                mend="Set COMPUTE['SECRET'] to a list with one secret of at least 32 characters.",
            )
        head = FORM + bytes.fromhex(ring[0].id) + secrets.token_bytes(_SALT)
        seal_keys.note(ring[0].id)
        cipher, nonce = _cipher(ring[0], head)
        return head + cipher.encrypt(nonce, plaintext, self._bound_to(tenant_id, record) + head)

    def open(self, sealed: bytes, *, tenant_id: str, record: str) -> bytes:
        """Open a value sealed for this record; a value of another record, or a changed one, is refused."""
        sealed = bytes(sealed)
        head = sealed[:_HEAD]
        if len(sealed) < _HEAD + 16 or not sealed.startswith(FORM):
            raise _refused(record)
        key = next((key for key in keys.keys(PURPOSE) if bytes.fromhex(key.id) == head[1:5]), None)
        if key is None:
            raise ComputeError(
                ErrorCode.INVALID_CONFIG,
                f"The sealed value of {record!r} needs the secret {head[1:5].hex()}, which COMPUTE['SECRET'] lacks.",
                mend="Put the earlier secret back, behind the newest one.",
                reason="SECRET_MISSING",
            )
        cipher, nonce = _cipher(key, head)
        try:
            return cipher.decrypt(nonce, sealed[_HEAD:], self._bound_to(tenant_id, record) + head)
        except InvalidTag:
            raise _refused(record) from None

    def is_current(self, sealed: bytes) -> bool:
        """Whether the newest secret sealed it; otherwise seal it again when it is next written."""
        ring = keys.keys(PURPOSE)
        return bool(ring) and bytes(sealed)[1:5] == bytes.fromhex(ring[0].id)

    def _bound_to(self, tenant_id: str, record: str) -> bytes:
        # Lengths keep ("a", "bc") and ("ab", "c") apart.
        parts = (self.module.encode(), tenant_id.encode(), record.encode())
        return b"".join(len(part).to_bytes(4) + part for part in parts)


def _cipher(key: keys.Key, head: bytes) -> tuple[AESGCM, bytes]:
    derived = HKDF(algorithm=SHA256(), length=44, salt=head[5:], info=b"better_compute/sealed value").derive(
        key.material
    )
    return AESGCM(derived[:32]), derived[32:]


def _refused(record: str) -> ComputeError:
    return ComputeError(
        ErrorCode.INTERNAL_ERROR,
        f"The sealed value of {record!r} was changed, or belongs to another record, tenant or module.",
        mend="Write the value again; then find out who changed the row.",
        reason="SEAL_BROKEN",
    )
