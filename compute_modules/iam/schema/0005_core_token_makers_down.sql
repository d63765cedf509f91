-- What bounds a token goes on bounding it; 0003 takes the column away with what stands in it.
SELECT 1;
