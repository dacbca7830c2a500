"""Lookup of schemas: a thread asks the registry until it answers, while the source or sink holds its batch."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.client import RegistryOutage, UnknownSchemaError, UnusableSchemaError

__all__ = ["FailedLookupError", "RegistryLookup"]

_log = logging.getLogger(__name__)

MOST_KEPT = 1000
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
_AGAIN_SECONDS = 60.0
_CLOSE_SECONDS = 1.0


class FailedLookupError(Exception):
    """A lookup failed for good; the message is a phrase with the reason.

    Attributes
    ----------
    final
        Whether the registry refuses everything, not only this schema.

    """

    def __init__(self, reason: str, final: bool) -> None:
        super().__init__(reason)
        self.final = final


Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found")


class _Failure(NamedTuple):
    reason: str
    final: bool
    until: float


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
        self._lock = threading.Lock()
        self._found: OrderedDict[Key, Found] = OrderedDict()
        self._failed: OrderedDict[Key, _Failure] = OrderedDict()
        self._wanted: Key | None = None
        self._reason: str | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def get(self, key: Key) -> Found | None:
        """Return the answer for a key, or None and start to look it up; raises `FailedLookupError`."""
        with self._lock:
            if key in self._found:
                self._found.move_to_end(key)
                return self._found[key]
            failure = self._failed.get(key)
            if failure is not None and time.monotonic() < failure.until:
                raise FailedLookupError(failure.reason, failure.final)
            self._failed.pop(key, None)
            if self._thread is None:
                self._wanted, self._stopping = key, threading.Event()
                self._thread = threading.Thread(
                    target=self._look_up, args=(key, self._stopping), name="schema-registry", daemon=True
                )
                self._thread.start()
            return None

    def wait(self, seconds: float) -> None:
        """Wait for the running lookup, at most some seconds."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    @property
    def health_problem(self) -> str | None:
        """The awaited schema and the reason; None before the first failed attempt."""
        wanted, reason = self._wanted, self._reason
        return None if wanted is None or reason is None else f"{_name(wanted)} is not known yet ({reason})"

    def close(self) -> None:
        """Stop the thread; a registry may hold it up for some time. The cache stays."""
        self._stopping.set()
        self.wait(_CLOSE_SECONDS)
        with self._lock:
            self._thread = self._wanted = self._reason = None

    def _look_up(self, key: Key, stopping: threading.Event) -> None:
        """Ask until the registry knows the key, or fails for good."""
        pause, since = FIRST_PAUSE, time.monotonic()
        unknown_since = logged = None
        while not stopping.is_set():
            now = time.monotonic()
            failure, final = "", False
            try:
                self._end(stopping, key, self._find(key), None)
                if logged is not None:
                    _log.info("%s: answered after %.0f s", self._place, now - since)
                return
            except RegistryOutage as outage:
                self._reason = f"no answer: {outage}"
                sentence = f"no schema registry answers ({outage}): trying again until one does"
            except UnknownSchemaError as unknown:
                unknown_since = unknown_since or now
                self._reason = f"not known: {unknown}"
                sentence = f"{_name(key)} is not known ({unknown}): asking again"
                if now - unknown_since >= self._unknown_seconds:
                    failure = f"the schema registry does not know {_name(key)} ({unknown}): register it, or check "
                    failure += "schema_registry.url"
            except ConnectorError as error:
                failure, final = str(error), True
            except UnusableSchemaError as error:
                failure = f"{_name(key)} cannot be used: {error}"
            except Exception as error:  # an unforeseen error must not end the thread without an answer
                _log.debug("the full traceback", exc_info=error)
                failure = f"{_name(key)} cannot be used: {type(error).__name__}: {error}"
            if failure:
                self._end(stopping, key, None, _Failure(failure, final, time.monotonic() + self._unknown_seconds))
                return
            if logged is None or now - logged >= _AGAIN_SECONDS:
                logged = now
                _log.warning("%s: %s", self._place, sentence)
            stopping.wait(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    def _end(self, stopping: threading.Event, key: Key, found: Found | None, failure: _Failure | None) -> None:
        """Keep an answer or a failure; a lookup that was closed leaves the next one alone."""
        with self._lock:
            if failure is not None:
                self._failed[key] = failure
            elif found is not None:
                self._found[key] = found
            for kept in (self._found, self._failed):
                while len(kept) > MOST_KEPT:
                    kept.popitem(last=False)
            if stopping is self._stopping:
                self._thread = self._wanted = self._reason = None


def _name(key: Hashable) -> str:
    return f"schema id {key}" if isinstance(key, int) else f"the schema of the subject {key}"
