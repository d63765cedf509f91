DROP TABLE compute_migrations;
DROP FUNCTION compute_append_only();
DROP FUNCTION compute_now();
DROP TABLE compute_clock;
DROP TABLE compute_store;
