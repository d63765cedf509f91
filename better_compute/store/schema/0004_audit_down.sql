DROP TABLE compute_audit_events;
