"""One round trip of a draining worker: finish what ran, claim what is due, and note it, in one transaction.

The note says which keys the member is about to run. It is committed with the claim, so it stands before the first
of them starts: whoever buries the member treats exactly these keys as suspects.

Lock order: as ``leases`` says; the member's own row comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from better_compute.store import claims, ends
from better_compute.store.claims import Claimed, Look
from better_compute.store.ends import Ended

_NOTED: Final = """noted AS (
  UPDATE compute_workers SET inflight = %(others)s::jsonb || COALESCE((
    SELECT jsonb_build_object('kind', %(kind)s::text, 'keys', jsonb_agg(due.key), 'ids', jsonb_agg(due.id),
                              'since', compute_now())
    FROM due HAVING count(*) > 0), '[]')
  WHERE id = %(member)s AND CASE WHEN EXISTS (SELECT FROM due) THEN NOT EXISTS (SELECT FROM due WHERE due.suspect)
                                 ELSE %(ends)s END
)
"""

# The first row: what was deleted as one text, which costs both sides less than a row for each, and the time.
_ANSWER: Final = """
SELECT NULL::bigint, {deleted}, NULL::smallint, NULL::bigint, NULL::integer, NULL::bigint, compute_now(), NULL::boolean
UNION ALL SELECT * FROM due"""

CLAIM_NOTED: Final = f"WITH {claims.DUE}, {_NOTED}{_ANSWER.format(deleted='NULL::text')}"

_DELETED: Final = "(SELECT json_agg(deleted.key)::text FROM deleted)"

FINISH_AND_CLAIM: Final = (
    f"{ends.ENDED_DONE}, deleted AS ({ends.DELETE_DONE}), {claims.DUE}, {_NOTED}{_ANSWER.format(deleted=_DELETED)}"
)


class Noted(msgspec.Struct, omit_defaults=True):
    """Keys of one kind that a member runs, with their incarnations, as its row says it."""

    kind: str
    keys: list[str]
    ids: list[int]
    #: When they were claimed, on the database's clock.
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """What a pass found, at ``at`` on the database's clock."""

    claimed: list[Claimed]
    at: datetime
    #: Keys that were finished in the same statement.
    deleted: frozenset[str] = frozenset()

    @property
    def noted(self) -> bool:
        """Whether the pass noted what it found: suspects are noted one by one."""
        return not any(each.suspect for each in self.claimed)

    def looked_through(self, look: Look) -> dict[int, datetime | None]:
        """How far each shard was looked through: up to the last key found, or None for all of it.

        A shard that the limit cut off is absent.
        """
        last: dict[int, datetime] = {}
        counts: dict[int, int] = {}
        for each in self.claimed:
            last[each.shard] = each.due_at
            counts[each.shard] = counts.get(each.shard, 0) + 1
        ends: dict[int, datetime | None] = {}
        for shard in look.shards:
            cut = len(self.claimed) >= look.limit and shard == self.claimed[-1].shard
            ends[shard] = last[shard] if cut or counts.get(shard, 0) >= look.per_shard else None
            if cut:
                break
        return ends


def claim_noted(cursor: Any, member: str, look: Look, others: Sequence[Noted]) -> Found:
    """Claim what is due and note it beside what the member's ``others`` run; nothing due, nothing written."""
    cursor.execute(CLAIM_NOTED, {**_parameters(member, look, others), "ends": False})
    return _found(cursor.fetchall())


def finish_and_claim(cursor: Any, member: str, ended: Sequence[Ended], look: Look, others: Sequence[Noted]) -> Found:
    """Finish keys that answered DONE like :func:`ends.finish_done`, and claim and note in the same statement.

    ``look.running`` names the ended keys too. When nothing more is due, the note is what the ``others`` run.
    """
    wanted = {**ends.parameters(member, ended), **_parameters(member, look, others)}
    cursor.execute(FINISH_AND_CLAIM, {**wanted, "ends": True})
    return _found(cursor.fetchall())


def _parameters(member: str, look: Look, others: Sequence[Noted]) -> dict[str, Any]:
    return {"member": member, **claims.parameters(look), "others": msgspec.json.encode(others).decode()}


def _found(rows: Sequence[Any]) -> Found:
    _, deleted, *_, at, _ = rows[0]
    return Found(
        [Claimed._make(row) for row in rows[1:]],
        at,
        frozenset() if deleted is None else frozenset(msgspec.json.decode(deleted, type=list[str])),
    )
