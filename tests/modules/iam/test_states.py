"""The lives of grants and tokens: every pair, and the times they are told from. The docs draw the same tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from better_compute.testing import check_states
from compute_modules.iam.states import GRANT, TOKEN, State, state_of

NOW = datetime(2030, 1, 1, tzinfo=UTC)
BEFORE, AFTER = NOW - timedelta(hours=1), NOW + timedelta(hours=1)


@pytest.mark.parametrize("table", [GRANT, TOKEN], ids=["grant", "token"])
def test_every_pair_leads_on_or_is_refused_with_the_legal_verbs(table: object) -> None:
    check_states(table)  # type: ignore[arg-type]


def test_a_grant_is_in_any_state_and_a_token_never_pending() -> None:
    assert set(GRANT.states) == set(State)
    assert set(TOKEN.states) == set(State) - {State.PENDING}


@pytest.mark.parametrize(
    ("starts_at", "expires_at", "revoked_at", "state"),
    [
        (None, None, None, State.ACTIVE),
        (AFTER, None, None, State.PENDING),
        (NOW, AFTER, None, State.ACTIVE),
        (BEFORE, NOW, None, State.EXPIRED),
        (AFTER, BEFORE, None, State.EXPIRED),
        (None, BEFORE, BEFORE, State.REVOKED),
        (AFTER, None, BEFORE, State.REVOKED),
    ],
)
def test_the_state_is_told_from_the_times(
    starts_at: datetime | None, expires_at: datetime | None, revoked_at: datetime | None, state: State
) -> None:
    assert state_of(NOW, starts_at=starts_at, expires_at=expires_at, revoked_at=revoked_at) is state
