"""Lookup of schemas: a thread asks the registry until it answers, while the source or sink holds its batch."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.client import RegistryOutage, UnknownSchemaError, UnusableSchemaError

__all__ = ["FailedLookupError", "RegistryLookup"]

_log = logging.getLogger(__name__)

MOST_KEPT = 1000
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
_AGAIN_SECONDS = 60.0
_CLOSE_SECONDS = 1.0


class FailedLookupError(Exception):
    """A lookup failed for good; `final` if the registry refuses everything, not only this schema."""

    def __init__(self, reason: str, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class RegistryLookup(Generic[Key, Found]):
    """A bounded cache of a registry's answers, filled by a thread that outlasts outages.

    Parameters
    ----------
    place
        The beginning of a log line.
    find
        Asks the registry, in the thread; raises as `streamkernel.connectors.registry.client.RegistryClient`.
    unknown_seconds
        How long to ask for an unknown schema. A failure is cached as long.

    """

    def __init__(self, place: str, find: Callable[[Key], Found], unknown_seconds: float = 60.0) -> None:
        self._place = place
        self._find = find
        self._unknown_seconds = unknown_seconds
        # Each answer, and the time until which it holds.
        self._answers: dict[Key, tuple[Found | FailedLookupError, float]] = {}
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._problem: str | None = None

    def get(self, key: Key) -> Found | None:
        """Return the answer for a key, or None and start to look it up; raises `FailedLookupError`."""
        answer, until = self._answers.get(key, (None, float("inf")))
        if answer is not None and time.monotonic() < until:
            if isinstance(answer, FailedLookupError):
                raise FailedLookupError(str(answer), answer.final)
            return answer
        if self._thread is None or not self._thread.is_alive():
            self._stopping = threading.Event()
            self._thread = threading.Thread(
                target=self._look_up, args=(key, self._stopping), name="schema-registry", daemon=True
            )
            self._thread.start()
        return None

    def wait(self, seconds: float) -> None:
        """Wait for the running lookup, at most some seconds."""
        if self._thread is not None:
            self._thread.join(seconds)

    @property
    def health_problem(self) -> str | None:
        """The awaited schema and the reason; None before the first failed attempt."""
        return self._problem

    def close(self) -> None:
        """Stop the thread; a registry may hold it up for some time. The cache stays."""
        self._stopping.set()
        self.wait(_CLOSE_SECONDS)
        self._thread = self._problem = None

    def _look_up(self, key: Key, stopping: threading.Event) -> None:
        """Ask until the registry knows the key, or fails for good."""
        name = f"schema id {key}" if isinstance(key, int) else f"the schema of the subject {key}"
        pause, since, logged = FIRST_PAUSE, time.monotonic(), None
        unknown_since: float | None = None
        while not stopping.is_set():
            now = time.monotonic()
            answer: Found | FailedLookupError | None = None
            try:
                answer = self._find(key)
            except RegistryOutage as outage:
                problem = f"no answer: {outage}"
                sentence = f"no schema registry answers ({outage}): trying again until one does"
            except UnknownSchemaError as unknown:
                unknown_since = unknown_since or now
                problem = f"not known: {unknown}"
                sentence = f"{name} is not known ({unknown}): asking again"
                if now - unknown_since >= self._unknown_seconds:
                    advice = "register it, or check schema_registry.url"
                    answer = FailedLookupError(f"the schema registry does not know {name} ({unknown}): {advice}")
            except ConnectorError as error:
                answer = FailedLookupError(str(error), final=True)
            except UnusableSchemaError as error:
                answer = FailedLookupError(f"{name} cannot be used: {error}")
            except Exception as error:  # an unforeseen error must not end the thread without an answer
                _log.debug("the full traceback", exc_info=error)
                answer = FailedLookupError(f"{name} cannot be used: {type(error).__name__}: {error}")
            if answer is not None:
                if logged is not None:
                    _log.info("%s: answered after %.0f s", self._place, now - since)
                self._keep(key, answer, stopping)
                return
            if logged is None or now - logged >= _AGAIN_SECONDS:
                logged = now
                _log.warning("%s: %s", self._place, sentence)
            if not stopping.is_set():
                self._problem = f"{name} is not known yet ({problem})"
            stopping.wait(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    def _keep(self, key: Key, answer: Found | FailedLookupError, stopping: threading.Event) -> None:
        if stopping is self._stopping:
            self._problem = None
        self._answers.pop(key, None)
        while len(self._answers) >= MOST_KEPT:
            del self._answers[next(iter(self._answers))]
        lasts = self._unknown_seconds if isinstance(answer, FailedLookupError) else float("inf")
        self._answers[key] = answer, time.monotonic() + lasts
