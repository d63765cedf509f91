"""TCP ports to serve on: which are free, who has the others, and how a start keeps one until its server listens."""

from __future__ import annotations

import errno
import os
import shlex
import socket
import sys
from importlib.util import find_spec

LOOPBACK = "127.0.0.1"


class PortRefused(RuntimeError):
    """A port on which nothing can be served, and who has it; the mend is told by whoever was given it."""


def is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of the loopback interface now."""
    try:
        refuse_taken(port)
    except PortRefused:
        return False
    return True


def free_port(preferred: int = 0) -> int:
    """Return ``preferred`` when it is free, else any free port."""
    if preferred and is_free(preferred):
        return preferred
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])


def refuse_taken(port: int, host: str = LOOPBACK) -> None:
    """Find out whether a server could listen there now, and be the only one.

    Raises
    ------
    PortRefused
        When it could not.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        # As servers do, so that connections of a stopped server in TIME_WAIT do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise PortRefused(_why(error, host, port)) from None


def reserve(port: int) -> tuple[int, socket.socket]:
    """Keep ``port`` of the loopback interface, 0 for any free one, from other starts until the socket is closed.

    It does not listen, and lets in a server of this user that shares its port as granian does. Only Linux lets a
    server in beside it; elsewhere the port is looked at, and not kept.

    Raises
    ------
    PortRefused
        When somebody listens on it or keeps it, or this user may not.
    """
    kept = socket.socket()
    try:
        try:
            kept.bind((LOOPBACK, port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            # Taken, or by connections of a stopped server in TIME_WAIT only.
            kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept.bind((LOOPBACK, port))
    except OSError as error:
        kept.close()
        raise PortRefused(_why(error, LOOPBACK, port)) from None
    chosen = int(kept.getsockname()[1])
    if sys.platform == "linux":
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    else:
        kept.close()
    return chosen, kept


def _why(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} is in use by {_holder(port)}"
    if error.errno == errno.EACCES:
        return f"port {port} is forbidden to user id {os.geteuid()}, as low ports are to all but root"
    return f"nothing can be served on {host} port {port}: {error.strerror or error}"


def _holder(port: int) -> str:
    """Who listens on ``port``, as far as this user may know."""
    unknown = "another process"
    if find_spec("psutil") is None:
        return unknown
    import psutil

    try:
        for connection in psutil.net_connections("tcp"):
            if (
                connection.status == psutil.CONN_LISTEN
                and connection.pid
                and connection.laddr
                and connection.laddr.port == port
            ):
                command = shlex.join(psutil.Process(connection.pid).cmdline())
                return f"process {connection.pid} ({command[:80]})"
    except psutil.Error:
        return unknown
    return unknown
