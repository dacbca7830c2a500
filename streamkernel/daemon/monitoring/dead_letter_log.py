"""Log lines on dead letters: the first of each reason at once, then one a minute, and at the end all by reason."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from streamkernel.connectors.ports import Source, at_offset
from streamkernel.daemon.monitoring.dead_letter_advice import explained
from streamkernel.daemon.monitoring.status.last_dead_letters import LastDeadLetters
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["DeadLetterLog", "place_of"]

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 60.0
_WHAT = {"source": "records", "labels.source": "labels", "warm_start.source": "records of the warm start"}


def place_of(letter: Mapping[str, Any], source: Source | None) -> str:
    """Return where the record of a dead letter is, as its source says it."""
    where = letter["position"]
    return (at_offset if source is None else source.place)(where["partition"], where["offset"])


@dataclass
class _Reason:
    """The dead letters of one reason, of records or of labels, and the detail of the first."""

    first: str
    count: int = 0
    unlogged: int = 0
    next_line: float = -math.inf


class DeadLetterLog:
    """Logs dead letters at a bounded rate, and sums them up with what to do.

    Parameters
    ----------
    kinds
        The kind of the source of each section: ``"source"``, ``"labels.source"``, ``"warm_start.source"``.
    sources
        The sources themselves, which know the line of an offset.
    clock
        Gives seconds, and never goes back.
    refused
        What to do about records that the model refuses; empty: what it says of them tells.
    last
        Keeps the last ones for the status page; None: nobody does.

    """

    def __init__(
        self,
        kinds: dict[str, str],
        clock: Callable[[], float] = time.monotonic,
        refused: str = "",
        last: LastDeadLetters | None = None,
        sources: Mapping[str, Source] | None = None,
    ) -> None:
        self._last = last
        self._kinds = kinds
        self._sources = sources or {}
        self._refused = refused
        self._clock = clock
        self._reasons: dict[tuple[str, str], _Reason] = {}

    def chunk(self, done: RecordBatch) -> None:
        """Note the dead letters of a chunk."""
        if self._last is not None:
            self._last.add(done.letters)
        for letter in done.letters:
            where, reason = letter["position"], letter["reason"]
            section = f"{where['source']}.source" if "source" in where else "source"
            found = self._reasons.setdefault((section, reason), _Reason(letter["detail"]))
            found.count += 1
            found.unlogged += 1
            if self._clock() >= found.next_line:
                self._log_line(found, section, letter)

    def _log_line(self, found: _Reason, section: str, letter: Mapping[str, Any]) -> None:
        what, detail = _WHAT[section], letter["detail"]
        if letter["reason"] == "refused" and self._refused:
            detail = f"{detail}: {self._refused}"
        place = place_of(letter, self._sources.get(section))
        if found.unlogged == 1:
            _log.warning("a dead letter of the %s at %s: %s: %s", what, place, letter["reason"], detail)
        else:
            _log.warning(
                "%d dead letters of the %s, the last at %s: %s: %s",
                *(found.unlogged, what, place, letter["reason"], detail),
            )
        found.unlogged, found.next_line = 0, self._clock() + _PAUSE_SECONDS

    def summarize(self, advice: str = "") -> None:
        """Log how many dead letters there were of each reason, why, and what to do; then the advice, if any."""
        for (section, reason), found in sorted(self._reasons.items(), key=lambda item: -item[1].count):
            advised = explained(reason, section, self._kinds.get(section, ""), found.first)
            if reason == "refused" and self._refused:
                advised = f"{found.first}: {self._refused}"
            letters = "dead letter" if found.count == 1 else "dead letters"
            _log.warning("%d %s of the %s: %s: %s", found.count, letters, _WHAT[section], reason, advised)
        if self._reasons and advice:
            _log.info("%s", advice)
