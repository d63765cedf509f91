DROP TABLE compute_outbox;
