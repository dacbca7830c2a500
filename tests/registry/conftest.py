"""A registry for each test."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from tests.registry.server import RegistryServer


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server


@pytest.fixture
def serving() -> Iterator[Callable[[bytes], str]]:
    """Serve fixed bytes to one connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = []

        def serve(data: bytes) -> str:
            def answer() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(65536)
                    connection.sendall(data)

            threads.append(threading.Thread(target=answer, daemon=True))
            threads[-1].start()
            return f"http://127.0.0.1:{listener.getsockname()[1]}"

        yield serve
        for thread in threads:
            thread.join(5)
