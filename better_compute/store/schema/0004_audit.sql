-- Audit records. Append-only from the first row, so the shape is final: sealing numbers and signs them later.

CREATE TABLE compute_audit_events (
  id             uuid NOT NULL DEFAULT gen_random_uuid(),
  -- Records commit out of order; sealing takes only those below the safe horizon.
  xid            xid8 NOT NULL DEFAULT pg_current_xact_id(),
  at             timestamptz NOT NULL DEFAULT compute_now(),
  tenant_id      text NOT NULL,
  principal      text NOT NULL,
  method         text NOT NULL,
  action         text NOT NULL,
  resource_type  text NOT NULL,
  resource_id    text NOT NULL,
  outcome        text NOT NULL CHECK (outcome IN ('allowed', 'denied', 'failed')),
  code           text,
  request_id     text NOT NULL,
  -- The record as it will be hashed: UTF-8 JSON, keys sorted, no white space.
  canonical      bytea NOT NULL,
  salt           bytea NOT NULL CHECK (octet_length(salt) = 16),
  -- SHA-256(0x00 || salt || canonical)
  leaf_hash      bytea NOT NULL CHECK (octet_length(leaf_hash) = 32),
  PRIMARY KEY (id, at)
) PARTITION BY RANGE (at);
CREATE TABLE compute_audit_events_default PARTITION OF compute_audit_events DEFAULT;
CREATE INDEX compute_audit_events_tenant ON compute_audit_events (tenant_id, at);

CREATE TRIGGER compute_audit_events_rows BEFORE UPDATE OR DELETE ON compute_audit_events
  FOR EACH ROW EXECUTE FUNCTION compute_append_only();
CREATE TRIGGER compute_audit_events_truncate BEFORE TRUNCATE ON compute_audit_events
  FOR EACH STATEMENT EXECUTE FUNCTION compute_append_only();
CREATE TRIGGER compute_audit_events_truncate BEFORE TRUNCATE ON compute_audit_events_default
  FOR EACH STATEMENT EXECUTE FUNCTION compute_append_only();
