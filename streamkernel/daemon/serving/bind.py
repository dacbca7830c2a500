"""The listening socket of the HTTP server."""

from __future__ import annotations

import socket

__all__ = ["bind"]

_BACKLOG = 1024


def bind(host: str, port: int) -> socket.socket:
    """Open a listening socket.

    Raises
    ------
    OSError
        Where the address is none or in use.

    """
    # The protocol is named: without it asyncio does not set TCP_NODELAY, and each answer would take 40 ms.
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = sorted(found, key=lambda one: one[0] != socket.AF_INET)[0]
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
