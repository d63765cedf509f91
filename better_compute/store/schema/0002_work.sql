-- The coalescing work table, the leases that say who may run a key, and the members that hold leases.

CREATE TABLE compute_work (
  -- Incarnation: new for every INSERT, so that a late finish cannot delete a later wake-up.
  id             bigint GENERATED ALWAYS AS IDENTITY,
  kind           text COLLATE "C" NOT NULL,
  key            text COLLATE "C" NOT NULL CHECK (char_length(key) BETWEEN 1 AND 512),
  -- 0..255, or -1 for a reconciler that is not sharded.
  shard          smallint NOT NULL CHECK (shard BETWEEN -1 AND 255),
  generation     bigint NOT NULL DEFAULT 1,
  not_before     timestamptz NOT NULL,
  -- An enqueue may not pull not_before below this: backoff cannot be defeated by a busy writer.
  retry_floor    timestamptz,
  attempts       integer NOT NULL DEFAULT 0,
  -- Set on periodic keys, which come back instead of being deleted.
  every_ms       bigint CHECK (every_ms >= 1000),
  enqueued_at    timestamptz NOT NULL,
  last_error     text CHECK (octet_length(last_error) <= 4096),
  last_error_at  timestamptz,
  PRIMARY KEY (kind, key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
        autovacuum_vacuum_cost_delay = 0, autovacuum_vacuum_cost_limit = 10000);
-- No column that an enqueue of a due key changes stands in an index, so a bump is a HOT update.
CREATE INDEX compute_work_due ON compute_work (kind, shard, not_before);

CREATE TABLE compute_workers (
  -- <uuid> for controllers, scheduler/<uuid> for the scheduler; fresh at every process start.
  id           text COLLATE "C" PRIMARY KEY,
  role         text NOT NULL CHECK (role IN ('controllers', 'scheduler')),
  host         text NOT NULL,
  pid          integer NOT NULL,
  -- Of the connection that renews: when it is gone, so is the process.
  backend_pid  integer,
  started_at   timestamptz NOT NULL,
  expires_at   timestamptz NOT NULL,
  draining     boolean NOT NULL DEFAULT false,
  -- PostgreSQL connections the process may hold.
  connections  integer NOT NULL DEFAULT 0,
  -- The reconcilers it runs: leases go only to members that can use them, also while a deployment rolls.
  kinds        text[] NOT NULL DEFAULT '{}',
  -- The keys a batch is running: whoever takes over a dead member treats exactly these as suspects.
  inflight     jsonb NOT NULL DEFAULT '[]'
) WITH (fillfactor = 50);

CREATE TABLE compute_leases (
  -- shard:<n>, scheduler/shard:<n> or singleton:<reconciler>
  name         text COLLATE "C" PRIMARY KEY,
  holder       text COLLATE "C",
  epoch        bigint NOT NULL DEFAULT 0,
  acquired_at  timestamptz,
  -- Makes every change of epoch a key update, which FOR KEY SHARE (the fence) blocks.
  UNIQUE (name, epoch)
) WITH (fillfactor = 50);

-- What an operator has paused during an incident: kind:<reconciler> or member:<id>.
CREATE TABLE compute_pauses (
  scope      text COLLATE "C" PRIMARY KEY CHECK (scope ~ '^(kind|member):.'),
  reason     text NOT NULL DEFAULT '',
  paused_by  text NOT NULL,
  paused_at  timestamptz NOT NULL
);

-- Which set of modules each process hosts.
CREATE TABLE compute_processes (
  id           uuid PRIMARY KEY,
  role         text NOT NULL,
  host         text NOT NULL,
  pid          integer NOT NULL,
  fingerprint  text NOT NULL,
  modules      jsonb NOT NULL,
  connections  integer NOT NULL DEFAULT 0,
  started_at   timestamptz NOT NULL,
  seen_at      timestamptz NOT NULL
) WITH (fillfactor = 50);
