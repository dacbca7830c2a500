"""What holds for every route of the HTTP server: the Host check, basic authentication, headers for browsers."""

from __future__ import annotations

import hmac
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamkernel.daemon.config.endpoints import BasicAuthConfig
from streamkernel.daemon.serving.hosts import HostError, Hosts
from streamkernel.daemon.serving.log import limited_logger

__all__ = ["SecurityMiddleware"]

_log = limited_logger(__name__)

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class SecurityMiddleware:
    """Middleware of every route: checks the Host header, then name and password, and adds headers to the response.

    The headers are the date, and what keeps a browser from guessing, framing and storing.

    Parameters
    ----------
    app
        The application that requests are passed on to.
    hosts
        The hosts that are answered for.
    basic_auth
        The name and the password that are asked for; None: none are.
    open_paths
        Paths that need no name and no password.
    section
        Of the configuration, which a refusal names.

    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Hosts,
        basic_auth: BasicAuthConfig | None,
        open_paths: frozenset[str],
        section: str = "metrics",
    ) -> None:
        self._app = app
        self._key = f"{section}.allowed_hosts"
        self._hosts = hosts
        self._authorization = None if basic_auth is None else basic_auth.header.encode()
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request or pass it on, and its response with the headers."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Date"] = _date(int(time.time()))
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        await (self._foreign(scope) or self._unauthorized(scope) or self._app)(scope, receive, add)

    def _foreign(self, scope: Scope) -> PlainTextResponse | None:
        """Return the refusal of a request for a host that is not ours, None where it is ours."""
        try:
            host = self._hosts.named(scope["headers"], scope["http_version"])
        except HostError as error:
            return PlainTextResponse(f"{error}\n", HTTPStatus.BAD_REQUEST)
        if host is None or self._hosts.allows(host):
            return None
        _log.warning("requests for the host %s are refused; if it is this one: add it to %s", host, self._key)
        text = f"the host {host} is not served here; if it is this one: add it to {self._key}\n"
        return PlainTextResponse(text, HTTPStatus.MISDIRECTED_REQUEST)

    def _unauthorized(self, scope: Scope) -> PlainTextResponse | None:
        """Return the refusal of a request without the name and the password, None where they are there or not asked."""
        if self._authorization is None or scope["path"] in self._open_paths:
            return None
        given = Headers(scope=scope).get("authorization", "").encode("latin-1")
        if hmac.compare_digest(given, self._authorization):
            return None
        headers = {"WWW-Authenticate": 'Basic realm="streamkernel"'}
        return PlainTextResponse("a name and a password are needed\n", HTTPStatus.UNAUTHORIZED, headers)


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    """Return the value of the header Date; it takes as long to make as all else that is done here."""
    return formatdate(seconds, usegmt=True)
