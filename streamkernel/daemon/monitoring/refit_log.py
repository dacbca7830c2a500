"""Log lines about models that are refitted on their windows."""

from __future__ import annotations

import logging

from streamkernel.daemon.base.window_refit import refit_sentence
from streamkernel.daemon.stream.processor import Processor
from streamkernel.daemon.stream.refit import windows_of

__all__ = ["RefitLog"]

_log = logging.getLogger(__name__)


class RefitLog:
    """Logs that models were refitted; of several refits of a model within one chunk of records, the last.

    Parameters
    ----------
    processor
        Has the models.

    """

    def __init__(self, processor: Processor) -> None:
        self._processor = processor
        self._seen = {name: refit.last_refit for name, refit in windows_of(processor).items()}

    def chunk(self) -> None:
        """Log the refits during a chunk that is done."""
        if not self._seen:  # a model that replaces another one is of the same class
            return
        for name, refit in windows_of(self._processor).items():
            # Of a model that was read again, nothing is known of the last one.
            if refit.last_refit is not None and refit.last_refit is not self._seen.get(name):
                _log.info("%s", refit_sentence(refit.last_refit, name))
            self._seen[name] = refit.last_refit

    @property
    def at_work(self) -> bool:
        """Whether one of the models is being refitted; any thread may ask."""
        return any(refit.refitting for refit in windows_of(self._processor).values())
