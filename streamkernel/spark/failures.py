"""What Spark raises, as one sentence: errors of the library, of functions on executors, and of Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException

from streamkernel.daemon.base.errors import DaemonError

__all__ = ["ExecutorError", "SparkJobError", "failure_of"]

_TRACEBACK = "Traceback (most recent call last):\n"
#: The name of Spark's condition and its SQL state, which say nothing to a user.
_CODES = re.compile(r"^\[[A-Z][A-Z0-9_.]*\] |;?\s+SQLSTATE: .*")


class SparkJobError(DaemonError):
    """Spark could not do a job; the message is one sentence that says why."""


class ExecutorError(SparkJobError):
    """A function on an executor, such as a UDF of a data frame, raised an exception."""


def failure_of(error: BaseException) -> Exception:
    """Return an exception with one sentence as its message, for whatever a call of Spark raised on the driver.

    Returns
    -------
    An `ExecutorError` with kind and message of an exception on an executor. A `SparkJobError` with the file or the
    reason that Spark names. Any other exception unchanged, so this may be called with its own result.

    Examples
    --------
    Its use is::

        try:
            query.awaitTermination()
        except Exception as error:
            raise failure_of(error) from error

    >>> failure_of(KeyError("a"))
    KeyError('a')

    """
    cut = type(error) is Py4JError and "Trace:" not in str(error)  # Java died within its answer
    if cut or isinstance(error, Py4JNetworkError | ConnectionError):
        return _ended()
    if not isinstance(error, PySparkException | Py4JError):
        return error if isinstance(error, Exception) else SparkJobError(f"{type(error).__name__} ended it: {error}")
    java = getattr(error, "_origin", None) or getattr(error, "java_exception", None)
    try:
        messages = [str(error)] if java is None else list(_messages(java)) or ["Spark gives no reason"]
    except (Py4JError, OSError):
        return _ended()
    if _TRACEBACK in messages[-1]:
        return _of_traceback(messages[-1])
    first, last = (_CODES.sub("", one.strip().splitlines()[0]) for one in (messages[0], messages[-1]))
    return SparkJobError(first if last in first else f"{first.rstrip('.')}: {last}")


def _messages(java: Any) -> Iterator[str]:
    """Yield the messages of a Java exception and its causes, without those that only repeat their cause."""
    while java is not None:
        cause, text = java.getCause(), java.getMessage()
        deeper = cause.getMessage() if cause is not None else None
        if text and not (deeper and deeper in text):
            yield text
        java = cause


def _of_traceback(text: str) -> ExecutorError:
    """Return the exception at the end of a traceback, which begins with its frames."""
    lines = dropwhile(lambda line: line.startswith("  "), text.rpartition(_TRACEBACK)[2].splitlines())
    kind, _, why = _CODES.sub("", " ".join(" ".join(lines).split())).partition(": ")
    return ExecutorError(f"{kind.rpartition('.')[-1]} on an executor" + (f": {why}" if why else ""))


def _ended() -> SparkJobError:
    return SparkJobError(
        "Spark's Java process has ended: killed, or out of memory (spark.driver.memory). Start again in a new session; "
        "learning continues after the last checkpoint"
    )
