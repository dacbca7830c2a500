"""The HTTP endpoint: /metrics for Prometheus, /healthz and /readyz for a supervisor, a status page for people."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry

from streamkernel.connectors.os_reason import os_reason
from streamkernel.daemon.base.health import Health
from streamkernel.daemon.config.endpoints import EndpointConfig
from streamkernel.daemon.serving.answers import answers_of
from streamkernel.daemon.serving.bind import bind
from streamkernel.daemon.serving.certificate import CertificateError, tls_context
from streamkernel.daemon.serving.endpoint import Endpoint
from streamkernel.daemon.serving.limits import HttpLimits, affordable_connections
from streamkernel.daemon.serving.process import ServerProcess
from streamkernel.daemon.serving.published import PublishedMetrics
from streamkernel.daemon.serving.wire import settings_of

if TYPE_CHECKING:
    from streamkernel.daemon.serving.background import BackgroundServer

__all__ = ["Server", "ServerError"]

_NAMES = {"metrics": "the metrics", "serve": "the predictions"}


class ServerError(Exception):
    """The endpoint cannot be served; the message says why."""


class Server:
    """HTTP server of metrics, probes and the status page, in a thread or a process of its own until it is closed.

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
    apart
        Serve in a process of its own, which takes no time from this one however many clients there are: for published
        metrics alone, without other endpoints.

    Raises
    ------
    ServerError
        When the port is taken, a certificate cannot be used or no process can be started.

    """

    def __init__(
        self,
        settings: EndpointConfig,
        metrics: CollectorRegistry | PublishedMetrics,
        health: Health,
        limits: HttpLimits | None = None,
        endpoints: Sequence[Endpoint] = (),
        section: str = "metrics",
        apart: bool = False,
    ) -> None:
        what = _NAMES.get(section, section)
        connections = affordable_connections(settings.max_connections, what)
        limits = replace(limits or HttpLimits(), connections=connections)
        try:
            context = None if settings.tls is None else tls_context(settings.tls, section)
        except CertificateError as error:
            raise ServerError(str(error)) from error
        try:
            listening = bind(settings.host, settings.port)
        except OSError as error:
            no_host = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
            what_to_do = "host to a name or an address of this machine" if no_host else "port to another one"
            raise ServerError(
                f"cannot serve {what.removeprefix('the ')} on {settings.host}:{settings.port}: {os_reason(error)}; "
                f"set {section}.{what_to_do}"
            ) from error
        self.port: int = listening.getsockname()[1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        self.url = f"{'http' if context is None else 'https'}://{host}:{self.port}"
        self._server: BackgroundServer | ServerProcess
        if apart:
            assert isinstance(metrics, PublishedMetrics), "what is not published cannot be sent"
            assert not endpoints, "other endpoints answer in this process"
            given = settings_of(settings, limits, section, what, health)
            try:
                self._server = ServerProcess(listening, given, answers_of(metrics, health))
            except OSError as error:
                listening.close()
                raise ServerError(f"cannot start the process that serves {what}: {os_reason(error)}") from error
            return
        # Now, not above: whoever serves in another process, or not at all, does without the time these take to import.
        from streamkernel.daemon.serving.application import make_application
        from streamkernel.daemon.serving.background import BackgroundServer

        application = make_application(settings, metrics, health, limits.workers, endpoints, section)
        self._server = BackgroundServer(application, listening, context, limits, what)

    def describe(self) -> str:
        """Return where metrics and status page are, as a phrase."""
        return f"serving metrics at {self.url}/metrics and the status page at {self.url}/"

    def close(self) -> None:
        """Stop serving; closing twice does nothing."""
        self._server.close()
