"""``ctx.secrets``: what was sealed for one record opens for that record only."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import override_settings

from better_compute import ComputeError, compute
from better_compute.engine import keys
from better_compute.engine.sealing import SecretsPort

pytestmark = pytest.mark.django_db(transaction=True)

OLD, NEW = "old secret " + "x" * 32, "new secret " + "y" * 32
SECRETS = SecretsPort("acme")


@pytest.fixture(autouse=True)
def _secret() -> Any:
    with override_settings(COMPUTE={"SECRET": [OLD]}):
        yield


def seal(value: bytes = b"hunter2") -> bytes:
    return SECRETS.seal(value, tenant_id="t1", record="hook/w1")


def open_(sealed: bytes, *, port: SecretsPort = SECRETS, tenant_id: str = "t1", record: str = "hook/w1") -> bytes:
    return port.open(sealed, tenant_id=tenant_id, record=record)


@pytest.mark.parametrize("value", [b"", b"hunter2", b"\x00" * 100_000])
def test_a_value_comes_back(value: bytes) -> None:
    sealed = seal(value)
    assert open_(sealed) == value
    assert len(sealed) == len(value) + 53


def test_the_same_value_is_never_sealed_alike() -> None:
    assert seal() != seal()
    assert b"hunter2" not in seal()


@pytest.mark.parametrize(
    "elsewhere",
    [
        {"tenant_id": "t2"},
        {"record": "hook/w2"},
        {"port": SecretsPort("other")},
        {"tenant_id": "t1h", "record": "ook/w1"},
    ],
)
def test_a_moved_value_is_refused(elsewhere: Any) -> None:
    with pytest.raises(ComputeError) as caught:
        open_(seal(), **elsewhere)
    assert caught.value.reason == "SEAL_BROKEN"
    assert "hunter2" not in str(caught.value)


def test_every_changed_bit_is_refused() -> None:
    sealed = bytearray(seal())
    for position in range(len(sealed) * 8):
        changed = bytearray(sealed)
        changed[position // 8] ^= 1 << position % 8
        with pytest.raises(ComputeError):
            open_(bytes(changed))


@pytest.mark.parametrize("length", [0, 1, 5, 36, 52])
def test_a_cut_value_is_refused(length: int) -> None:
    with pytest.raises(ComputeError) as caught:
        open_(seal()[:length])
    assert caught.value.reason == "SEAL_BROKEN"


def test_a_new_secret_seals_and_the_earlier_one_still_opens() -> None:
    sealed = seal()
    with override_settings(COMPUTE={"SECRET": [NEW, OLD]}):
        assert open_(sealed) == b"hunter2"
        assert not SECRETS.is_current(sealed)
        again = seal()
        assert SECRETS.is_current(again)
    with override_settings(COMPUTE={"SECRET": [NEW]}):
        assert open_(again) == b"hunter2"
        with pytest.raises(ComputeError) as caught:
            open_(sealed)
    assert caught.value.reason == "SECRET_MISSING"


def test_without_a_secret_nothing_is_sealed() -> None:
    with override_settings(COMPUTE={}), pytest.raises(ComputeError, match=r"COMPUTE\['SECRET'\] is not set"):
        seal()


def test_a_short_secret_is_refused() -> None:
    with (
        override_settings(COMPUTE={"SECRET": ["short"]}),
        pytest.raises(ComputeError, match=r"length >= 32 - at `\$.SECRET"),
    ):
        seal()


def secret_findings() -> list[str]:
    return [finding.message for finding in compute.self_check().findings if finding.check == "secrets.missing"]


def test_doctor_misses_a_secret_that_is_in_use() -> None:
    assert secret_findings() == []
    seal()
    id = keys.keys("seal")[0].id
    assert secret_findings() == []
    with override_settings(COMPUTE={"SECRET": [NEW]}):
        assert secret_findings() == [f"COMPUTE['SECRET'] lacks secrets that sealed values: {id}."]
    with override_settings(COMPUTE={}):
        assert secret_findings() == [f"COMPUTE['SECRET'] is not set, and values are sealed with {id}."]


def test_a_context_seals_for_its_own_module() -> None:
    sealed = compute.context("acme").secrets.seal(b"v", tenant_id="t1", record="r")
    assert open_(sealed, record="r") == b"v"
    assert compute.context("acme").usage is None
