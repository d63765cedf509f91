ALTER TABLE compute_outbox DROP COLUMN request_id;
