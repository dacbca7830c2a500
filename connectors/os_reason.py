"""The reason of an error of the operating system, in words."""

from __future__ import annotations

import os

__all__ = ["os_reason", "reason_and_file"]


def os_reason(error: OSError) -> str:
    """Return why an operation failed, without the number of the error and the name of the file.

    Libraries raise such errors with a message alone, or with nothing at all; then `strerror` is None.

    Examples
    --------
    >>> os_reason(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'No such file or directory'
    >>> os_reason(OSError("the stream is closed")), os_reason(TimeoutError())
    ('the stream is closed', 'TimeoutError')

    """
    if error.strerror:
        return str(error.strerror)
    if error.errno is not None:
        return os.strerror(error.errno)
    # The text of an error of TLS with a message alone is that of a tuple.
    return str(error.args[0] if len(error.args) == 1 else error) or type(error).__name__


def reason_and_file(error: OSError) -> str:
    """Return why an operation failed, after the name of the file where the error has one.

    Examples
    --------
    >>> reason_and_file(FileNotFoundError(2, "No such file or directory", "a.csv"))
    'a.csv: No such file or directory'

    """
    return f"{error.filename}: {os_reason(error)}" if error.filename else os_reason(error)
