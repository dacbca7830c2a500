"""Closes the sockets that kafka-python leaves open where a connection fails or is cancelled.

Its error holds on to the socket, and a circle of references holds on to the error: until Python happens to look for
such circles, each attempt to reach a broker that is down takes one of the few files a process may have open. And where
a client is closed while it connects, it cancels the attempt without closing the socket.
"""

from __future__ import annotations

import socket
import traceback
from typing import Any

from kafka.net.selector import NetworkSelector

__all__ = ["ClosingSelector", "close_sockets"]


def close_sockets(error: BaseException) -> None:
    """Close the sockets in the functions that the error of an attempt to connect came through.

    Examples
    --------
    >>> def attempt():
    ...     sock = socket.socket()
    ...     raise OSError("connection refused")
    >>> try:
    ...     attempt()
    ... except OSError as error:
    ...     close_sockets(error)
    ...     found = error.__traceback__.tb_next.tb_frame.f_locals["sock"]
    >>> found.fileno()
    -1

    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        local = frame.f_locals
        for opened in (local.get("sock"), getattr(local.get("transport"), "_sock", None)):
            if isinstance(opened, socket.socket):
                opened.close()
        # The attempts at the other addresses of a name, each with an error of its own.
        for other in local.get("exceptions", ()):
            if other is not error and other.__traceback__ is not None:
                close_sockets(other)


class ClosingSelector(NetworkSelector):  # type: ignore[misc]
    """The event loop of a client, which closes the sockets that are still waited for when it is closed."""

    async def wait_read(self, fileobj: Any, timeout_at: float | None = None) -> None:
        await self._wait(super().wait_read(fileobj, timeout_at), fileobj)

    async def wait_write(self, fileobj: Any, timeout_at: float | None = None) -> None:
        await self._wait(super().wait_write(fileobj, timeout_at), fileobj)

    async def _wait(self, event: Any, fileobj: Any) -> None:
        try:
            await event
        except GeneratorExit:
            if self._closed:
                fileobj.close()
            raise
