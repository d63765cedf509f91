DROP INDEX compute_work_failing;
DROP INDEX compute_audit_events_refused;
DROP INDEX compute_audit_events_at;
