-- Scoped tokens that somebody made with a core token (token/<id>), before makers were kept: 0003 took them for those of
-- trusted code. The core token's user bounds them, and what was made with them in turn. Of a core token that is gone
-- nobody knows whose it was; its id stands as the maker, which holds nothing, so that the scoped token is of no use until
-- somebody who holds what it needs rotates it.
WITH RECURSIVE made AS (
  SELECT token.id, coalesce('user/' || core.user_id, token.created_by) AS maker
  FROM compute_iam_tokens AS token LEFT JOIN compute_tokens AS core ON token.created_by = 'token/' || core.id
  WHERE token.created_by ~ '^token/'
    AND token.principal_id IS DISTINCT FROM 'user/' || core.user_id
    AND token.makers = '[]'
  UNION ALL
  SELECT token.id, made.maker
  FROM made JOIN compute_iam_tokens AS token ON token.created_by = 'iam-token/' || made.id
)
UPDATE compute_iam_tokens AS token SET makers = jsonb_build_array(made.maker) || token.makers
FROM made WHERE made.id = token.id AND made.maker <> token.principal_id AND NOT token.makers ? made.maker;
