-- Answers kept for Idempotency-Key, so that a call repeated by its caller has its effect once.

CREATE TABLE compute_idempotency (
  principal     text COLLATE "C" NOT NULL,
  -- Empty for the installation itself.
  tenant_id     text COLLATE "C" NOT NULL,
  method        text COLLATE "C" NOT NULL,
  key           text COLLATE "C" NOT NULL CHECK (char_length(key) BETWEEN 1 AND 255),
  -- SHA-256 of the decoded input; another input under the same key is refused.
  input_hash    bytea NOT NULL CHECK (octet_length(input_hash) = 32),
  -- JSON without the fields that are declared secret.
  answer        bytea NOT NULL,
  request_id    text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT compute_now(),
  expires_at    timestamptz NOT NULL,
  PRIMARY KEY (principal, tenant_id, method, key)
);
CREATE INDEX compute_idempotency_expires ON compute_idempotency (expires_at);
