-- Secrets that have sealed values, by an id that tells nothing of them.

CREATE TABLE compute_seal_keys (
  id             text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[0-9a-f]{8}$'),
  first_used_at  timestamptz NOT NULL DEFAULT compute_now()
);
