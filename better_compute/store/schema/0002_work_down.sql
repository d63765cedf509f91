DROP TABLE compute_pauses;
DROP TABLE compute_processes;
DROP TABLE compute_leases;
DROP TABLE compute_workers;
DROP TABLE compute_work;
