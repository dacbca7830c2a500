"""The daemon as the process of its HTTP server sees it: asked when a client wants to know, and not more often."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

from prometheus_client import Metric

from streamkernel.daemon.base.health import Health, NoStatusError
from streamkernel.daemon.base.status_snapshot import StatusSnapshot
from streamkernel.daemon.serving.published import MetricsSnapshot, Scrape, ScrapeAnswer
from streamkernel.daemon.serving.wire import Ask, ServerSettings, Told

__all__ = ["KEPT_SECONDS", "PATIENCE_SECONDS", "DaemonProxy"]

T = TypeVar("T")

# However many clients ask, the process that learns is asked no more often.
KEPT_SECONDS = 0.05
# One that learns answers within milliseconds; one that has not for so long is stopped, or as good as that.
PATIENCE_SECONDS = 5.0
_SILENT = "does not answer"


class _Remote(Generic[T]):
    """A value that another process has: a copy, which is brought up to date before it is given."""

    def __init__(self, name: str, ask: Callable[[Ask], None], clock: Callable[[], float]) -> None:
        self._name = name
        self._ask = ask
        self._clock = clock
        self._changed = threading.Condition()
        self._asked: float | None = None  # when, where it is not answered yet
        self._heard: float | None = None
        self._version = 0
        self._value: T | None = None
        self._failure: str | None = None
        self._ended = False

    def get(self) -> T:
        with self._changed:
            if self._heard is None or self._clock() - self._heard > KEPT_SECONDS:
                asked = self._asked
                if asked is None:
                    asked = self._asked = self._clock()
                    self._ask(Ask(self._name, self._version))
                # Whoever comes while the other is silent does not wait as long as the first.
                patience = max(0.0, asked + PATIENCE_SECONDS - self._clock())
                heard = self._changed.wait_for(lambda: self._asked is None or self._ended, patience)
                if not heard or self._ended:
                    raise NoStatusError(f"the process that learns {'has ended' if self._ended else _SILENT}")
            if self._failure is not None or self._value is None:
                raise NoStatusError(f"the process that learns cannot say: {self._failure}")
            return self._value

    def take(self, told: Told) -> None:
        with self._changed:
            if told.value is not None:
                self._version, self._value = told.version, told.value
            self._failure = told.failure
            self._heard = self._clock()
            self._asked = None
            self._changed.notify_all()

    def end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class DaemonProxy:
    """Metrics, health and status of the process that learns, for the server, which is another one.

    Parameters
    ----------
    settings
        What the process was given at its start.
    ask
        Sends a question.
    clock
        Gives seconds, and never goes back.

    Attributes
    ----------
    health
        What the probes and the page answer from; asking it may take a while.

    """

    def __init__(
        self, settings: ServerSettings, ask: Callable[[Ask], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._health: _Remote[tuple[bool, str | None, str | None]] = _Remote("health", ask, clock)
        self._metrics: _Remote[MetricsSnapshot] = _Remote("metrics", ask, clock)
        self._status: _Remote[StatusSnapshot] = _Remote("status", ask, clock)
        self._remotes: dict[str, _Remote[Any]] = {
            "health": self._health,
            "metrics": self._metrics,
            "status": self._status,
        }
        self.health = Health(
            ready=True,  # as far as this process can tell; the obstacle knows better
            obstacle=self._obstacle,
            trouble=self._trouble,
            page=lambda: settings.page,
            policy=settings.policy,
            status=self._to_json if settings.has_status else None,
        )

    def take(self, told: Told) -> None:
        """Take an answer."""
        if told.name == "metrics" and told.value is not None:
            families: Iterable[Metric] = told.value
            told = told._replace(value=MetricsSnapshot(families))
        self._remotes[told.name].take(told)

    def end(self) -> None:
        """Take note that no answer will come any more."""
        for remote in self._remotes.values():
            remote.end()

    def answer(self, scrape: Scrape) -> ScrapeAnswer:
        """Answer a request for the metrics from what was published last.

        Raises
        ------
        NoStatusError
            Where the process that learns does not answer.

        """
        return self._metrics.get().answer(scrape)

    def _trouble(self) -> str | None:
        try:
            _, trouble, _ = self._health.get()
        except NoStatusError as error:
            return str(error)
        return trouble

    def _obstacle(self) -> str | None:
        try:
            ready, _, obstacle = self._health.get()
        except NoStatusError as error:
            return str(error)
        return Health(ready, lambda: obstacle).unready()

    def _to_json(self, since: float, partition: int | None) -> bytes | None:
        if partition is not None:
            return None
        snapshot = self._status.get()
        ready, trouble, obstacle = self._health.get()
        state = Health(ready, lambda: obstacle, lambda: trouble).state()
        return snapshot.to_json(time.time(), state, since)
