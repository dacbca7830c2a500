"""One session after the other: connected to, and asked for what may take for ever, on threads that may be left."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from connectors.kafka.base.client import Unreachable
from connectors.kafka.writing.mark import Producer
from connectors.kafka.writing.session import Connect, Session
from connectors.kafka.writing.watched import watched
from connectors.ports import Mark

__all__ = ["Connecting"]

_LONGEST_PAUSE = 5.0


class Connecting:
    """Makes sessions, and does one thing at a time that may take long.

    Parameters
    ----------
    connect
        Makes a session.
    name
        What its threads are called.
    clock
        Gives seconds, and never goes back.
    reached
        Told of a session as soon as it is there.

    Attributes
    ----------
    session
        The one that is connected; None while there is none.
    reason
        Why there is none, or why the last one broke.

    """

    def __init__(
        self, connect: Connect, name: str, clock: Callable[[], float], reached: Callable[[Session], None]
    ) -> None:
        self.session: Session | None = None
        self.reason = "no answer"
        self._connect = connect
        self._name = name
        self._clock = clock
        self._tell = reached
        self._closed = threading.Event()
        self._work: tuple[Future[Any], Callable[[Future[Any]], None]] | None = None
        self._attempt = 0
        self._again_at = 0.0
        self._before: Producer | None = None

    @property
    def busy(self) -> bool:
        """Whether something is under way."""
        return self._work is not None

    @property
    def due(self) -> bool:
        """Whether it is time to connect."""
        return self._work is None and self.session is None and self._clock() >= self._again_at

    def failure(self) -> str:
        """Say in a phrase why nothing is acknowledged."""
        return self.reason if self.session is None else self.session.failure()

    def start(self, call: Callable[[], Any], then: Callable[[Future[Any]], None]) -> None:
        """Begin what may wait for ever; `then` looks at what became of it."""
        self._work = watched(call, self._name), then

    def begin(self, mark: Mark | None, old: Session | None = None) -> None:
        """Begin to connect, after the end of an old session."""
        attempt, before = self._attempt, self._before

        def connect() -> Session:
            if old is not None:
                old.abandon()
            session = self._connect(mark, attempt, self._closed.is_set, before)
            if self._closed.is_set():
                session.abandon()
                raise Unreachable("it is closed")
            return session

        self.start(connect, self._reached)

    def _reached(self, future: Future[Any]) -> None:
        try:
            session = future.result()
        except Unreachable as error:
            self.reason = str(error)
            self._again_at = self._clock() + min(_LONGEST_PAUSE, 2.0**self._attempt)
            self._attempt += 1
        else:
            self.session = session
            self._attempt = 0
            self._before = session.producer
            self._tell(session)

    def look(self) -> None:
        """Look whether what was begun is done, and what became of it."""
        if self._work is not None and self._work[0].done():
            (future, then), self._work = self._work, None
            then(future)

    def wait(self, seconds: float) -> None:
        """Wait until what was begun is done, but no longer than some seconds."""
        if self._work is not None:
            wait([self._work[0]], seconds)

    def leave(self) -> Session:
        """Part with the session, which may still have something to say."""
        old, self.session = self.session, None
        assert old is not None
        return old

    def close(self) -> None:
        """End the session, and any attempt to make one."""
        self._closed.set()
        if self.session is not None:
            self.session.abandon()
