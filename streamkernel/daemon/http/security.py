"""The checks of every request: its Host header, name and password; and headers for browsers.

A browser lets a page read what the page's own host serves, and the owner of a name may let it point anywhere, also to a
server on the reader's machine (DNS rebinding). Such a request carries the foreign name in its Host header.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from collections.abc import Iterable
from http import HTTPStatus

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streamkernel.daemon.config.endpoints import BasicAuthConfig
from streamkernel.daemon.http.rate_limit import limited_logger

__all__ = ["Hosts", "SecurityMiddleware"]

_log = limited_logger(__name__)
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::[0-9]{0,5})?", re.ASCII | re.IGNORECASE)
# Probes carry no credentials, and their answer is one word.
_PROBES = frozenset({"/healthz", "/readyz"})
_HEAD_BYTES, _HEAD_FIELDS = 16_384, 100
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Hosts:
    """The hosts a server answers to: any address, loopback names, this machine's name, and listed names.

    Parameters
    ----------
    listed
        Further names. ``*.example.org`` means all names with that ending, ``*`` all names.

    Examples
    --------
    >>> hosts = Hosts(["metrics.example.org", "*.local"])
    >>> [hosts.allows(name) for name in ("localhost", "10.1.2.3", "::1", "metrics.example.org", "a.local", "evil.org")]
    [True, True, True, True, True, False]

    """

    def __init__(self, listed: Iterable[str]) -> None:
        names = {name.lower().rstrip(".") for name in (*listed, socket.gethostname())}
        self._all = "*" in names
        self._names = frozenset(names | {"localhost"})
        self._endings = (".localhost", *(name[1:] for name in names if name.startswith("*.")))

    def allows(self, host: str) -> bool:
        """Return whether the server answers a request for a host."""
        return self._all or host in self._names or host.endswith(self._endings) or _is_address(host)


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _too_large(scope: Scope) -> PlainTextResponse | None:
    """Return the refusal of a request with too long a target or too many header fields."""
    fields = scope["headers"]
    size = len(scope["raw_path"]) + len(scope["query_string"]) + sum(len(name) + len(value) for name, value in fields)
    if size <= _HEAD_BYTES and len(fields) <= _HEAD_FIELDS:
        return None
    text = f"a request may have {_HEAD_BYTES} bytes in {_HEAD_FIELDS} header fields\n"
    return PlainTextResponse(text, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)


class SecurityMiddleware:
    """Refuses requests that are too large, name a foreign host, or lack the name and the password.

    Parameters
    ----------
    app
        The application that answers the others.
    hosts
        The hosts that the server answers to.
    basic_auth
        The name and the password; None: anybody may ask.
    section
        The section of the configuration, which a refusal names.

    """

    def __init__(self, app: ASGIApp, hosts: Hosts, basic_auth: BasicAuthConfig | None, section: str) -> None:
        self._app = app
        self._key = f"{section}.allowed_hosts"
        self._hosts = hosts
        self._authorization = None if basic_auth is None else basic_auth.header.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse a request or let the application answer it, and add the headers for browsers."""

        async def add(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        await (_too_large(scope) or self._foreign(headers, scope) or self._unauthorized(headers, scope) or self._app)(
            scope, receive, add
        )

    def _foreign(self, headers: Headers, scope: Scope) -> PlainTextResponse | None:
        """Return the refusal of a request for a foreign host."""
        hosts = headers.getlist("host")
        if not hosts and scope["http_version"] == "1.0":
            return None
        found = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if found is None:
            return PlainTextResponse("a request needs one Host header with a host\n", HTTPStatus.BAD_REQUEST)
        host = (found["six"] or found["name"]).lower().rstrip(".")
        if self._hosts.allows(host):
            return None
        _log.warning("requests for the host %s are refused; if it is this one: add it to %s", host, self._key)
        text = f"the host {host} is not served here; if it is this one: add it to {self._key}\n"
        return PlainTextResponse(text, HTTPStatus.MISDIRECTED_REQUEST)

    def _unauthorized(self, headers: Headers, scope: Scope) -> PlainTextResponse | None:
        """Return the refusal of a request without the name and the password."""
        if self._authorization is None or scope["path"] in _PROBES:
            return None
        if hmac.compare_digest(headers.get("authorization", "").encode("latin-1"), self._authorization):
            return None
        challenge = {"WWW-Authenticate": 'Basic realm="streamkernel"'}
        return PlainTextResponse("a name and a password are needed\n", HTTPStatus.UNAUTHORIZED, challenge)
