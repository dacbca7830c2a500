"""Log lines about what is wrong with numbers: the first at once, then one a minute that says how many there were."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["Notices"]

_log = logging.getLogger(__name__)

_PAUSE_SECONDS = 60.0
_SENTENCES = {
    "n_not_finite": "%d predictions were not finite, the last before offset %d: their lines have null",
    "n_losses_not_finite": "%d losses were not finite, the last before offset %d: the metrics leave them out",
    "n_clipped": "%d targets were beyond 1e100, the last before offset %d: they are learned as 1e100 or -1e100",
    "n_ignored_inputs": "%d inputs were ignored, the last before offset %d: limits.max_inputs is reached",
    "n_ignored": "%d records were not learned, the last before offset %d: max_classes is reached",
}


class Notices:
    """Logs predictions and losses that are not finite, and targets that were not taken as they came."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._unlogged = dict.fromkeys(_SENTENCES, 0)
        self._next = dict.fromkeys(_SENTENCES, -math.inf)

    def chunk(self, processed: RecordBatch, offset: int) -> None:
        """Note a chunk that ends at an offset."""
        for name, sentence in _SENTENCES.items():
            count = getattr(processed, name)
            if not count:
                continue
            self._unlogged[name] += count
            now = self._clock()
            if now >= self._next[name]:
                _log.warning(sentence, self._unlogged[name], offset)
                self._unlogged[name], self._next[name] = 0, now + _PAUSE_SECONDS
