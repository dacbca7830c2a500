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
from streamkernel.daemon.base.notify_socket import take_notify_socket

__all__ = ["Notifier"]

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 0.2
# However short the watchdog's interval: telling how the daemon is must not keep a processor busy.
_LEAST_SECONDS = 0.02
_STATUS_SECONDS = 5.0
# The part of the watchdog's interval after which it is notified again; systemd asks for at most a half.
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
        self._well = self._ready = False
        self._started = self._next = self._extend_at = self._status_at = time.monotonic()
        self._status = ""
        self._thread = threading.Thread(target=self._run, name="notifier", daemon=True)

    @property
    def running(self) -> bool:
        """Whether there is a service manager to notify."""
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
        watchdog = self._socket.watchdog
        pause = _STATUS_SECONDS if watchdog is None else min(_STATUS_SECONDS, watchdog * _WATCHDOG_PART)
        ending = failed = False
        while not self._left.wait(max(_LEAST_SECONDS, min(_LOOK_SECONDS, pause / 2))):
            if not ending and self._stopping():
                ending = self._socket.send(STOPPING=1)
            try:
                self._report(time.monotonic(), pause)
            except Exception as error:  # the daemon continues; one that cannot be asked for long is no longer well
                if not failed:
                    failed = True
                    _log.warning("the service manager cannot be notified: %s: %s", type(error).__name__, error)
        if self._well and not self._ready:  # it was, for a moment: a short stream is at its end
            self._socket.send(READY=1)
        if not ending:
            self._socket.send(STOPPING=1)

    def _report(self, now: float, pause: float) -> None:
        """Send what is due."""
        assert self._socket is not None
        if not self._ready and self._health.ready:
            self._ready = self._socket.send(READY=1)
            self._next = self._status_at = now
        if now < self._next:
            return
        self._next = now + pause
        trouble = self._health.trouble()
        if trouble is None and self._socket.watchdog is not None:
            self._socket.send(WATCHDOG=1)
        if trouble is None and not self._ready and self._extend_at <= now < self._started + _START_SECONDS:
            self._extend_at = now + _EXTEND_SECONDS / 3
            self._socket.send(EXTEND_TIMEOUT_USEC=int(_EXTEND_SECONDS * 1e6))
        status = trouble or self._health.obstacle() or (self._health.summary() if self._ready else "starting")
        due = now >= self._status_at or trouble is not None
        if status != self._status and due:
            self._status, self._status_at = status, now + _STATUS_SECONDS
            self._socket.send(STATUS=status)
