"""What a monitoring system asks of a process: ``/metrics``, ``/livez`` and ``/readyz``."""
