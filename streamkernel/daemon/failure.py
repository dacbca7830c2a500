"""Errors as sentences for the user."""

from __future__ import annotations

from streamkernel.connectors.os_reason import reason_and_file
from streamkernel.connectors.ports import ConnectorError
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.config.problems import ConfigError
from streamkernel.finite import NotFiniteError

__all__ = ["sentence"]


def sentence(error: Exception) -> str:
    """Return what failed, as one sentence.

    Examples
    --------
    >>> sentence(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv: No such file or directory'
    >>> sentence(KeyError("y"))
    "unexpected KeyError: 'y'"

    """
    if isinstance(error, ConfigError):
        return "; ".join(error.lines)
    if isinstance(error, OSError):
        return reason_and_file(error)
    ours = (ConnectorError, CheckpointError, DaemonError, NotFiniteError)
    expected = isinstance(error, ours) or type(error).__module__.startswith("streamkernel.daemon.")
    return str(error) if expected else f"unexpected {type(error).__name__}: {error}"
