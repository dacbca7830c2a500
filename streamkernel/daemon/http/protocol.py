"""HTTP/1.1 on a connection: uvicorn's protocol, with limits that uvicorn has no settings for."""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from typing import Any

from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

__all__ = ["BoundedProtocol", "UvicornServer"]

# A connection that begins no request between two looks ends, unless its answer is on the way.
_LOOK_SECONDS = 5.0
_LOOKS_TO_ANSWER = 6


class BoundedProtocol(HttpToolsProtocol):
    """Ends a connection that sends no whole request, takes no answer, or sends too much.

    uvicorn alone keeps a silent connection open. `Config.h11_max_incomplete_event_size` is the most bytes of a request,
    which uvicorn heeds for h11 only.

    Parameters
    ----------
    config, server_state, app_state, _loop
        As uvicorn gives them.

    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._most_bytes = config.h11_max_incomplete_event_size or 0
        self._timer: asyncio.TimerHandle | None = None
        self._seen: object = None  # the request at the last look
        self._looks = 0
        self._bytes = 0  # of the request that is being received

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Read from a connection, no more than a request may have."""
        before = self.cycle
        super().data_received(data)
        self._bytes = 0 if self.cycle is not before else self._bytes + len(data)
        if self._bytes > self._most_bytes and not self.transport.is_closing():
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too large")

    def _look(self) -> None:
        """End the connection where its request or its answer takes too long."""
        self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)
        cycle = self.cycle
        self._looks = self._looks + 1 if cycle is self._seen else 0
        self._seen = cycle
        answering = cycle is not None and not cycle.more_body and not cycle.response_complete
        patience = _LOOKS_TO_ANSWER if answering else 0 if cycle is None else 1
        if self._looks < patience:
            return
        if answering or self.transport.is_closing():
            self.transport.abort()
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "no whole request came in time")

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        cycle = self.cycle
        answered = cycle is not None and cycle.response_started
        if not self.pipeline and (not answered or (cycle.response_complete and not cycle.more_body)):
            self.transport.write(f"{head}Content-Length: {len(text) + 1}\r\nConnection: close\r\n\r\n{text}\n".encode())
        self.transport.close()


class UvicornServer(Server):
    """uvicorn's server, which ends the connections that are left when it stops."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop; see `uvicorn.Server.shutdown`."""
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            connection.transport.abort()
