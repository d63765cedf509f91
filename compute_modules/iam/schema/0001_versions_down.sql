DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['tenants', 'principals', 'roles', 'grants'] LOOP
    EXECUTE format('DROP TRIGGER compute_iam_changing ON compute_iam_%s', name);
    EXECUTE format('DROP TRIGGER compute_iam_stamp ON compute_iam_%s', name);
  END LOOP;
END
$$;
DROP TRIGGER compute_iam_place ON compute_iam_tenants;
DROP FUNCTION compute_iam_place();
DROP FUNCTION compute_iam_stamp();
DROP FUNCTION compute_iam_changing();
DROP FUNCTION compute_iam_raise();
