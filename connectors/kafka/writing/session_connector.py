"""Makes one session after the other, on threads that may be left behind where a broker never answers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from typing import Any

from streamkernel.connectors.kafka.base.client import Unreachable
from streamkernel.connectors.kafka.writing.mark import Producer
from streamkernel.connectors.kafka.writing.session import ConnectSession, ProducerSession
from streamkernel.connectors.ports import Mark

__all__ = ["SessionConnector"]

_LONGEST_PAUSE = 5.0


class SessionConnector:
    """Connects one session after the other, and runs one call at a time that may take long.

    Its `reached` is called with each `session` as soon as it is there; `reason` says why there is none, or why the last
    one broke. A `name` is what its threads are called.
    """

    def __init__(
        self, connect: ConnectSession, name: str, clock: Callable[[], float], reached: Callable[[ProducerSession], None]
    ) -> None:
        self.session: ProducerSession | None = None
        self.reason = "no answer"
        self._connect = connect
        self._name = name
        self._clock = clock
        self._notify = reached
        self._closed = threading.Event()
        self._work: tuple[Future[Any], Callable[[Future[Any]], None]] | None = None
        self._attempt = 0
        self._again_at = 0.0
        self._before: Producer | None = None

    @property
    def busy(self) -> bool:
        """Whether a call is under way."""
        return self._work is not None

    @property
    def due(self) -> bool:
        """Whether it is time to connect."""
        return self._work is None and self.session is None and self._clock() >= self._again_at

    def failure(self) -> str:
        """Return why nothing is acknowledged, as a phrase."""
        return self.reason if self.session is None else self.session.failure()

    def start(self, call: Callable[[], Any], then: Callable[[Future[Any]], None]) -> None:
        """Begin a call that may wait for ever; `then` gets its future once it is done, in `look`."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(call())
            except BaseException as error:
                future.set_exception(error)

        # The threads of `concurrent.futures` are joined at the end of the process, which a broker that never answers
        # would put off for ever.
        threading.Thread(target=run, name=self._name, daemon=True).start()
        self._work = future, then

    def begin(self, mark: Mark | None, old: ProducerSession | None = None) -> None:
        """Begin to connect, after the end of an old session."""
        attempt, before = self._attempt, self._before

        def connect() -> ProducerSession:
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
            self._again_at = self._clock() + min(_LONGEST_PAUSE, 2.0 ** min(self._attempt, 10))
            self._attempt += 1
        else:
            self.session = session
            self._attempt = 0
            self._before = session.producer
            self._notify(session)

    def look(self) -> None:
        """Deal with the outcome of the call, where it is done."""
        if self._work is not None and self._work[0].done():
            (future, then), self._work = self._work, None
            then(future)

    def wait(self, seconds: float) -> None:
        """Wait until the call is done, but no longer than some seconds."""
        if self._work is not None:
            wait([self._work[0]], seconds)

    def leave(self) -> ProducerSession:
        """Return the session and part with it: it may still have something to say."""
        old, self.session = self.session, None
        assert old is not None
        return old

    def close(self) -> None:
        """End the session, and any attempt to make one."""
        self._closed.set()
        if self.session is not None:
            self.session.abandon()
