"""What a module logs with its context's log."""

from __future__ import annotations

import logging

import pytest

from better_compute.engine.module_log import module_log


def fail() -> None:
    said = "password=" + "hunter2"
    raise RuntimeError(said)


@pytest.mark.parametrize("times", [1, 2])
def test_a_stack_goes_out_once_and_without_the_text_of_its_exception(
    caplog: pytest.LogCaptureFixture, times: int
) -> None:
    for _ in range(times):
        log = module_log("gone")
    try:
        fail()
    except RuntimeError:
        log.exception("it failed")
    assert "hunter2" not in caplog.text
    assert caplog.text.count("in fail") == 1
    assert caplog.text.count("RuntimeError: password=...") == 1


def test_what_is_logged_without_a_stack_stays_as_it_is(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        module_log("quiet").info("%s of %s", 1, 2, exc_info=True)
    assert caplog.messages == ["1 of 2"]
