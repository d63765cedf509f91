DROP TABLE compute_seal_keys;
