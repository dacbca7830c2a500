"""The lifecycle of a run, as the process that started the daemon follows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.stream.stop import StopSignals

__all__ = ["LifecycleListener"]


class LifecycleListener:
    """A listener to the lifecycle of a run; this one belongs to a daemon outside any group, and does nothing.

    Attributes
    ----------
    alone
        Whether the terminal is the daemon's alone, and its metrics are not for the process that started it only.

    """

    alone = True

    def signals(self) -> StopSignals:
        """Return what says when to stop."""
        return StopSignals()

    def take(self, store: CheckpointStore, stopped: Callable[[], bool]) -> None:  # noqa: ARG002
        """Take the checkpoint directory.

        Raises
        ------
        CheckpointError
            Where another daemon holds it.

        """
        store.lock()

    def serving(self, host: str, port: int) -> None:
        """Note where the metrics are served."""

    def reading(self, record: int) -> None:
        """Note that records are read, and from which one on."""

    def saved(self, offsets: Mapping[int, int]) -> None:
        """Note that all before these offsets is saved, by partition."""
