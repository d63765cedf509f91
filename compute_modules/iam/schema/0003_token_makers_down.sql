-- The column is dropped with what stands in it.
SELECT 1;
