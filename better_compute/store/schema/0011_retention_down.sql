-- Partitions stay as they are: their rows are not this migration's.
DROP FUNCTION compute_retention_step(text, interval);
DROP FUNCTION compute_partition_made(text, text);
DROP FUNCTION compute_partitions(text);
DROP TABLE compute_retention_holds;
DROP TABLE compute_retention;
