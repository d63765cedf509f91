-- Tokens that are there: whoever made one for a service account bounds it from now on, and so does whoever made the
-- token that it was made with. Those of trusted code have no maker.
WITH RECURSIVE made AS (
  SELECT id, principal_id,
         CASE WHEN created_by ~ '^(user|service|external)/' AND created_by <> principal_id
              THEN ARRAY[created_by::text] ELSE ARRAY[]::text[] END AS makers
  FROM compute_iam_tokens WHERE created_by !~ '^iam-token/'
  UNION ALL
  SELECT token.id, token.principal_id,
         CASE WHEN made.principal_id <> token.principal_id AND made.principal_id <> ALL (made.makers)
              THEN made.makers || made.principal_id::text ELSE made.makers END
  FROM made JOIN compute_iam_tokens AS token ON token.created_by = 'iam-token/' || made.id
)
UPDATE compute_iam_tokens AS token SET makers = to_jsonb(made.makers)
FROM made WHERE made.id = token.id AND cardinality(made.makers) > 0;
