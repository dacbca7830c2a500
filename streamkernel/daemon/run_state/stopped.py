"""The checkpoint directory of a run that is stopped, for commands that write into its newest checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import TypeVar

from streamkernel.daemon.base.errors import CheckpointError, DaemonError, DirectoryInUseError
from streamkernel.daemon.checkpoints.file import Checkpoint
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.run_state.header import check_header

__all__ = ["lock_stopped", "newest_of"]

T = TypeVar("T")


def lock_stopped(store: CheckpointStore, command: str, stack: ExitStack) -> CheckpointStore:
    """Lock a directory until the stack ends, and return it; a DaemonError, which names the command, where it runs."""
    try:
        store.lock()
    except DirectoryInUseError as error:
        raise DaemonError(
            f"{store.directory}: in use by the daemon ({error.holder}): stop it, {command}, and start it again"
        ) from None
    stack.callback(store.close)
    return store


def newest_of(store: CheckpointStore, use: Callable[[Checkpoint], T], hint: str = "") -> T:
    """Return what `use` makes of the newest checkpoint; a CheckpointError, with a hint after it, where there is none.

    Raises
    ------
    CheckpointError
        Where there is none, or it cannot be used.

    """

    def checked(checkpoint: Checkpoint) -> T:
        check_header(checkpoint.header)
        return use(checkpoint)

    found = store.restore(checked)
    if found is None:
        raise CheckpointError(f"{store.directory}: holds no checkpoint{hint}")
    return found
