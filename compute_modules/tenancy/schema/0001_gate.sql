-- The lock that stands for a tenant. It exists whether or not the tenant has a row, so that a call which adds to a
-- tenant nobody ever spoke of still excludes the tenant's deletion.
CREATE FUNCTION compute_tenant_lock(tenant_id text) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  AS $$ SELECT hashtextextended('compute.tenant/' || tenant_id, 0) $$;

-- Takes the tenants' locks, shared and in order of their ids, until the transaction ends (only if told to hold), and
-- then answers with those that are not active. VOLATILE and two statements: each takes a snapshot of its own, so the
-- states are read as they are once the locks are had. In one statement they would be as of before the wait.
CREATE FUNCTION compute_admit_tenants(ids text[], hold boolean)
  RETURNS TABLE (tenant_id text, state text, reason text)
  LANGUAGE plpgsql VOLATILE ROWS 1
  AS $$
#variable_conflict use_column
BEGIN
  IF hold THEN
    PERFORM pg_advisory_xact_lock_shared(compute_tenant_lock(wanted.id))
    FROM (SELECT unnest(ids) AS id ORDER BY 1) AS wanted;
  END IF;
  RETURN QUERY
    SELECT known.tenant_id::text, known.state::text, known.reason
    FROM compute_tenant_states AS known
    WHERE known.tenant_id = ANY (ids) AND known.state <> 'active';
END
$$;

-- A second fence below the table of transitions: a tenant that is being deleted only ever ends.
CREATE FUNCTION compute_tenant_never_returns() RETURNS trigger
  LANGUAGE plpgsql
  AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD.state IN ('deleting', 'torn_down')
     OR TG_OP = 'UPDATE' AND (OLD.state = 'torn_down' OR OLD.state = 'deleting' AND NEW.state NOT IN ('deleting', 'torn_down'))
  THEN
    RAISE EXCEPTION 'tenant % is %, which it never leaves', OLD.tenant_id, OLD.state
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END
$$;

CREATE TRIGGER compute_tenant_never_returns BEFORE UPDATE OR DELETE ON compute_tenant_states
  FOR EACH ROW EXECUTE FUNCTION compute_tenant_never_returns();
