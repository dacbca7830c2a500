"""Looks things up in a schema registry on a thread of its own, for as long as the registry does not answer."""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, Protocol, TypeVar

from streamkernel.connectors.ports import ConnectorError
from streamkernel.connectors.registry.client import RegistryOutage, UnknownSchemaError
from streamkernel.connectors.registry.schemas import UnusableSchemaError

__all__ = ["FailedLookupError", "RegistryLookup"]

_log = logging.getLogger(__name__)

MOST_KEPT, MOST_CHARACTERS = 1000, 2**23
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
_AGAIN_SECONDS = 60.0
_CLOSE_SECONDS = 1.0


class FailedLookupError(Exception):
    """What was looked up is not there, or of no use; the message is a phrase that says why.

    Attributes
    ----------
    final
        Whether the registry refuses everything, and not this alone.

    """

    def __init__(self, reason: str, final: bool) -> None:
        super().__init__(reason)
        self.final = final


class Sized(Protocol):
    """What is found, with the memory it takes."""

    @property
    def size(self) -> int:
        """About how many characters of schema it is made of."""


Key = TypeVar("Key", bound=Hashable)
Found = TypeVar("Found", bound=Sized)


class _Failure(NamedTuple):
    reason: str
    final: bool
    until: float


class RegistryLookup(Generic[Key, Found]):
    """A bounded cache of what a registry has, filled on a thread that outlasts its outages.

    Parameters
    ----------
    place
        What a log line begins with.
    find
        Asks the registry, on the thread; raises as `streamkernel.connectors.registry.client.RegistryClient`, and
        `UnusableSchemaError`.
    unknown_seconds
        How long to ask again for what the registry does not know. A failure is kept as long.
    clock
        Gives seconds, and never goes back.

    """

    def __init__(
        self,
        place: str,
        find: Callable[[Key], Found],
        unknown_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._place = place
        self._find = find
        self._unknown_seconds = unknown_seconds
        self._clock = clock
        self._changed = threading.Condition()
        self._found: OrderedDict[Key, Found] = OrderedDict()
        self._failed: OrderedDict[Key, _Failure] = OrderedDict()
        self._characters = 0
        self._wanted: Key | None = None
        self._reason: str | None = None
        self._told = 0.0
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()

    def get(self, key: Key) -> Found | None:
        """Return what a key stands for, or None and have it looked up; raises `FailedLookupError`."""
        with self._changed:
            found = self._found.get(key)
            if found is not None:
                self._found.move_to_end(key)
                return found
            failure = self._failed.get(key)
            if failure is not None and self._clock() < failure.until:
                raise FailedLookupError(failure.reason, failure.final)
            self._failed.pop(key, None)
            self._wanted = key
            if self._thread is None:
                self._stopping = threading.Event()
                self._thread = threading.Thread(
                    target=self._run, args=(self._stopping,), name="schema-registry", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
            return None

    def wait(self, seconds: float) -> None:
        """Wait until what was asked for last is found or has failed, but no longer than some seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self._wanted is None, seconds)

    @property
    def health_problem(self) -> str | None:
        """What is waited for, and why; None where nothing is, or the first answer is still to come."""
        wanted, reason = self._wanted, self._reason
        return None if wanted is None or reason is None else f"{self._name(wanted)} is not known yet ({reason})"

    def close(self) -> None:
        """End the thread, which a registry may hold up for some time; what was found stays."""
        self._stopping.set()
        with self._changed:
            thread, self._thread, self._wanted = self._thread, None, None
            self._changed.notify_all()
        if thread is not None:
            thread.join(_CLOSE_SECONDS)

    def _run(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            with self._changed:
                self._changed.wait_for(lambda: stopping.is_set() or self._wanted is not None)
                wanted = self._wanted
            if wanted is None or stopping.is_set():
                return
            self._look_up(wanted, stopping)

    def _look_up(self, key: Key, stopping: threading.Event) -> None:
        """Ask until the registry knows the key, or it is clear that it will not."""
        pause, since = FIRST_PAUSE, self._clock()
        unknown_since: float | None = None
        while not stopping.is_set():
            try:
                found = self._find(key)
            except RegistryOutage as outage:
                self._note(
                    f"no answer: {outage}", f"no schema registry answers ({outage}): trying again until one does"
                )
            except UnknownSchemaError as unknown:
                unknown_since = self._clock() if unknown_since is None else unknown_since
                if self._clock() - unknown_since >= self._unknown_seconds:
                    self._fail(
                        key,
                        f"the schema registry does not know {self._name(key)} ({unknown}): register it, or check "
                        "schema_registry.url",
                        False,
                    )
                    return
                self._note(f"not known: {unknown}", f"{self._name(key)} is not known ({unknown}): asking again")
            except UnusableSchemaError as error:
                self._fail(key, f"{self._name(key)} cannot be used: {error}", False)
                return
            except ConnectorError as error:
                self._fail(key, str(error), True)
                return
            except Exception as error:  # whatever it is, nobody must wait for ever for a thread that has died
                _log.debug("the full traceback", exc_info=error)
                self._fail(key, f"{self._name(key)} cannot be used: {type(error).__name__}: {error}", False)
                return
            else:
                if self._reason is not None:
                    _log.info("%s: answered after %.0f s", self._place, self._clock() - since)
                self._keep(key, found)
                return
            stopping.wait(pause)
            pause = min(LONGEST_PAUSE, 2 * pause)

    def _name(self, key: Key) -> str:
        return f"schema id {key}" if isinstance(key, int) else f"the schema of the subject {key}"

    def _note(self, reason: str, sentence: str) -> None:
        if self._reason is None or self._clock() - self._told >= _AGAIN_SECONDS:
            self._told = self._clock()
            _log.warning("%s: %s", self._place, sentence)
        self._reason = reason

    def _keep(self, key: Key, found: Found) -> None:
        with self._changed:
            self._found[key] = found
            self._characters += found.size
            while len(self._found) > 1 and (len(self._found) > MOST_KEPT or self._characters > MOST_CHARACTERS):
                self._characters -= self._found.popitem(last=False)[1].size
            self._done(key)

    def _fail(self, key: Key, reason: str, final: bool) -> None:
        with self._changed:
            self._failed[key] = _Failure(reason, final, self._clock() + self._unknown_seconds)
            while len(self._failed) > MOST_KEPT:
                self._failed.popitem(last=False)
            self._done(key)

    def _done(self, key: Key) -> None:
        self._reason = None
        if self._wanted == key:
            self._wanted = None
        self._changed.notify_all()
