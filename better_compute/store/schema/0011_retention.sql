-- Retention of the tables that are only ever appended to: partitions are made ahead and dropped whole.
--
-- The role that serves may neither create nor drop a table. It asks compute_retention_step(), which runs as the owner
-- and does one thing a call: it makes the next partition, or drops one that is older than the floor below, and of which
-- no reader still needs a row.

CREATE TABLE compute_retention (
  relation     text COLLATE "C" PRIMARY KEY,
  time_column  name NOT NULL,
  -- How much time a partition covers; each begins with its day or month in UTC.
  step         text NOT NULL CHECK (step IN ('day', 'month')),
  -- Partitions made ahead of the one that is written now.
  ahead        smallint NOT NULL CHECK (ahead BETWEEN 1 AND 60),
  -- Nothing younger is dropped, whatever a process is set to. Only the owner can change it.
  floor        interval NOT NULL CHECK (floor >= interval '1 day')
);
INSERT INTO compute_retention VALUES
  ('compute_outbox', 'created_at', 'day', 7, '1 day'),
  ('compute_audit_events', 'at', 'month', 2, '90 days');

-- A reader of such a table and how far it is: it has handled every row of a transaction below this one. The owner adds
-- a reader, in a migration; the role that serves moves it.
CREATE TABLE compute_retention_holds (
  name      text COLLATE "C" PRIMARY KEY,
  relation  text COLLATE "C" NOT NULL REFERENCES compute_retention,
  position  xid8 NOT NULL DEFAULT '0'
);

-- The partitions of a table with the times they cover; the default one covers none.
CREATE FUNCTION compute_partitions(parent text)
RETURNS TABLE (name text, from_at timestamptz, to_at timestamptz, is_default boolean)
LANGUAGE sql STABLE AS $$
  SELECT c.relname::text, substring(bound FROM 'FROM \(''([^'']+)''\)')::timestamptz,
         substring(bound FROM 'TO \(''([^'']+)''\)')::timestamptz, bound = 'DEFAULT'
  FROM pg_inherits AS i
  JOIN pg_class AS c ON c.oid = i.inhrelid
  CROSS JOIN LATERAL pg_get_expr(c.relpartbound, c.oid) AS bound
  WHERE i.inhparent = to_regclass(parent) AND NOT i.inhdetachpending
$$;

-- A table shaped like the parent, guarded like its partitions, not yet one of them.
CREATE FUNCTION compute_partition_made(parent text, made text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  other record;
BEGIN
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', made, parent);
  EXECUTE format('CREATE TRIGGER %I BEFORE TRUNCATE ON %I FOR EACH STATEMENT EXECUTE FUNCTION compute_append_only()',
                 parent || '_truncate', made);
  -- Default privileges are those of an ordinary table; a partition is written through its parent alone.
  FOR other IN
    SELECT DISTINCT CASE WHEN acl.grantee = 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(acl.grantee)) END AS name
    FROM pg_class AS c, aclexplode(c.relacl) AS acl
    WHERE c.oid = to_regclass(quote_ident(made)) AND acl.grantee <> c.relowner
  LOOP
    EXECUTE format('REVOKE ALL ON %I FROM %s', made, other.name);
    EXECUTE format('GRANT SELECT ON %I TO %s', made, other.name);
  END LOOP;
END
$$;

-- Does the next thing that is to be done for a table: ROLLED (the default partition became one of the times of its
-- rows), MADE or DROPPED with the partition's name, BUSY when a lock could not be had at once, or no row. Without
-- `keep` nothing is dropped.
--
-- Locks: ROLLED and DROPPED take ACCESS EXCLUSIVE on the table for the moment of a change in the catalog, ROLLED for a
-- look at the default partition's rows besides; MADE takes SHARE UPDATE EXCLUSIVE, which no writer notices, and ACCESS
-- EXCLUSIVE on the default partition, which is empty. None waits longer than lock_timeout for it, so none holds up
-- writers behind it for longer.
CREATE FUNCTION compute_retention_step(parent text, keep interval DEFAULT NULL)
RETURNS TABLE (did text, partition text)
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  rule compute_retention;
  present timestamptz := compute_now();
  width interval;
  spill text;
  lo timestamptz;
  hi timestamptz;
  made text;
  filled boolean;
  lowest xid8;
  needed boolean;
  each record;
