"""A write made on an older reading is refused with both generations."""

from __future__ import annotations

import pytest

from better_compute import ComputeError, require_generation


@pytest.mark.parametrize(
    ("given", "stored", "message"),
    [
        (3, 4, "The pool 'p1' is at generation 4, and the call expects it at generation 3."),
        (None, 1, "The pool 'p1' is at generation 1, and the call expects it to be new."),
        (1, None, "The pool 'p1' does not exist, and the call expects it at generation 1."),
    ],
)
def test_another_generation_is_refused(given: int | None, stored: int | None, message: str) -> None:
    with pytest.raises(ComputeError) as caught:
        require_generation("pool 'p1'", given=given, stored=stored)
    assert (caught.value.code, caught.value.message) == ("GENERATION_MISMATCH", message)


@pytest.mark.parametrize("generation", [1, None])
def test_the_generation_that_stands_passes(generation: int | None) -> None:
    require_generation("pool 'p1'", given=generation, stored=generation)
