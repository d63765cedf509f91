"""One round trip of a draining worker: finish what ran, claim what is due, and note it, in one transaction.

The note says which keys the member is about to run. It is committed with the claim, so it stands before the first
of them starts: whoever buries the member treats exactly these keys as suspects.

A claim passes over the index entries of keys that are gone. While some old transaction keeps PostgreSQL from
removing them they pile up, so each hold remembers for a kind how far its shard has been looked through (its
floor), and a pass begins there. A floor is a hint: rows below it wait for the next pass without floors, which
every poll makes.

Lock order: as ``leases`` says; the member's own row comes last.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import msgspec

from better_compute.store import arrays, work
from better_compute.store.work import CRASHED, Claimed, Ended

#: Looks at everything that is due.
NO_FLOOR: Final = "-infinity"

# One bounded index descent a shard. What is being finished runs still, for this statement's snapshot shows it.
_DUE: Final = """
due AS MATERIALIZED (
  SELECT found.* FROM unnest(%(shards)s::smallint[], %(floors)s::timestamptz[]) AS held (shard, floor)
  CROSS JOIN LATERAL (
    SELECT queued.id, queued.key, queued.shard, queued.generation, queued.attempts, queued.every_ms,
           queued.not_before, COALESCE(queued.last_error = %(crashed)s, false) AS suspect
    FROM compute_work queued
    WHERE queued.kind = %(kind)s AND queued.shard = held.shard
      AND queued.not_before >= held.floor AND queued.not_before <= (SELECT compute_now())
      AND queued.key NOT IN (SELECT unnest(%(running)s::text[]))
    ORDER BY queued.not_before
    LIMIT %(per_shard)s
  ) AS found
  LIMIT %(limit)s
), noted AS (
  UPDATE compute_workers SET inflight = %(others)s::jsonb || COALESCE((
    SELECT jsonb_build_object('kind', %(kind)s::text, 'keys', jsonb_agg(due.key), 'ids', jsonb_agg(due.id),
                              'since', compute_now())
    FROM due HAVING count(*) > 0), '[]')
  WHERE id = %(member)s AND CASE WHEN EXISTS (SELECT FROM due) THEN NOT EXISTS (SELECT FROM due WHERE due.suspect)
                                 ELSE %(ends)s END
)
"""

_ANSWER: Final = """
SELECT NULL::bigint, NULL::text, NULL::smallint, NULL::bigint, NULL::integer, NULL::bigint, compute_now(), NULL::boolean
UNION ALL """

CLAIM_NOTED: Final = f"WITH {_DUE}{_ANSWER}SELECT * FROM due"  # noqa: S608 - fragments of our own

FINISH_AND_CLAIM: Final = f"""{work.ENDED_DONE}, deleted AS (
  DELETE FROM compute_work queued USING ended
  WHERE queued.kind = ended.kind AND queued.key = ended.key
  RETURNING queued.key
), {_DUE}{_ANSWER}SELECT NULL, deleted.key, NULL, NULL, NULL, NULL, NULL::timestamptz, NULL FROM deleted
UNION ALL SELECT * FROM due"""  # noqa: S608 - fragments of our own


class Noted(msgspec.Struct, omit_defaults=True):
    """Keys of one kind that a member runs, with their incarnations, as its row says it."""

    kind: str
    keys: list[str]
    ids: list[int]
    #: When they were claimed, on the database's clock.
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Look:
    """What a pass is to look for: keys of ``kind`` on shards from their floors on, but for those that run."""

    kind: str
    shards: Sequence[int]
    floors: Sequence[str]
    running: Collection[str]
    limit: int
    per_shard: int


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
    """Finish keys that answered DONE like :func:`work.finish_done`, and claim and note in the same statement.

    ``look.running`` names the ended keys too. When nothing more is due, the note is what the ``others`` run.
    """
    ends = work.ended_parameters(member, ended)
    cursor.execute(FINISH_AND_CLAIM, {**ends, **_parameters(member, look, others), "ends": True})
    return _found(cursor.fetchall())


def _parameters(member: str, look: Look, others: Sequence[Noted]) -> Mapping[str, Any]:
    return {
        "member": member,
        "kind": look.kind,
        "shards": arrays.integers(look.shards),
        "floors": "{" + ",".join(look.floors) + "}",
        "running": arrays.texts(look.running),
        "limit": look.limit,
        "per_shard": look.per_shard,
        "crashed": CRASHED,
        "others": msgspec.json.encode(others).decode(),
    }


def _found(rows: Sequence[Any]) -> Found:
    claimed: list[Claimed] = []
    deleted: list[str] = []
    for row in rows[1:]:
        if row[0] is None:
            deleted.append(row[1])
        else:
            claimed.append(Claimed._make(row))
    return Found(claimed, rows[0][6], frozenset(deleted))
