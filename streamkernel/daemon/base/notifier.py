"""A thread that tells the service manager (systemd) when the daemon is ready, that it is well, and that it ends."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from streamkernel.daemon.base.health import Health
from streamkernel.daemon.base.notify_socket import NotifySocket, take_notify_socket

__all__ = ["Notifier"]

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
# However short the watchdog's interval: telling how the daemon is must not keep a processor busy.
_LEAST_SECONDS = 0.02
_STATUS_SECONDS = 5.0
# The part of the watchdog's interval after which it is told again; systemd asks for at most a half.
_WATCHDOG_PART = 0.25
# A start that takes longer than the service manager allows is given that much more, again and again, but not for ever:
# before the loop turns nothing tells a slow start from one that hangs.
_EXTEND_SECONDS = 30.0
_START_SECONDS = 900.0
# Not for ever either: who asks the processes of partitions how they are may wait for an answer.
_END_SECONDS = 3.0


class Notifier:
    """Reports the health of a daemon to the service manager, from a thread of its own, while it is entered.

    ``READY=1`` is sent once `Health.ready` is set, ``WATCHDOG=1`` as long as `Health.trouble` finds nothing, as the
    liveness probe, and ``STOPPING=1`` when a stop is asked for or the context is left. Where no service manager
    started the process nothing is done.

    Parameters
    ----------
    health
        What the probes answer.
    stopping
        Whether a stop was asked for.

    """

    def __init__(self, health: Health, stopping: Callable[[], bool]) -> None:
        self._health = health
        self._stopping = stopping
        self._socket = take_notify_socket(os.environ)
        self._left = threading.Event()
        self._well = False
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    @property
    def running(self) -> bool:
        """Whether there is a service manager, which is told."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        if self._socket is not None:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._well = error is None
        self._left.set()
        if self._socket is not None:
            self._thread.join(_END_SECONDS)

    def _run(self) -> None:
        assert self._socket is not None
        report = _Report(self._socket, self._health)
        pause = max(_LEAST_SECONDS, min(_LOOK_SECONDS, report.watchdog_pause / 2))
        ending = False
        while not self._left.wait(pause):
            if not ending and self._stopping():
                ending = self._socket.send(STOPPING=1)
            try:
                report.send()
            except Exception as error:  # the daemon goes on; one that cannot be asked for long is no longer well
                report.failed(error)
        if self._well and not report.ready:  # it was, for a moment: a short stream is at its end
            self._socket.send(READY=1)
        if not ending:
            self._socket.send(STOPPING=1)


class _Report:
    """What was told so far, and when the next of it is due."""

    def __init__(self, socket: NotifySocket, health: Health) -> None:
        self._socket = socket
        self._health = health
        watchdog = socket.watchdog
        self.watchdog_pause = _STATUS_SECONDS if watchdog is None else watchdog * _WATCHDOG_PART
        self._started = time.monotonic()
        self.ready = False
        self._next = self._extend_at = self._status_at = self._started
        self._status = ""
        self._trouble: str | None = None
        self._failed = False

    def send(self) -> None:
        now = time.monotonic()
        if not self.ready and self._health.ready:
            self.ready = self._socket.send(READY=1)
            self._next = self._status_at = now
        if now < self._next:
            return
        self._next = now + min(self.watchdog_pause, _STATUS_SECONDS)
        trouble = self._health.trouble()
        if trouble is None:
            self._send_well(now)
        if now >= self._status_at or trouble != self._trouble:
            self._trouble = trouble
            self._status_at = now + _STATUS_SECONDS
            self._send_status(trouble)

    def failed(self, error: Exception) -> None:
        if not self._failed:
            self._failed = True
            _log.warning("the service manager cannot be notified: %s: %s", type(error).__name__, error)

    def _send_well(self, now: float) -> None:
        if not self.ready and now >= self._extend_at and now < self._started + _START_SECONDS:
            self._extend_at = now + _EXTEND_SECONDS / 3
            self._socket.send(EXTEND_TIMEOUT_USEC=int(_EXTEND_SECONDS * 1e6))
        if self._socket.watchdog is not None:
            self._socket.send(WATCHDOG=1)

    def _send_status(self, trouble: str | None) -> None:
        status = trouble or self._health.obstacle() or (self._health.summary() if self.ready else "starting")
        if status != self._status:
            self._status = status
            self._socket.send(STATUS=status)
