"""The HTTP endpoint: /metrics for Prometheus, /healthz and /readyz for a supervisor, a status page for people."""

from __future__ import annotations

import base64
import hmac
import logging
import ssl
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app

from streamkernel.daemon.settings.config import Metrics

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIEnvironment

__all__ = ["Health", "Server", "ServerError"]

_log = logging.getLogger(__name__)

_PROBES = ("/healthz", "/readyz")
_SLOW_CLIENT_SECONDS = 10.0
_STOP_SECONDS = 0.05


class ServerError(Exception):
    """The endpoint cannot be served; the message says why."""


class Health:
    """What the probes answer from, written by the loop and read by the server's threads.

    Attributes
    ----------
    ready
        Whether the daemon takes records.
    trouble
        Asked for a sentence on what is wrong; None: the daemon is well.
    page
        Asked for the status page, as HTML.

    """

    def __init__(self) -> None:
        self.ready = False
        self.trouble: Callable[[], str | None] = lambda: None
        self.page: Callable[[], str] = lambda: ""


class _HttpServer(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    allow_reuse_address = True

    tls: ssl.SSLContext | None = None

    def finish_request(self, request: Any, client_address: Any) -> None:
        # In the thread of the request: a client that never finishes its handshake holds up nobody.
        request.settimeout(_SLOW_CLIENT_SECONDS)
        if self.tls is None:
            super().finish_request(request, client_address)
            return
        with self.tls.wrap_socket(request, server_side=True) as wrapped:
            super().finish_request(wrapped, client_address)

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002
        _log.debug("a request from %s failed", client_address, exc_info=True)


class _Handler(WSGIRequestHandler):
    timeout = _SLOW_CLIENT_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        _log.debug("%s %s", self.address_string(), format % args)


class Server:
    """Serves until it is closed, from a thread of its own.

    Parameters
    ----------
    settings
        Where, and with what protection.
    registry
        The metrics.
    health
        What the probes and the status page say.

    Raises
    ------
    ServerError
        When the port is taken or a certificate cannot be read.

    """

    def __init__(self, settings: Metrics, registry: CollectorRegistry, health: Health) -> None:
        self._health = health
        self._metrics: Callable[..., Iterable[bytes]] = make_wsgi_app(registry)
        self._expected = _expected_header(settings)
        context = _tls_context(settings)
        try:
            self._server = make_server(settings.host, settings.port, self._answer, _HttpServer, _Handler)
        except OSError as error:
            raise ServerError(
                f"cannot serve metrics on {settings.host}:{settings.port}: {error.strerror}; "
                "set metrics.port to another one, to 0 for a free one, or metrics to null"
            ) from error
        self._server.tls = context
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.port = self._server.server_port
        self.url = f"{'http' if context is None else 'https'}://{host}:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_STOP_SECONDS,), name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving; closing twice does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def _answer(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "/")
        # Probes carry no credentials, and what they are told is one word.
        if self._expected is not None and path not in _PROBES:
            given = environ.get("HTTP_AUTHORIZATION", "").encode("latin-1", "replace")
            if not hmac.compare_digest(given, self._expected):
                headers = [("WWW-Authenticate", 'Basic realm="streamkernel"')]
                return _text(start_response, HTTPStatus.UNAUTHORIZED, "a name and a password are needed", headers)
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _text(start_response, HTTPStatus.METHOD_NOT_ALLOWED, "only GET", [("Allow", "GET, HEAD")])
        if path == "/metrics":
            return self._metrics(environ, start_response)
        if path == "/healthz":
            trouble = self._health.trouble()
            return _text(start_response, HTTPStatus.SERVICE_UNAVAILABLE if trouble else HTTPStatus.OK, trouble or "ok")
        if path == "/readyz":
            if self._health.ready:
                return _text(start_response, HTTPStatus.OK, "ready")
            return _text(start_response, HTTPStatus.SERVICE_UNAVAILABLE, "not ready")
        if path == "/":
            start_response("200 OK", [("Content-Type", "text/html; charset=utf-8")])
            return [self._health.page().encode()]
        return _text(start_response, HTTPStatus.NOT_FOUND, "not found: /, /metrics, /healthz and /readyz are here")


def _text(
    start_response: StartResponse, status: HTTPStatus, text: str, headers: list[tuple[str, str]] | None = None
) -> list[bytes]:
    fixed = [("Content-Type", "text/plain; charset=utf-8")]
    start_response(f"{status.value} {status.phrase}", fixed + (headers or []))
    return [text.encode() + b"\n"]


def _expected_header(settings: Metrics) -> bytes | None:
    if settings.basic_auth is None:
        return None
    pair = f"{settings.basic_auth.username}:{settings.basic_auth.password.get_secret_value()}"
    return b"Basic " + base64.b64encode(pair.encode())


def _tls_context(settings: Metrics) -> ssl.SSLContext | None:
    if settings.tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls.certificate, settings.tls.key)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if error.strerror else error
        raise ServerError(
            f"metrics.tls: {settings.tls.certificate} and {settings.tls.key} cannot be used: {reason}"
        ) from error
    return context
