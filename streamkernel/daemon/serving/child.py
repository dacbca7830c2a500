"""The process of the HTTP server, from inside: serves on a socket that it was given until it is told to end."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable

from streamkernel.daemon.base.early_signals import STOPPING
from streamkernel.daemon.serving.application import make_application
from streamkernel.daemon.serving.background import BackgroundServer
from streamkernel.daemon.serving.certificate import CertificateError, tls_context
from streamkernel.daemon.serving.proxy import DaemonProxy
from streamkernel.daemon.serving.wire import LogLine, ServerSettings, ask_line, read_frame

__all__ = ["main"]

_log = logging.getLogger(__name__)


def main(listening: int, connection: int) -> None:
    """Serve on a listening socket, and ask the process that started this one by another; both are descriptors.

    It ends when that process closes the connection or is gone, and by none of the signals that all processes of a
    service are sent at once: until the other one has ended, its probes are answered.
    """
    for number in (*STOPPING, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(EOFError, ConnectionError):  # the other process is gone
        _serve(socket.socket(fileno=listening), socket.socket(fileno=connection))


def _serve(listening: socket.socket, connection: socket.socket) -> None:
    answers = connection.makefile("rb")
    settings: ServerSettings = read_frame(answers)
    sending = threading.Lock()

    def send(line: bytes) -> None:
        with sending:  # whole lines, also where the other process reads late
            connection.sendall(line)

    _start_logging(send, settings.log_level)
    proxy = DaemonProxy(settings, lambda question: send(ask_line(question)))
    try:
        server = _start_server(listening, settings, proxy)
    except Exception as error:
        reason = error if isinstance(error, CertificateError | OSError) else f"{type(error).__name__}: {error}"
        _log.error("%s cannot be served: %s", settings.what, reason)
        sys.exit(1)
    try:
        while True:
            proxy.take(read_frame(answers))
    finally:
        proxy.end()
        server.close()


def _start_server(listening: socket.socket, settings: ServerSettings, proxy: DaemonProxy) -> BackgroundServer:
    endpoint = settings.endpoint
    return BackgroundServer(
        make_application(endpoint, proxy, proxy.health, settings.limits.workers, (), settings.section),
        listening,
        None if endpoint.tls is None else tls_context(endpoint.tls, settings.section),
        settings.limits,
        settings.what,
    )


class _ToParent(logging.Handler):
    """Sends what is to be logged to the process that started this one, which has the log."""

    def __init__(self, send: Callable[[bytes], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._send(LogLine(record.levelno, self.format(record)).to_line())
        except OSError:
            self.handleError(record)


def _start_logging(send: Callable[[bytes], None], level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_ToParent(send)]
    root.setLevel(level)
    logging.captureWarnings(True)
