"""Log lines about a running loop: numbers that are wrong, at most one line a minute of each kind, and refits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from streamkernel.daemon.base.once_per_minute import OncePerMinute
from streamkernel.daemon.base.window_refit import refit_sentence
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["Notices"]

_log = logging.getLogger(__name__)

_SENTENCES = {
    "n_not_finite": "%d predictions were not finite, the last before offset %d: their lines have null",
    "n_losses_not_finite": "%d losses were not finite, the last before offset %d: the metrics leave them out",
    "n_clipped": "%d targets were beyond 1e100, the last before offset %d: they are learned as 1e100 or -1e100",
    "n_ignored_inputs": "%d inputs were ignored, the last before offset %d: limits.max_inputs is reached",
    "n_ignored": "%d records were not learned, the last before offset %d: max_classes is reached",
}


class Notices:
    """Logs predictions and losses that are not finite, targets and inputs not learned as they came, and refits.

    Parameters
    ----------
    processor
        Has the models.
    clock
        Gives seconds, and never goes back.

    """

    def __init__(self, processor: Processor, clock: Callable[[], float] = time.monotonic) -> None:
        self._processor = processor
        self._minute = OncePerMinute(clock)
        self._refits = {name: refit.last_refit for name, refit in processor.windows.items()}

    def chunk(self, processed: RecordBatch, offset: int) -> None:
        """Note a chunk that ends at an offset; of several refits of a model within it, the last."""
        for name, sentence in _SENTENCES.items():
            if (count := getattr(processed, name)) and (unlogged := self._minute.due(name, count)):
                _log.warning(sentence, unlogged, offset)
        if not self._refits:  # a model that replaces another one is of the same class
            return
        for name, refit in self._processor.windows.items():
            # A model that was read again does not know its last refit.
            if refit.last_refit is not None and refit.last_refit is not self._refits.get(name):
                _log.info("%s", refit_sentence(refit.last_refit, name))
            self._refits[name] = refit.last_refit

    @property
    def refitting(self) -> bool:
        """Whether one of the models is refitted right now; any thread may ask."""
        return any(refit.refitting for refit in self._processor.windows.values())
