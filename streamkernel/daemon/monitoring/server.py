"""The HTTP endpoint: /metrics for Prometheus, /healthz and /readyz for a supervisor, a status page for people."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from dataclasses import replace

from prometheus_client import CollectorRegistry

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.endpoints import EndpointConfig
from streamkernel.daemon.serving.endpoint import Endpoint
from streamkernel.daemon.serving.limits import HttpLimits, affordable_connections
from streamkernel.daemon.serving.published import PublishedMetrics

__all__ = ["Server", "ServerError"]

_NAMES = {"metrics": "the metrics", "serve": "the predictions"}


class ServerError(Exception):
    """The endpoint cannot be served; the message says why."""


class Server:
    """HTTP server of the metrics, the probes and the status page, in a thread of its own until it is closed.

    Parameters
    ----------
    settings
        Where, and with what protection.
    metrics
        The metrics: a registry, which is collected at each request, or what was published of one.
    health
        What the probes and the status page answer from.
    limits
        What clients may take; how many connections, the settings say.
    endpoints
        What else is served.
    section
        The section of the configuration that the settings are, which errors name.

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
        limits: HttpLimits | None = None,
        endpoints: Sequence[Endpoint] = (),
        section: str = "metrics",
    ) -> None:
        # Now, not above: a daemon without metrics does without the server and the time its import takes.
        from streamkernel.daemon.serving.application import make_application
        from streamkernel.daemon.serving.background import BackgroundServer
        from streamkernel.daemon.serving.listener import bind

        what = _NAMES.get(section, section)
        connections = affordable_connections(settings.max_connections, what)
        limits = replace(limits or HttpLimits(), connections=connections)
        context = _tls_context(settings, section)
        try:
            listening = bind(settings.host, settings.port)
        except OSError as error:
            raise ServerError(
                f"cannot serve {what.removeprefix('the ')} on {settings.host}:{settings.port}: {error.strerror}; "
                f"set {section}.port to another one"
            ) from error
        self.port: int = listening.getsockname()[1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"{'http' if context is None else 'https'}://{host}:{self.port}"
        application = make_application(settings, metrics, health, limits.workers, endpoints, section)
        self._server = BackgroundServer(
            application, listening, context, limits, what, paced=isinstance(metrics, PublishedMetrics)
        )

    def close(self) -> None:
        """Stop serving; closing twice does nothing."""
        self._server.close()


def _tls_context(settings: EndpointConfig, section: str) -> ssl.SSLContext | None:
    if settings.tls is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls.certificate, settings.tls.key)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror if error.strerror else error
        raise ServerError(
            f"{section}.tls: {settings.tls.certificate} and {settings.tls.key} cannot be used: {reason}"
        ) from error
    return context
