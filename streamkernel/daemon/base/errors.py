"""The exceptions that end a run, and that more than one part of the daemon raises or catches."""

from __future__ import annotations

__all__ = ["CheckpointError", "DaemonError", "DirectoryInUseError", "NewerFormatError", "UnfitError"]


class DaemonError(Exception):
    """The daemon cannot go on; the message is one sentence for the user."""


class CheckpointError(Exception):
    """A checkpoint cannot be used, or its directory is taken; the message says which, why and what to do."""


class UnfitError(CheckpointError):
    """The checkpoint is sound, but not for this configuration, these versions or this machine.

    An older one would fit no better, so none is tried: to pass over it would throw its records away.
    """


class NewerFormatError(UnfitError):
    """The checkpoint is sound, but a newer version of streamkernel wrote it."""


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
