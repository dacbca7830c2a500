"""What holds for every route of the HTTP server: the Host check, basic authentication, headers for browsers."""

from __future__ import annotations

import hmac
from email.utils import formatdate
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamkernel.daemon.config.schema import BasicAuthConfig
from streamkernel.daemon.serving.hosts import HostError, Hosts
from streamkernel.daemon.serving.log import limited_logger

__all__ = ["BasicAuthentication", "HostCheck", "ResponseHeaders"]

_log = limited_logger(__name__)

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class ResponseHeaders:
    """Middleware that adds the date, and what keeps a browser from guessing, framing and storing."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its response with the headers."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Date"] = formatdate(usegmt=True)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._app(scope, receive, add)


class HostCheck:
    """Middleware that refuses requests for hosts that are not ours."""

    def __init__(self, app: ASGIApp, hosts: Hosts) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or pass it on."""
        response = None
        try:
            host = self._hosts.named(scope["headers"], scope["http_version"])
        except HostError as error:
            response = PlainTextResponse(f"{error}\n", HTTPStatus.BAD_REQUEST)
        else:
            if host is not None and not self._hosts.allows(host):
                _log.warning(
                    "requests for the host %s are refused; if it is this one: add it to metrics.allowed_hosts", host
                )
                text = f"the host {host} is not served here; if it is this one: add it to metrics.allowed_hosts\n"
                response = PlainTextResponse(text, HTTPStatus.MISDIRECTED_REQUEST)
        await (response or self._app)(scope, receive, send)


class BasicAuthentication:
    """Middleware that asks for the expected name and password, except on open paths."""

    def __init__(self, app: ASGIApp, expected: BasicAuthConfig, open_paths: frozenset[str]) -> None:
        self._app = app
        self._open_paths = open_paths
        self._expected = expected.header.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request or pass it on."""
        given = Headers(scope=scope).get("authorization", "").encode("latin-1")
        if scope["path"] in self._open_paths or hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        headers = {"WWW-Authenticate": 'Basic realm="streamkernel"'}
        response = PlainTextResponse("a name and a password are needed\n", HTTPStatus.UNAUTHORIZED, headers)
        await response(scope, receive, send)
