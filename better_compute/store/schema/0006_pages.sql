-- What the operator's pages need so that none of them sorts or scans a big table.

-- The newest audit records of all tenants; appended at the right edge, so an insert touches a hot page.
CREATE INDEX compute_audit_events_at ON compute_audit_events (at, id);
-- The newest refusals and failures, which are few among many allowed acts.
CREATE INDEX compute_audit_events_refused ON compute_audit_events (outcome, at, id) WHERE outcome <> 'allowed';

-- The newest errors. An enqueue changes neither column, so a bump stays a HOT update, and a key that
-- never failed has no entry.
CREATE INDEX compute_work_failing ON compute_work (last_error_at) WHERE last_error_at IS NOT NULL;
