"""The mark of a transaction: a setting that ends with it, so that its end can tell that it is still the one that began.

A handler can end the transaction behind our back (``cursor.execute("ROLLBACK")``, ``connection.connection.commit()``),
and whatever it runs next begins another one, which would commit as if nothing had happened. The mark is set in the
first statement and looked at in the message of COMMIT, so it costs no round trip.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import django.db

from better_compute.contract.errors import ComputeError, ErrorCode
from better_compute.store import message

_NAME: Final = "compute.transaction"
_GONE: Final = "compute_transaction_replaced"

#: Sets the mark, as an expression of a statement and as a statement.
SET: Final = f"set_config('{_NAME}', 'open', true)"
SET_LOCAL: Final = f"SET LOCAL {_NAME} = 'open'"

# Fails where the mark is gone, so that a COMMIT behind it in the same message is not reached. The concatenation
# keeps the planner from casting before it has looked. Takes no lock.
CHECK: Final = f"""
SELECT CASE WHEN current_setting('{_NAME}', true) = 'open' THEN 0
  ELSE ('{_GONE}' || COALESCE(current_setting('{_NAME}', true), ''))::integer END
"""

_COMMIT: Final = f"{CHECK}; COMMIT".encode()


def commit(connection: Any) -> None:
    """Check and COMMIT in one message, of which no wrapper of Django's cursor is told; raises like :func:`check`."""
    with told():
        message.exchange(connection, _COMMIT)


def check(cursor: Any) -> None:
    """Raise INTERNAL_ERROR when the transaction is not the one that was marked."""
    with told():
        cursor.execute(CHECK)


@contextmanager
def told() -> Iterator[None]:
    """Turn the failure of :data:`CHECK` inside into what it means."""
    try:
        yield
    except django.db.DataError as error:
        if _GONE not in str(error):
            raise
        raise ComputeError(
            ErrorCode.INTERNAL_ERROR,
            "The transaction was ended inside, by a COMMIT or ROLLBACK of its own, so nothing after it was kept.",
            mend="Leave COMMIT and ROLLBACK to the core: raise to undo, or use ctx.sql.transaction() for a savepoint.",
        ) from None
