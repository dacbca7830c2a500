"""The HTTP server, uvicorn in a thread: /metrics for Prometheus, /healthz and /readyz for a supervisor, a page."""

from __future__ import annotations

import errno
import socket
import ssl
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.endpoints import EndpointConfig, TlsConfig
from streamkernel.daemon.http.listening import bind

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from starlette.routing import Route

    from streamkernel.daemon.http.published import PublishedMetrics

__all__ = ["Server", "ServerError", "short_turns"]

_NAMES = {"metrics": "the metrics", "serve": "the predictions"}
_HEAD_BYTES = 65_536
# Python's 5 ms is how long the thread that learns keeps the interpreter once another one asks. An answer takes several
# turns, because each look at a socket ends one. A turn costs nothing while no other thread waits.
_TURN_SECONDS = 0.001


class ServerError(Exception):
    """The endpoint cannot be served; the message says why."""


class Server:
    """HTTP server of metrics, probes and the status page, in a thread of its own until it is closed.

    Parameters
    ----------
    settings
        Where, and with what protection.
    metrics
        The metrics: a registry, which is collected at each request, or the published ones.
    health
        The source of the probes and the status page.
    routes
        Further routes.
    section
        The section of the configuration with the settings, which errors name.
    max_body_bytes
        The longest body of a request.

    Raises
    ------
    ServerError
        When the port is taken or a certificate cannot be used.

    """

    def __init__(
        self,
        settings: EndpointConfig,
        metrics: CollectorRegistry | PublishedMetrics,
        health: Health,
        routes: Sequence[Route] = (),
        section: str = "metrics",
        max_body_bytes: int = 0,
    ) -> None:
        # Now, not above: a daemon without an endpoint does without the time these take to import.
        import uvicorn

        from streamkernel.daemon.http.application import make_application
        from streamkernel.daemon.http.protocol import bounded_protocol
        from streamkernel.daemon.http.rate_limit import limited_logger

        what = _NAMES.get(section, section)
        limited_logger("uvicorn.error")
        config = uvicorn.Config(
            make_application(settings, metrics, health, routes, section, max_body_bytes),
            loop="asyncio",
            http=bounded_protocol(_HEAD_BYTES + 2 * max_body_bytes),
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=1,
        )
        config.load()
        config.ssl = None if settings.tls is None else _tls_context(settings.tls, section)
        try:
            listening = bind(settings.host, settings.port)
        except OSError as error:
            no_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
            what_to_do = "host to a name or an address of this machine" if no_host else "port to another one"
            raise ServerError(
                f"cannot serve {what.removeprefix('the ')} on {settings.host}:{settings.port}: {os_reason(error)}; "
                f"set {section}.{what_to_do}"
            ) from error
        listening.limit(settings.max_connections, what, plain=config.ssl is None)
        self.port: int = listening.getsockname()[1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"{'http' if config.ssl is None else 'https'}://{host}:{self.port}"
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listening],), name="http", daemon=True)
        self._thread.start()

    def describe(self) -> str:
        """Return where metrics and status page are, as a phrase."""
        return f"serving metrics at {self.url}/metrics and the status page at {self.url}/"

    def close(self) -> None:
        """Stop serving; requests in progress have a second to be answered. Closing twice does nothing."""
        self._server.should_exit = True
        self._thread.join()


@contextmanager
def short_turns() -> Iterator[None]:
    """Let a thread that waits for the interpreter have it after a millisecond, or sooner if somebody set that.

    Examples
    --------
    >>> with short_turns():
    ...     sys.getswitchinterval()
    0.001

    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN_SECONDS))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def _tls_context(settings: TlsConfig, section: str) -> ssl.SSLContext:
    """Return the TLS context of a certificate; a ServerError names the section of the configuration."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.certificate, settings.key, password=_refuse_passphrase)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if error.strerror else error
        raise ServerError(
            f"{section}.tls: {settings.certificate} and {settings.key} cannot be used: {reason}"
        ) from error
    return context


def _refuse_passphrase() -> str:
    """Say that there is no passphrase: OpenSSL would ask for one at the terminal, and a daemon has none."""
    raise OSError("the key is encrypted; give one without a passphrase, which only the daemon can read")
