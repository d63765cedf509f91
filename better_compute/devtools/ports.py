"""TCP ports of the loopback interface."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` now."""
    with socket.socket() as probe:
        # As servers do, so that connections of a stopped server in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def free_port(preferred: int = 0) -> int:
    """Return ``preferred`` when it is free, else any free port."""
    if preferred and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
