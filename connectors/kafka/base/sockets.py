"""Closes what kafka-python leaves open where a connection fails.

Its error holds on to the socket, and a circle of references holds on to the error: until Python happens to look for
such circles, each attempt to reach a broker that is down takes one of the few files a process may have open. And where
a client is closed while it connects, it cancels the attempt without closing the socket.
"""

from __future__ import annotations

import socket
import traceback
from collections.abc import Coroutine, Mapping
from typing import Any

__all__ = ["close_awaited", "close_sockets"]


def close_sockets(error: BaseException) -> None:
    """Close the sockets in the functions an error came through.

    Parameters
    ----------
    error
        Of an attempt to connect that is over.

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
        _close(local)
        # The attempts at the other addresses of a name, each with an error of its own.
        for other in local.get("exceptions", ()):
            if other is not error and other.__traceback__ is not None:
                close_sockets(other)


def close_awaited(attempt: Coroutine[Any, Any, Any]) -> None:
    """Close the sockets in the coroutines that one waits for.

    Parameters
    ----------
    attempt
        To connect; it goes on waiting, or fails.

    """
    waiting: Any = attempt
    while (frame := getattr(waiting, "cr_frame", None)) is not None:
        _close(frame.f_locals)
        waiting = waiting.cr_await


def _close(local: Mapping[str, Any]) -> None:
    for opened in (local.get("sock"), getattr(local.get("transport"), "_sock", None)):
        if isinstance(opened, socket.socket):
            opened.close()
