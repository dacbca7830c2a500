"""Refits models on their windows at a place of the stream that the daemon chooses."""

from __future__ import annotations

import logging

from streamkernel.daemon.base.window_refit import refit_sentence, window_refit_of
from streamkernel.daemon.stream.processor import Processor
from streamkernel.estimators.window_refit import WindowRefit

__all__ = ["refit_windows", "windows_of"]

_log = logging.getLogger(__name__)


def windows_of(processor: Processor) -> dict[str, WindowRefit]:
    """Return the models of a processor that are refitted on their windows, by name, the published one first."""
    learners = {processor.name: processor.learner, **processor.challengers.learners}
    found = {name: window_refit_of(learner.model) for name, learner in learners.items()}
    return {name: refit for name, refit in found.items() if refit is not None}


def refit_windows(processor: Processor) -> None:
    """Refit all models of a processor that have a window; a challenger that cannot be refitted is disabled.

    Raises
    ------
    ValueError, NotFiniteError
        Where the published one cannot be refitted, saying why.

    """
    for name, refit in windows_of(processor).items():
        try:
            solved = refit.refit()
        except (Exception, SystemExit) as error:
            if name == processor.name:
                raise
            processor.challengers.disable(name, f"{type(error).__name__}: {error}")
            continue
        _log.info("%s", refit_sentence(refit.last_refit if solved else None, name))
