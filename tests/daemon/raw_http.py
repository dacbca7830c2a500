"""A client that sends bytes as they are, and a server to send them to."""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from prometheus_client import CollectorRegistry, Gauge
from starlette.routing import Route

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.schema import MetricsConfig
from streamkernel.daemon.http.server import Server
from tests.processes import wait_until

#: What comes within these seconds came at once; it is waited for as long as it takes, and no longer than this.
PATIENCE = 30.0


@contextmanager
def served(
    health: Health | None = None, size: int = 0, max_body_bytes: int = 0, routes: Sequence[Route] = (), **settings: Any
) -> Iterator[int]:
    """Serve; gives the port. The metrics have about so many bytes."""
    registry = CollectorRegistry()
    gauge = Gauge("streamkernel_test", "A test.", ["label"], registry=registry)
    gauge.labels("x" * size).set(1)
    server = Server(
        MetricsConfig(port=0, **settings), registry, health or Health(), routes, max_body_bytes=max_body_bytes
    )
    try:
        yield server.port
    finally:
        server.close()


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def read(connection: socket.socket) -> bytes:
    """Read until the server closes the connection, in order or not."""
    data = bytearray()
    try:
        while part := connection.recv(1 << 20):
            data += part
    except (ConnectionResetError, ssl.SSLEOFError):
        pass
    return bytes(data)


def exchange(port: int, request: bytes) -> bytes:
    """Send a request and read until the server closes the connection."""
    with connect(port) as connection:
        with suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(request)
        return read(connection)


def get(path: str = "/metrics", *headers: str, host: str = "localhost", version: str = "1.1") -> bytes:
    """A request after which the connection is closed."""
    lines = [f"GET {path} HTTP/{version}", f"Host: {host}", "Connection: close", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def status(answer: bytes) -> int:
    """The status of the first response; 0 where there is none."""
    return int(answer.split()[1]) if answer else 0


def statuses(answer: bytes) -> list[int]:
    """The status of each response."""
    return [int(number) for number in re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)]


def answers(port: int, path: str = "/healthz") -> bool:
    """Whether who asks properly is answered; on a busy machine a short deadline may pass, so more than once."""
    wait_until(lambda: status(exchange(port, get(path))) == 200, f"an answer of {path}")
    return True
