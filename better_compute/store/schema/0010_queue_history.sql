-- How deep each reconciler's queue was, once a minute, for the picture on the operator's pages. One row holds all
-- kinds, so a minute in which nothing was queued can be told from one in which nobody looked.

CREATE TABLE compute_queue_history (
  at            timestamptz PRIMARY KEY,
  -- Parallel arrays, by kind in code-point order; counts stop at store.history.CAP + 1.
  kinds         text[] NOT NULL,
  due           integer[] NOT NULL,
  future        integer[] NOT NULL,
  failing       integer[] NOT NULL,
  -- How long the oldest due key had been due; 0 where none was.
  oldest_due_s  integer[] NOT NULL,
  CHECK (cardinality(due) = cardinality(kinds) AND cardinality(future) = cardinality(kinds)
         AND cardinality(failing) = cardinality(kinds) AND cardinality(oldest_due_s) = cardinality(kinds))
);
