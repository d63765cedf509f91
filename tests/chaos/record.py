"""The arena's tables, and the questions whose answers decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tests.chaos.watch import Watch

TABLES = """
CREATE TABLE arena_wants (kind text, key text, want bigint NOT NULL DEFAULT 0, PRIMARY KEY (kind, key));
CREATE TABLE arena_visits (kind text, key text, visits bigint NOT NULL DEFAULT 0, PRIMARY KEY (kind, key));
CREATE TABLE arena_runs (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind text NOT NULL, key text NOT NULL, saw bigint NOT NULL,
  entered_at timestamptz NOT NULL, left_at timestamptz NOT NULL,
  pid integer NOT NULL, lease text, epoch bigint);
CREATE INDEX ON arena_runs (kind, key, saw);
CREATE TABLE arena_leases (
  name text NOT NULL, epoch bigint NOT NULL, holder text, former text, at timestamptz NOT NULL);

CREATE FUNCTION arena_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- After the row lock was had, before the change can be seen.
  INSERT INTO arena_leases (name, epoch, holder, former, at)
  SELECT later.name, later.epoch, later.holder, former.holder, clock_timestamp()
  FROM later JOIN former USING (name);
  RETURN NULL;
END $$;
CREATE TRIGGER arena_note AFTER UPDATE ON compute_leases
  REFERENCING OLD TABLE AS former NEW TABLE AS later
  FOR EACH STATEMENT EXECUTE FUNCTION arena_note();
"""

FILL = """
INSERT INTO {table} (kind, key)
SELECT kind, 'key-' || number FROM unnest(%s::text[]) AS kind, generate_series(1, %s) AS number
"""

# Keys whose last committed enqueue no committed run has seen.
LOST = """
SELECT wanted.kind, wanted.key, wanted.want, coalesce(max(ran.saw), 0)
FROM arena_wants wanted LEFT JOIN arena_runs ran USING (kind, key)
GROUP BY wanted.kind, wanted.key, wanted.want HAVING wanted.want > coalesce(max(ran.saw), 0)
ORDER BY 1, 2
"""

# Keys with a visit missing: two runs were inside at once and both committed.
MISSED_VISITS = """
SELECT visited.kind, visited.key, count(ran.id) - visited.visits
FROM arena_visits visited LEFT JOIN arena_runs ran USING (kind, key)
GROUP BY visited.kind, visited.key, visited.visits HAVING count(ran.id) <> visited.visits
ORDER BY 1, 2
"""

# The same by the clock: runs that entered before an earlier one had left.
OVERLAPS = """
SELECT kind, key, entered_at FROM (
  SELECT kind, key, entered_at,
         max(left_at) OVER (PARTITION BY kind, key ORDER BY entered_at, id
                            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS left_before
  FROM arena_runs) AS ran
WHERE entered_at < left_before ORDER BY entered_at
"""

# Commits of a member whose lease had already gone to another epoch.
LOSERS = """
SELECT ran.kind, ran.key, ran.lease, ran.epoch, ran.left_at
FROM arena_runs ran JOIN arena_leases taken ON taken.name = ran.lease AND taken.epoch = ran.epoch + 1
WHERE ran.left_at > taken.at ORDER BY ran.left_at
"""

COUNTS = """
SELECT (SELECT coalesce(sum(want), 0) FROM arena_wants), (SELECT count(*) FROM arena_runs),
       (SELECT count(*) FROM arena_leases WHERE holder IS NOT NULL),
       (SELECT count(*) FROM arena_leases WHERE holder IS NOT NULL AND former IS NOT NULL)
"""

LEFT_QUEUED = "SELECT count(*) FROM compute_work WHERE kind LIKE 'arena.%'"

# "Retry now" for everything that waits: touches only rows that are there, so it can hide no loss.
HURRY = """
UPDATE compute_work SET not_before = compute_now(), retry_floor = NULL
WHERE kind LIKE 'arena.%' AND not_before > compute_now() + interval '1 second'
"""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run of the harness found. Everything in the second half must be empty."""

    enqueues: int
    runs: int
    leases_taken: int
    takeovers: int
    fence_rejections: int
    #: How often it was looked whether a wake-up is lost at that moment.
    looks: int
    lost: list[Any]
    overlapping: list[Any]
    losers: list[Any]
    left: int

    @property
    def ok(self) -> bool:
        """Whether nothing was found, and something was done and looked at."""
        return not (self.lost or self.overlapping or self.losers or self.left) and self.runs > 0 and self.looks > 0

    def lines(self) -> list[str]:
        """The report."""
        found = [
            *(f"lost: {kind} {key} wants {want}, last seen {saw}" for kind, key, want, saw in self.lost[:10]),
            *(f"overlapping: {' '.join(str(part) for part in row)}" for row in self.overlapping[:10]),
            *(f"committed by a loser: {' '.join(str(part) for part in row)}" for row in self.losers[:10]),
        ]
        return [
            *found,
            f"enqueues={self.enqueues} runs={self.runs} leases_taken={self.leases_taken} "
            f"takeovers={self.takeovers} fence_rejections={self.fence_rejections} looks={self.looks}",
            f"lost={len(self.lost)} overlapping={len(self.overlapping)} losers={len(self.losers)} left={self.left}",
        ]


def judge(connection: Any, fence_rejections: int, watch: Watch) -> Verdict:
    """Ask every question; what was lost for a while before counts as well as what is lost in the end."""

    def ask(sql: str) -> list[Any]:
        return list(connection.execute(sql).fetchall())

    enqueues, runs, taken, takeovers = ask(COUNTS)[0]
    return Verdict(
        enqueues=int(enqueues),
        runs=runs,
        leases_taken=taken,
        takeovers=takeovers,
        fence_rejections=fence_rejections,
        looks=watch.looks,
        lost=sorted({*watch.found, *ask(LOST)}),
        overlapping=[*ask(MISSED_VISITS), *ask(OVERLAPS)],
        losers=ask(LOSERS),
        left=ask(LEFT_QUEUED)[0][0],
    )
