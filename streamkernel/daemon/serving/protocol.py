"""HTTP/1.1 on a connection: uvicorn's protocol, with a deadline for every wait and a bound on all that is kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import NoReturn

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from streamkernel.daemon.serving.limits import HttpLimits
from streamkernel.daemon.serving.log import limited_logger

__all__ = ["BoundedProtocol", "refusal"]

_log = limited_logger(__name__)
# Of uvicorn's own messages only failures of the application are for the log; what clients do wrong we say ourselves.
_uvicorn_log = limited_logger(f"{__name__}.application")
_uvicorn_log.setLevel("ERROR")


def _no_cancellation(record: logging.LogRecord) -> bool:
    """Return whether it is a failure: an answer that is cancelled when the server stops is none."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


_uvicorn_log.addFilter(_no_cancellation)

_NOT_HTTP = (HTTPStatus.BAD_REQUEST, "this is not an HTTP/1.0 or HTTP/1.1 request")
# Of what a chunked body is sent in, beyond the body itself.
_FRAMING = 4


class _RequestError(Exception):
    """A request that is not answered; raised through the parser, which stops at it."""


def refusal(status: HTTPStatus, text: str) -> bytes:
    """Return a whole response with one sentence, after which the connection is closed."""
    body = text.encode() + b"\n"
    head = (
        f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


class BoundedProtocol(HttpToolsProtocol):
    """Protocol of one connection, which ends it at the latest when a deadline has passed.

    One deadline holds at any time: for a request to be received as a whole, or for it to be answered and the answer
    to be taken.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        limits: HttpLimits,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[], None],
    ) -> None:
        super().__init__(config, state, {}, loop)
        self._tell_end = ended
        self.logger = _uvicorn_log
        self._limits = limits
        self._deadline: asyncio.TimerHandle | None = None
        self._answer_until = 0.0
        # Of the message that is being received; between two of them all are as after the first line here.
        self._begun = self._headed = False
        self._raw_bytes = self._header_bytes = self._header_fields = self._body_bytes = 0
        self._fault: tuple[HTTPStatus, str] | None = None
        self._ended = False  # nothing that still comes is looked at
        self._postponed: bytes | None = None
        self._half_closed = False

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_deadline(self._limits.receive_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        self._ended = True
        if self._deadline is not None:
            self._deadline.cancel()
        self.pipeline.clear()
        super().connection_lost(exc)
        self._tell_end()
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        if self._ended:
            return
        self._raw_bytes += len(data)
        super().data_received(data)
        if self._ended:
            return
        if not self._headed and self._raw_bytes > self._limits.header_bytes:
            self._refuse(*self._headers_too_large())
        elif self._raw_bytes > self._limits.header_bytes + _FRAMING * self._limits.body_bytes:
            self._refuse(*self._body_too_large())

    def eof_received(self) -> bool:  # type: ignore[override]
        # Who has sent its request may close its side and still read the answer; over TLS asyncio closes both.
        refused = self._ended and self._postponed is None
        self._half_closed = self._answering and not refused and self.scheme == "http"
        return self._half_closed

    # What the parser calls

    def on_message_begin(self) -> None:
        self._begun = True
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count_header(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        # Also trailers after a body come here.
        self._header_fields += 1
        self._count_header(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._take_host_from_target()
        if len(self.pipeline) >= self._limits.pipelined:
            self._fail(HTTPStatus.TOO_MANY_REQUESTS, f"at most {self._limits.pipelined} requests may wait")
        for name, value in self.headers:
            # The parser has seen to it that it is a number.
            if name == b"content-length" and int(value) > self._limits.body_bytes:
                self._fail(*self._body_too_large())
        super().on_headers_complete()
        self._headed = True

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        if self._body_bytes > self._limits.body_bytes:
            self._fail(*self._body_too_large())
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._begun = self._headed = False
        self._raw_bytes = self._header_bytes = self._header_fields = self._body_bytes = 0
        if self._answering:
            self._set_answer_deadline()
        else:
            self._set_deadline(self._limits.receive_seconds)

    # What uvicorn calls

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.transport.is_closing():
            return  # the deadline for the client to take what is left is set
        if self._postponed is not None and not self._answering:
            self._send_refusal(self._postponed)
        elif self._half_closed and not self._answering:
            self.transport.close()
        elif self._answering and not self._incomplete:
            self._set_answer_deadline()
        elif self._incomplete or not self._headed:
            self._set_deadline(self._limits.receive_seconds)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        self._refuse(*(self._fault or _NOT_HTTP))

    # What comes of it

    @property
    def _answering(self) -> bool:
        """Whether a response is still to come or on its way."""
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _incomplete(self) -> bool:
        """Whether the newest request that is being answered is not yet here as a whole."""
        return self._headed and self._answering

    def _set_deadline(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self.loop.call_later(seconds, self._expire)

    def _set_answer_deadline(self) -> None:
        self._answer_until = self.loop.time() + self._limits.answer_seconds
        self._set_deadline(self._limits.answer_seconds)

    def _expire(self) -> None:
        left = self._answer_until - self.loop.time()
        if not self._ended and left > 0 and self.transport.get_write_buffer_size():
            self._set_deadline(left)  # the last answer is still being read
        elif self._begun and not self._ended and not self.transport.is_closing():
            text = f"the request was not received within {self._limits.receive_seconds:g} s"
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, text)
        else:
            self.transport.abort()

    def _count_header(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self._limits.header_bytes or self._header_fields > self._limits.header_fields:
            self._fail(*self._headers_too_large())

    def _headers_too_large(self) -> tuple[HTTPStatus, str]:
        text = f"a request may have {self._limits.header_bytes} bytes in {self._limits.header_fields} header fields"
        return HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, text

    def _body_too_large(self) -> tuple[HTTPStatus, str]:
        return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have {self._limits.body_bytes} bytes"

    def _take_host_from_target(self) -> None:
        """Where the request's target is a whole URL, its host stands for the one of the header (RFC 9112, 3.2.2)."""
        if self.url[:1] in (b"/", b"*"):
            return
        hosts = [at for at, (name, _) in enumerate(self.headers) if name == b"host"]
        target = httptools.parse_url(self.url)
        if target.host is None:
            self._fail(*_NOT_HTTP)
        if len(hosts) == 1:
            host = b"[" + target.host + b"]" if b":" in target.host else target.host
            self.headers[hosts[0]] = (b"host", host)

    def _fail(self, status: HTTPStatus, text: str) -> NoReturn:
        self._fault = (status, text)
        raise _RequestError(text)

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        """Answer a request with a sentence, after those before it, and close the connection."""
        _log.debug("a request from %s was refused: %s", self.client, text)
        self._ended = True
        response = refusal(status, text)
        if not self._answering:
            self._send_refusal(response)
        elif not self._headed:
            self._postponed = response
            self._set_answer_deadline()
        elif self.pipeline or self.cycle.response_started:
            self.transport.abort()
        else:
            # The application waits for the rest of the body: for it the client is gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._send_refusal(response)

    def _send_refusal(self, response: bytes) -> None:
        self._ended = True
        self.transport.write(response)
        if self.transport.can_write_eof():
            # To close while more is coming would reset the connection, and the client might never read why.
            try:
                self.transport.write_eof()
            except OSError:  # the client is gone
                self.transport.abort()
            self.flow.resume_reading()
        else:
            self.transport.close()
        self._set_deadline(self._limits.linger_seconds)
