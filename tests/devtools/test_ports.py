"""Ports: who has one, and how a start keeps one for its server."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator

import pytest

from better_compute.devtools import ports
from better_compute.devtools.ports import PortRefused


@pytest.fixture
def server() -> Iterator[int]:
    """The port that this process serves on, as most servers do."""
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("", 0))
        listening.listen()
        yield listening.getsockname()[1]


def test_a_port_that_is_served_on_is_refused_with_the_process_that_has_it(server: int) -> None:
    for refused in (ports.reserve, ports.refuse_taken):
        with pytest.raises(PortRefused) as raised:
            refused(server)
        said = str(raised.value)
        assert said.startswith(f"port {server} is in use by process {os.getpid()} (")
        assert said.endswith(")")


def test_a_port_that_another_start_keeps_is_refused_before_its_server_listens() -> None:
    port, kept = ports.reserve(0)
    with kept:
        with pytest.raises(PortRefused, match=rf"port {port} is in use by another process$"):
            ports.reserve(port)
        assert ports.free_port(port) != port
    again, kept = ports.reserve(port)
    kept.close()
    assert again == port


def test_a_server_that_shares_its_port_listens_where_its_start_keeps_it() -> None:
    port, kept = ports.reserve(0)
    with kept, socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((ports.LOOPBACK, port))
        server.listen()
        for _ in range(20):
            with socket.create_connection((ports.LOOPBACK, port), timeout=10), server.accept()[0]:
                pass
        # Another one that would share it too is refused all the same.
        with pytest.raises(PortRefused, match=f"in use by process {os.getpid()} "):
            ports.refuse_taken(port)


@pytest.mark.needs("root")
def test_a_port_that_is_forbidden_is_told_from_one_that_is_taken() -> None:
    before = os.geteuid()
    os.seteuid(65534)
    try:
        said = r"^port 80 is forbidden to user id 65534, as low ports are to all but root$"
        with pytest.raises(PortRefused, match=said):
            ports.reserve(80)
    finally:
        os.seteuid(before)


def test_an_address_that_is_not_of_this_machine_is_named() -> None:
    with pytest.raises(PortRefused, match=r"nothing can be served on 192\.0\.2\.1 port 8000"):
        ports.refuse_taken(8000, "192.0.2.1")
