"""The listening socket of the HTTP server: it accepts no more connections than there may be."""

from __future__ import annotations

import socket
from typing import Any

from streamkernel.daemon.http.rate_limit import limited_logger

__all__ = ["BoundedSocket", "bind"]

_refusals = limited_logger(f"{__name__}.refusals")

# Refused in a row, before the open connections have their turn.
_REFUSED_AT_ONCE = 64


class BoundedSocket(socket.socket):
    """A listening socket that refuses connections beyond a limit before anything is read from them.

    It counts connections from the accept, in whatever state TLS or HTTP is: each takes a file from the daemon.
    """

    def limit(self, most: int, what: str, plain: bool) -> None:
        """Accept at most `most` connections to an endpoint; a plain one tells the refused clients why."""
        self._most, self._what = most, what
        self._open: list[socket.socket] = []
        text = f"more than {most} connections\n"
        head = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n"
        self._refusal = f"{head}Content-Length: {len(text)}\r\n\r\n{text}".encode() if plain else b""

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection, after refusing those that are too many; see `socket.socket.accept`."""
        for _ in range(_REFUSED_AT_ONCE):
            accepted, client = super().accept()
            if len(self._open) >= self._most:
                self._open = [one for one in self._open if one.fileno() >= 0]
            if len(self._open) < self._most:
                self._open.append(accepted)
                return accepted, client
            text = "more than %d connections to %s: further ones are refused, last %s"
            _refusals.warning(text, self._most, self._what, client)
            with accepted:
                accepted.setblocking(False)
                try:
                    accepted.send(self._refusal)
                except OSError:
                    continue
        raise BlockingIOError


def bind(host: str, port: int) -> BoundedSocket:
    """Open a listening socket.

    Raises
    ------
    OSError
        Where the address is none or in use.

    """
    # The protocol is named: without it asyncio does not set TCP_NODELAY, and each answer would take 40 ms.
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = min(found, key=lambda one: one[0] != socket.AF_INET)
    listening = BoundedSocket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening
