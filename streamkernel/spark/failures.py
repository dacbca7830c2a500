"""What Spark raises, as one sentence: the library's own exceptions, those of functions on executors, and Spark's."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import TypeVar

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from streamkernel.finite import NotFiniteError

__all__ = ["ExecutorError", "ReportedError", "SparkJobError", "failure_of", "reported"]

T = TypeVar("T")

_KINDS: dict[str, type[Exception]] = {"ValueError": ValueError, "NotFiniteError": NotFiniteError}
#: The line of a `ReportedError` in a traceback.
_REPORTED = re.compile(r"^[\w.]*ReportedError: (\{.*\})$", re.MULTILINE)
_HEADER = "Traceback (most recent call last):\n"
_FRAME = re.compile(r'^  File "(.*)", line (\d+), in (.+)$', re.MULTILINE)
#: The end of a message of Java's: the stack, the state of a query, the place in SQL, the plan.
_END = re.compile(
    r"\n\nJVM stacktrace:|\n\s+at |\nCaused by: |\nDriver stacktrace:|\n=== Streaming Query ===|\n== SQL"
    r"|;?\s+SQLSTATE: "
)
#: What comes before it: the call, the query, the task, the class of the exception, Spark's name of the condition.
_BEGINNING = re.compile(
    r"An error occurred while calling .*?\n: "
    r"|Query \S.*? terminated with exception: "
    r"|Job aborted due to stage failure: .*? most recent failure: Lost task .*?\(TID \d+\) \(.*?\): "
    r"|(?:[a-z_]\w*\.)+[A-Z]\w*(?:\$\w+)*: "
    r"|\[[A-Z][A-Z0-9_.]*\] ",
    re.DOTALL,
)
_CAUSE = re.compile(r"^Caused by: (?:[a-z_]\w*\.)+[A-Z]\w*(?:\$\w+)*: (.*)$", re.MULTILINE)


class SparkJobError(RuntimeError):
    """Spark could not do a job; the message is one sentence that says why."""


class ExecutorError(SparkJobError):
    """A function on an executor, such as a UDF of a data frame, raised what is no exception of the library."""


class ReportedError(Exception):
    """An exception of the library on its way from an executor: its message is a line of JSON, which a driver reads."""


def reported(batches: Iterable[T]) -> Iterator[T]:
    """Give what an iterator of an executor gives, and raise its ValueError or NotFiniteError so that a driver knows it.

    All that a driver has of an exception is the text of its traceback.

    Raises
    ------
    ReportedError
        In the place of that exception.

    """
    try:
        yield from batches
    except (ValueError, NotFiniteError) as error:
        kind = "NotFiniteError" if isinstance(error, NotFiniteError) else "ValueError"
        raise ReportedError(json.dumps({"kind": kind, "text": str(error)})) from error


def failure_of(error: BaseException) -> Exception:
    """Give what went wrong in a job of Spark's, with one sentence as its message.

    Parameters
    ----------
    error
        What a call of Spark's raised on the driver, or any other exception.

    Returns
    -------
    ValueError or NotFiniteError with its full message, where an executor raised it in the library's own code; an
    `ExecutorError` that says kind and message, where any other code on an executor raised it; a `SparkJobError` for
    what Java raised, with the file or the reason that Spark names and without a stack trace; anything else as it is,
    so that it may be called with what it gave.

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
    if not isinstance(error, PySparkException | Py4JError):
        return error if isinstance(error, Exception) else SparkJobError(f"{type(error).__name__} ended it: {error}")
    try:
        text = str(error)
    except Exception:  # of Java's only a reference is known, and that of a process that has ended
        return SparkJobError("Spark's Java process has ended: start a new session")
    if lines := _REPORTED.findall(text):
        report = json.loads(lines[-1])
        return _KINDS[report["kind"]](report["text"])
    if (start := text.rfind(_HEADER)) >= 0:
        return _of_traceback(text[start + len(_HEADER) :])
    if isinstance(error, Py4JError) and not isinstance(error, Py4JJavaError):
        return SparkJobError(f"Spark's Java process does not answer: {_one_line(text)}")
    return SparkJobError(_of_java(text))


def _of_traceback(text: str) -> SparkJobError:
    """The exception at the end of a traceback, which begins with the frames."""
    lines = text.splitlines()
    n_frames = next((n for n, line in enumerate(lines) if not line.startswith("  ")), len(lines))
    kind, _, message = "\n".join(lines[n_frames:]).partition(": ")
    raised = kind.strip().rpartition(".")[-1]
    if raised == "Py4JJavaError":  # of a function that the driver calls, which met one of Java's
        return SparkJobError(_of_java(message))
    message = re.split(r"\n\s+at |\n\nJVM stacktrace:", message)[0]
    where = "a function"
    if frames := _FRAME.findall("\n".join(lines[:n_frames])):
        file, line, name = frames[-1]
        where = f"{name} (line {line} of {PurePath(file).name})"
    return ExecutorError(_one_line(f"{where} raised {raised} on an executor" + (f": {message}" if message else "")))


def _of_java(text: str) -> str:
    """The message of an exception of Java's, and after it the innermost cause where that says more."""
    message = text
    while found := _BEGINNING.match(message):
        message = message[found.end() :]
    message = _one_line(_END.split(message)[0])
    causes = [_one_line(_END.split(cause)[0]) for cause in _CAUSE.findall(text)]
    if causes and causes[-1] and causes[-1] not in message:
        message = f"{message.rstrip('.')}: {causes[-1]}"
    return message or "Spark gives no reason"


def _one_line(text: str) -> str:
    return " ".join(text.split())
