DROP TABLE compute_idempotency;
