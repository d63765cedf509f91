-- The clock, the store's identity and the migration ledger: what everything else stands on.

CREATE TABLE compute_store (
  singleton         boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  -- A new value after a restore tells the restored database from its past.
  incarnation  uuid NOT NULL DEFAULT gen_random_uuid(),
  created_at   timestamptz NOT NULL DEFAULT statement_timestamp()
);
INSERT INTO compute_store DEFAULT VALUES;

CREATE TABLE compute_clock (
  singleton          boolean PRIMARY KEY DEFAULT true CHECK (singleton),
  -- Zero in production; tests and the simulator move it.
  clock_offset  interval NOT NULL DEFAULT interval '0',
  -- The latest time at which a process started; a clock far behind it refuses to start.
  anchored_at   timestamptz
);
INSERT INTO compute_clock DEFAULT VALUES;

-- STABLE, so that an index may be scanned up to it; bound by name to no search path.
CREATE FUNCTION compute_now() RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE
RETURN statement_timestamp() + COALESCE((SELECT c.clock_offset FROM compute_clock c), interval '0');

CREATE FUNCTION compute_append_only() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% on % refused: the table is append-only', TG_OP, TG_TABLE_NAME
    USING ERRCODE = 'restrict_violation', HINT = 'Add a new row that says what changed.';
END
$$;

CREATE TABLE compute_migrations (
  seq          bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  owner        text COLLATE "C" NOT NULL,
  -- <owner>/<nnnn>_<slug>
  name         text COLLATE "C" NOT NULL,
  action       text NOT NULL CHECK (action IN
                 ('started', 'applied', 'faked', 'adopted', 'reverted', 'removed', 'rehashed')),
  -- SHA-256 (hex) of the normalised source and its SQL files.
  checksum     text NOT NULL CHECK (checksum ~ '^[0-9a-f]{64}$'),
  reason       text,
  applied_at   timestamptz NOT NULL DEFAULT compute_now(),
  applied_by   text NOT NULL DEFAULT session_user,
  version      text NOT NULL,
  duration_ms  integer NOT NULL DEFAULT 0 CHECK (duration_ms >= 0),
  CHECK (name LIKE owner || '/%')
);
CREATE INDEX compute_migrations_name ON compute_migrations (name, seq);

CREATE TRIGGER compute_migrations_rows BEFORE UPDATE OR DELETE ON compute_migrations
  FOR EACH ROW EXECUTE FUNCTION compute_append_only();
CREATE TRIGGER compute_migrations_truncate BEFORE TRUNCATE ON compute_migrations
  FOR EACH STATEMENT EXECUTE FUNCTION compute_append_only();
