"""The socket of the HTTP server: accepts connections, no more of them than there may be."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from streamkernel.daemon.serving.limits import HttpLimits
from streamkernel.daemon.serving.log import held_back, limited_logger
from streamkernel.daemon.serving.protocol import BoundedProtocol, refusal

__all__ = ["Listener"]

_log = limited_logger(__name__)

# In a row, before those that are open have their turn.
_ACCEPTED_AT_ONCE = 64
_PAUSE_SECONDS = 0.1
_LOOK_SECONDS = 0.002
_RECOUNT_SECONDS = 0.05


class Listener:
    """Accepts connections and hands each to a protocol; one too many is refused before anything is read from it.

    Connections are counted by their descriptors, whatever state TLS or HTTP is in.
    """

    def __init__(
        self,
        listening: socket.socket,
        protocol: Callable[[Callable[[], None]], BoundedProtocol],
        context: ssl.SSLContext | None,
        limits: HttpLimits,
        what: str,
    ) -> None:
        self._what = what  # to call it in the log
        listening.setblocking(False)
        self._listening = listening
        self._protocol = protocol
        self._context = context
        self._limits = limits
        self._loop = asyncio.get_running_loop()
        self._open: set[socket.socket] = set()
        self._look_at = 0.0
        most = limits.connections
        self._refusal = refusal(HTTPStatus.SERVICE_UNAVAILABLE, f"more than {most} connections")
        # By connection that has sent nothing yet, what ends it: it is no more than a socket so far, so that it costs
        # the daemon little.
        self._silent: dict[socket.socket, asyncio.TimerHandle] = {}
        self._starting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin to accept."""
        self._pause = None
        self._loop.add_reader(self._listening, self._accept)

    async def stop(self) -> None:
        """Accept no more, and drop connections that are not made yet."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()
        for accepted in list(self._silent):
            self._leave(accepted)
            accepted.close()
        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, return_exceptions=True)

    async def drained(self) -> None:
        """Wait until all connections are closed."""
        while self._still_open():
            await asyncio.sleep(_LOOK_SECONDS)

    def _still_open(self) -> int:
        self._open = {one for one in self._open if one.fileno() >= 0}
        return len(self._open)

    def _full(self) -> bool:
        """Return whether there are as many connections as there may be.

        Each says when it has ended, so that a flood does not have all of them looked at for each that comes; but those
        that ended before they were made, of which nobody is told, are looked for now and then.
        """
        if len(self._open) < self._limits.connections:
            return False
        now = self._loop.time()
        if now < self._look_at:
            return True
        self._look_at = now + _RECOUNT_SECONDS
        return self._still_open() >= self._limits.connections

    def _forget(self, accepted: socket.socket) -> None:
        if accepted.fileno() < 0:
            self._open.discard(accepted)

    def _accept(self) -> None:
        for _ in range(_ACCEPTED_AT_ONCE):
            try:
                accepted, client = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:  # no descriptors, no memory
                _log.warning("%s cannot accept connections for now: %s", self._what, error.strerror or error)
                self._loop.remove_reader(self._listening)
                self._pause = self._loop.call_later(_PAUSE_SECONDS, self.start)
                return
            if self._full():
                self._refuse(accepted, client)
                continue
            accepted.setblocking(False)
            self._open.add(accepted)
            self._silent[accepted] = self._loop.call_later(self._limits.receive_seconds, self._drop, accepted)
            self._loop.add_reader(accepted.fileno(), self._begin, accepted)

    def _begin(self, accepted: socket.socket) -> None:
        """Hand a connection on, now that its client has sent something; one that has closed it is let go."""
        self._leave(accepted)
        try:
            said = accepted.recv(1, socket.MSG_PEEK)
        except OSError:
            said = b""
        if not said:
            accepted.close()
            self._open.discard(accepted)
            return
        task = self._loop.create_task(self._connect(accepted))
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    def _drop(self, accepted: socket.socket) -> None:
        """End a connection whose client has sent nothing in time."""
        self._leave(accepted)
        accepted.close()
        self._open.discard(accepted)

    def _leave(self, accepted: socket.socket) -> None:
        self._silent.pop(accepted).cancel()
        self._loop.remove_reader(accepted.fileno())

    def _refuse(self, accepted: socket.socket, client: Any) -> None:
        text = "more than %d connections to %s: further ones are refused, last %s"
        if not held_back(_log, text):
            _log.warning(text, self._limits.connections, self._what, client)
        with accepted:
            accepted.setblocking(False)
            if self._context is None:
                try:
                    accepted.send(self._refusal)
                except OSError:
                    return

    async def _connect(self, accepted: socket.socket) -> None:
        seconds = None if self._context is None else self._limits.receive_seconds

        def ended() -> None:
            self._loop.call_soon(self._forget, accepted)  # asyncio closes it right after it says so

        try:
            await self._loop.connect_accepted_socket(
                lambda: self._protocol(ended),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=None if self._context is None else self._limits.linger_seconds,
            )
        except OSError as error:  # also ssl.SSLError: a client that speaks no TLS, or is gone
            _log.debug("a connection was not made: %s", error)
