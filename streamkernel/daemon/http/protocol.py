"""HTTP/1.1 on a connection: uvicorn's protocol, with limits that uvicorn has no settings for."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["bounded_protocol"]

# A connection that begins no request between two looks ends, unless its answer is on the way.
_LOOK_SECONDS = 5.0
_LOOKS_TO_ANSWER = 6


def bounded_protocol(most_bytes: int) -> type[asyncio.Protocol]:
    """Return a protocol for requests of at most `most_bytes` bytes.

    It ends a connection that sends no whole request, takes no answer, or sends too much. uvicorn alone keeps a silent
    connection open, and bounds a request with h11 only.
    """

    class BoundedProtocol(HttpToolsProtocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._seen: object = None  # the request at the last look
            self._looks = self._bytes = 0  # since this request began
            self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)

        def connection_lost(self, exc: Exception | None) -> None:
            self._timer.cancel()
            super().connection_lost(exc)
            self._unset_keepalive_if_required()

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            self._bytes = 0 if self.cycle is not before else self._bytes + len(data)
            if self._bytes > most_bytes and not self.transport.is_closing():
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the request is too large")

        def _look(self) -> None:
            """End the connection if its request or its answer takes too long."""
            self._timer = self.loop.call_later(_LOOK_SECONDS, self._look)
            cycle: Any = self.cycle
            self._looks = self._looks + 1 if cycle is self._seen else 0
            self._seen = cycle
            answering = cycle is not None and not cycle.more_body and not cycle.response_complete
            if self._looks < (_LOOKS_TO_ANSWER if answering else 0 if cycle is None else 1):
                return
            if answering or self.transport.is_closing():
                self.transport.abort()
            else:
                self._refuse(HTTPStatus.REQUEST_TIMEOUT, "no whole request came in time")

        def _refuse(self, status: HTTPStatus, text: str) -> None:
            cycle: Any = self.cycle
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
            answered = cycle is not None and cycle.response_started
            if not self.pipeline and (not answered or (cycle.response_complete and not cycle.more_body)):
                end = f"Content-Length: {len(text) + 1}\r\nConnection: close\r\n\r\n{text}\n"
                self.transport.write((head + end).encode())
            self.transport.close()

    return BoundedProtocol
