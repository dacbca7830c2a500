"""The exceptions that end a run, and that more than one part of the daemon raises or catches."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = [
    "CheckpointError",
    "DaemonError",
    "DirectoryInUseError",
    "OtherFormatError",
    "OtherModelError",
    "UnfitError",
]

_MOST_DIFFERENCES = 20


class DaemonError(Exception):
    """The daemon cannot continue; the message is one sentence for the user."""


class CheckpointError(Exception):
    """A checkpoint cannot be used, or its directory is taken; the message says which, why and what to do."""


class UnfitError(CheckpointError):
    """The checkpoint is sound, but not for this configuration, these versions or this machine.

    An older one would fit no better, so none is tried: to pass over it would throw its records away.
    """


class OtherFormatError(UnfitError):
    """The checkpoint or its state is sound, but has another version than this streamkernel reads."""


class OtherModelError(UnfitError):
    """The checkpoint is sound, but it holds another model than the configuration.

    Attributes
    ----------
    differences
        A phrase on each.
    ways
        What to do, as phrases with commas between; empty where the code that catches it knows.

    Examples
    --------
    >>> print(OtherModelError(["l2: 0.1, and 0.2 here"], "change it back"))
    the checkpoint holds another model than the configuration: l2: 0.1, and 0.2 here: change it back

    """

    def __init__(self, differences: Sequence[str], ways: str = "") -> None:
        self.differences = list(differences)
        self.ways = ways
        super().__init__(self.sentence() + (f": {ways}" if ways else ""))

    def sentence(self) -> str:
        """Return the message without the ways."""
        shown, n_more = self.differences[:_MOST_DIFFERENCES], len(self.differences) - _MOST_DIFFERENCES
        more = [f"and {n_more:,} more"] if n_more > 0 else []
        return f"the checkpoint holds another model than the configuration: {'; '.join([*shown, *more])}"


class DirectoryInUseError(CheckpointError):
    """Another live process holds the directory.

    Attributes
    ----------
    holder
        Which one, such as ``"process 17"`` or ``"process 17 on backup"``.

    """

    def __init__(self, message: str, holder: str) -> None:
        super().__init__(message)
        self.holder = holder
