"""The process of the HTTP server, from inside: serves on a socket that it was given until it is told to end."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import threading

from streamkernel.daemon.serving.application import make_application
from streamkernel.daemon.serving.background import BackgroundServer
from streamkernel.daemon.serving.certificate import tls_context
from streamkernel.daemon.serving.proxy import DaemonProxy
from streamkernel.daemon.serving.wire import Ask, LogLine, ServerSettings, ask_line, read_frame

__all__ = ["main"]


def main(listening: int, parent: int) -> None:
    """Serve on a listening socket, and ask the process that started this one by another; both are descriptors.

    It ends when that process closes the connection or is gone, and by none of the signals that all processes of a
    service are sent at once: until the other one has ended, its probes are answered.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    connection = socket.socket(fileno=parent)
    answers = connection.makefile("rb")
    settings: ServerSettings = read_frame(answers)
    _start_logging(connection, settings.log_level)
    sending = threading.Lock()

    def ask(question: Ask) -> None:
        with sending:
            connection.sendall(ask_line(question))

    proxy = DaemonProxy(settings, ask)
    endpoint = settings.endpoint
    server = BackgroundServer(
        make_application(endpoint, proxy, proxy.health, settings.limits.workers, (), settings.section),
        socket.socket(fileno=listening),
        None if endpoint.tls is None else tls_context(endpoint.tls, settings.section),
        settings.limits,
        settings.what,
    )
    with contextlib.suppress(EOFError, ConnectionError):
        while True:
            proxy.take(read_frame(answers))
    proxy.end()
    server.close()


class _ToParent(logging.Handler):
    """Sends what is to be logged to the process that started this one, which has the log."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._connection.sendall(LogLine(record.levelno, self.format(record)).to_line())
        except OSError:
            self.handleError(record)


def _start_logging(connection: socket.socket, level: int) -> None:
    root = logging.getLogger()
    root.handlers[:] = [_ToParent(connection)]
    root.setLevel(level)
    logging.captureWarnings(True)
