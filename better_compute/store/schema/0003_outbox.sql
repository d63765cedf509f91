-- The outbox: the event log that sinks, webhooks and streams read. Append-only; retention drops partitions.

CREATE SEQUENCE compute_outbox_id AS bigint;

CREATE TABLE compute_outbox (
  id             bigint NOT NULL DEFAULT nextval('compute_outbox_id'),
  -- Ids commit out of order; a reader's horizon compares this with pg_snapshot_xmin.
  xid            xid8 NOT NULL DEFAULT pg_current_xact_id(),
  created_at     timestamptz NOT NULL DEFAULT compute_now(),
  type           text NOT NULL,
  tenant_id      text NOT NULL,
  subject        text NOT NULL,
  data           jsonb NOT NULL,
  -- W3C traceparent of the call that published it.
  trace_context  text,
  PRIMARY KEY (id, created_at)
) PARTITION BY RANGE (created_at);
ALTER SEQUENCE compute_outbox_id OWNED BY compute_outbox.id;
CREATE TABLE compute_outbox_default PARTITION OF compute_outbox DEFAULT;
CREATE INDEX compute_outbox_tenant ON compute_outbox (tenant_id, id);

CREATE TRIGGER compute_outbox_rows BEFORE UPDATE OR DELETE ON compute_outbox
  FOR EACH ROW EXECUTE FUNCTION compute_append_only();
CREATE TRIGGER compute_outbox_truncate BEFORE TRUNCATE ON compute_outbox
  FOR EACH STATEMENT EXECUTE FUNCTION compute_append_only();
CREATE TRIGGER compute_outbox_truncate BEFORE TRUNCATE ON compute_outbox_default
  FOR EACH STATEMENT EXECUTE FUNCTION compute_append_only();
