-- Decisions are made from a projection in memory that every process keeps. One row says which version the tables are
-- at; a call reads it in its own transaction, so that what was revoked acts at the next request. The row is raised by
-- triggers, so that no writer can forget it, and its lock makes writers follow each other: a version that can be seen
-- holds every change up to it.

CREATE FUNCTION compute_iam_raise() RETURNS bigint
  LANGUAGE sql VOLATILE
  AS $$
    INSERT INTO compute_iam_version AS v (id, version, generation) VALUES (1, 1, gen_random_uuid())
    ON CONFLICT (id) DO UPDATE SET version = v.version + 1
    RETURNING version
  $$;

CREATE FUNCTION compute_iam_changing() RETURNS trigger
  LANGUAGE plpgsql
  AS $$
BEGIN
  IF TG_OP = 'TRUNCATE' THEN
    -- Nobody could follow rows that vanish: whatever is known of this generation is void.
    UPDATE compute_iam_version SET generation = gen_random_uuid(), version = version + 1;
  ELSE
    PERFORM compute_iam_raise();
  END IF;
  RETURN NULL;
END
$$;

CREATE FUNCTION compute_iam_stamp() RETURNS trigger
  LANGUAGE plpgsql
  AS $$
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'a row of % is never deleted; mark it revoked, disabled or deleted', TG_TABLE_NAME
      USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  SELECT version INTO STRICT NEW.version FROM compute_iam_version;
  RETURN NEW;
END
$$;

-- A tenant's place: computed from its parent, so that no path can lie, and never changed, so that there are no cycles.
CREATE FUNCTION compute_iam_place() RETURNS trigger
  LANGUAGE plpgsql
  AS $$
DECLARE
  above compute_iam_tenants;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF (NEW.id, NEW.parent_id, NEW.kind) IS DISTINCT FROM (OLD.id, OLD.parent_id, OLD.kind) THEN
      RAISE EXCEPTION 'tenant % keeps its place', OLD.id USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    NEW.path := OLD.path;
    NEW.depth := OLD.depth;
    RETURN NEW;
  END IF;
  IF NEW.parent_id IS NULL THEN
    NEW.path := jsonb_build_array(NEW.id::text);
    NEW.depth := 1;
    RETURN NEW;
  END IF;
  SELECT * INTO above FROM compute_iam_tenants WHERE id = NEW.parent_id;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'tenant % has no parent %', NEW.id, NEW.parent_id USING ERRCODE = 'foreign_key_violation';
  END IF;
  IF above.kind = 'project' THEN
    RAISE EXCEPTION 'tenant % cannot stand below the project %', NEW.id, above.id USING ERRCODE = 'check_violation';
  END IF;
  NEW.path := above.path || to_jsonb(NEW.id::text);
  NEW.depth := above.depth + 1;
  RETURN NEW;
END
$$;

CREATE TRIGGER compute_iam_place BEFORE INSERT OR UPDATE ON compute_iam_tenants
  FOR EACH ROW EXECUTE FUNCTION compute_iam_place();

DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tenants', 'principals', 'roles', 'grants'] LOOP
    EXECUTE format('CREATE TRIGGER compute_iam_changing BEFORE INSERT OR UPDATE OR TRUNCATE ON compute_iam_%s
                    FOR EACH STATEMENT EXECUTE FUNCTION compute_iam_changing()', name);
    EXECUTE format('CREATE TRIGGER compute_iam_stamp BEFORE INSERT OR UPDATE OR DELETE ON compute_iam_%s
                    FOR EACH ROW EXECUTE FUNCTION compute_iam_stamp()', name);
  END LOOP;
END
$$;