BEGIN
  SELECT r.* INTO rule FROM compute_retention AS r WHERE r.relation = parent;
  IF NOT FOUND THEN
    RAISE EXCEPTION '% has no row in compute_retention', parent USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT pg_try_advisory_xact_lock(hashtextextended('better_compute.retention.' || parent, 0)) THEN
    RETURN QUERY SELECT 'BUSY', NULL::text;
    RETURN;
  END IF;
  width := ('1 ' || rule.step)::interval;
  SELECT p.name INTO spill FROM compute_partitions(parent) AS p WHERE p.is_default;

  -- Rows that came before there was a partition for them: nothing is moved, their partition gets its bounds.
  EXECUTE format('SELECT EXISTS (SELECT FROM %I)', spill) INTO filled;
  IF filled THEN
    EXECUTE format('SELECT date_trunc(%1$L, min(%2$I)), date_trunc(%1$L, greatest(max(%2$I), $1)) + %3$L FROM %4$I',
                   rule.step, rule.time_column, width, spill) INTO lo, hi USING present;
    IF NOT EXISTS (SELECT FROM compute_partitions(parent) AS p WHERE p.from_at < hi AND p.to_at > lo) THEN
      EXECUTE format('LOCK TABLE %I IN ACCESS EXCLUSIVE MODE', parent);
      EXECUTE format('SELECT date_trunc(%1$L, min(%2$I)), date_trunc(%1$L, greatest(max(%2$I), $1)) + %3$L FROM %4$I',
                     rule.step, rule.time_column, width, spill) INTO lo, hi USING present;
      made := parent || to_char(lo, CASE rule.step WHEN 'day' THEN '"_p"YYYYMMDD' ELSE '"_p"YYYYMM' END);
      EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, spill);
      EXECUTE format('ALTER TABLE %I RENAME TO %I', spill, made);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, made, lo, hi);
      PERFORM compute_partition_made(parent, spill);
      EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I DEFAULT', parent, spill);
      RETURN QUERY SELECT 'ROLLED', made;
      RETURN;
    END IF;
  END IF;

  FOR number IN 0..rule.ahead LOOP
    lo := date_trunc(rule.step, present) + number * width;
    hi := lo + width;
    CONTINUE WHEN EXISTS (SELECT FROM compute_partitions(parent) AS p WHERE p.from_at < hi AND p.to_at > lo);
    IF filled THEN
      EXECUTE format('SELECT EXISTS (SELECT FROM %1$I WHERE %2$I >= $1 AND %2$I < $2)', spill, rule.time_column)
        INTO needed USING lo, hi;
      CONTINUE WHEN needed;
    END IF;
    made := parent || to_char(lo, CASE rule.step WHEN 'day' THEN '"_p"YYYYMMDD' ELSE '"_p"YYYYMM' END);
    PERFORM compute_partition_made(parent, made);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, made, lo, hi);
    RETURN QUERY SELECT 'MADE', made;
    RETURN;
  END LOOP;

  IF keep IS NOT NULL THEN
    SELECT min(h.position) INTO lowest FROM compute_retention_holds AS h WHERE h.relation = parent;
    FOR each IN
      SELECT p.name FROM compute_partitions(parent) AS p
      WHERE p.to_at <= present - greatest(keep, rule.floor) ORDER BY p.to_at
    LOOP
      IF lowest IS NOT NULL THEN
        EXECUTE format('SELECT EXISTS (SELECT FROM %I WHERE xid >= $1)', each.name) INTO needed USING lowest;
        CONTINUE WHEN needed;
      END IF;
      EXECUTE format('DROP TABLE %I', each.name);
      RETURN QUERY SELECT 'DROPPED', each.name;
      RETURN;
    END LOOP;
  END IF;
EXCEPTION
  WHEN lock_not_available OR deadlock_detected THEN
    RETURN QUERY SELECT 'BUSY', NULL::text;
END
$$;

REVOKE ALL ON FUNCTION compute_retention_step(text, interval), compute_partition_made(text, text) FROM PUBLIC;

-- The function of the owner finds nothing but what stands in this schema, whatever its caller's search_path holds.
DO $$
DECLARE
  routine text;
BEGIN
  FOREACH routine IN ARRAY ARRAY['compute_retention_step(text, interval)', 'compute_partitions(text)'] LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', routine, current_schema());
    EXECUTE format('ALTER FUNCTION %s SET timezone = ''UTC''', routine);
    EXECUTE format('ALTER FUNCTION %s SET datestyle = ''ISO''', routine);
  END LOOP;
  ALTER FUNCTION compute_retention_step(text, interval) SET lock_timeout = '500ms';
END
$$;
