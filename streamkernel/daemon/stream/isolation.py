"""Isolated retry: a record that seems to have killed the process is learned in a child, by a copy of the model."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from streamkernel.daemon.base.parent_death import die_with
from streamkernel.daemon.stream.learner import Learner
from streamkernel.daemon.stream.record_batch import RecordBatch

__all__ = ["DEATHS_BEFORE_ISOLATION", "kills"]

DEATHS_BEFORE_ISOLATION = 3

_log = logging.getLogger(__name__)

# An operator, a supervisor or the out-of-memory killer ends a process by these: that says nothing about the record.
_FROM_OUTSIDE = frozenset(-number for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP))


def kills(learner: Learner, rows: Sequence[tuple[Mapping[str, Any], Any]], stopped: Callable[[], bool]) -> bool:
    """Return whether learning a record makes a process die by itself.

    Parameters
    ----------
    learner
        The model as it is before the record; it is copied, not changed.
    rows
        What the model is shown of the record: inputs and target, as often as it is shown any.
    stopped
        Asked now and then: True ends the retry without a result.

    """
    context = multiprocessing.get_context("spawn")  # a fork would share the locks of threads it does not have
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_attempt, args=(theirs, os.getpid(), learner, rows), daemon=True)
    try:
        child.start()
    except Exception as error:  # a model that cannot be pickled cannot be tried
        _log.warning("a record that may have killed the process cannot be tried in a child process: %s", error)
        return False
    theirs.close()
    while child.is_alive() and not stopped():
        child.join(0.1)
    if child.is_alive():
        child.kill()
        child.join()
        return False
    # Without the message it died on its way to the record.
    reached = ours.poll()
    return reached and child.exitcode not in (0, None) and child.exitcode not in _FROM_OUTSIDE


def _attempt(
    connection: Connection, parent: int, learner: Learner, rows: Sequence[tuple[Mapping[str, Any], Any]]
) -> None:
    die_with(parent)  # the record may keep it busy for ever
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection.send(True)
    try:
        learner.advance(RecordBatch(inputs=[x for x, _ in rows], targets=[y for _, y in rows]))
    except MemoryError:
        return  # that the machine is short of memory says nothing about the record
    except Exception:
        sys.exit(1)  # what a learner does not bear ends the daemon as well
