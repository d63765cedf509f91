DROP TABLE compute_queue_history;
