"""Finds out what a listener of Kafka speaks, where the client and the broker do not understand each other.

A broker that is spoken to in the wrong way ends the connection without a word, just as one does that stops, or a proxy
that leads to no broker.
"""

from __future__ import annotations

import socket
import ssl
import struct

__all__ = ["speaks_plainly", "speaks_tls"]

_SECONDS = 1.0
# ApiVersions, version 0, correlation 0, a client without a name: every broker answers it, before it asks who is there.
_REQUEST = struct.pack(">ihhih", 10, 18, 0, 0, -1)


def speaks_tls(host: str, port: int) -> bool:
    """Tell whether a listener takes up TLS, with whatever certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), _SECONDS) as plain, context.wrap_socket(plain):
            return True
    except OSError:
        return False


def speaks_plainly(host: str, port: int) -> bool:
    """Tell whether a listener answers a request in the clear."""
    try:
        with socket.create_connection((host, port), _SECONDS) as connection:
            connection.sendall(_REQUEST)
            answer = connection.recv(8, socket.MSG_WAITALL)
    except OSError:
        return False
    # A length, then the correlation.
    return len(answer) == 8 and answer[4:] == b"\0\0\0\0"
