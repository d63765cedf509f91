-- The request id of the call that published an event; null for a reconciler's.
ALTER TABLE compute_outbox ADD COLUMN request_id text CHECK (char_length(request_id) BETWEEN 1 AND 128);
