"""Log lines to standard error, as text for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import streamkernel
from streamkernel.daemon.config.schema import LogConfig
from streamkernel.daemon.config.secrets import Redactor
from streamkernel.daemon.monitoring.visible import visible

__all__ = ["start_logging"]

_PACKAGE = Path(streamkernel.__file__).parent


class _Formatter(logging.Formatter):
    """One line a record, without the secrets of the configuration."""

    def __init__(self, redact: Redactor, as_json: bool, partition: int | None) -> None:
        super().__init__()
        self._redact = redact
        self._as_json = as_json
        self._partition = partition

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = self._redact(record.getMessage())
        trace = self._redact(self.formatException(record.exc_info)) if record.exc_info else ""
        if self._as_json:
            line: dict[str, Any] = {"time": time, "level": record.levelname.lower(), "logger": record.name}
            line["message"] = message
            if self._partition is not None:
                line["partition"] = self._partition
            return visible(json.dumps({**line, "exception": trace} if trace else line, ensure_ascii=False))
        where = "" if self._partition is None else f"partition {self._partition}: "
        text = f"{time} {record.levelname.lower():7} {where}{visible(' '.join(message.split()))}"
        return f"{text}\n{visible(trace, lines=True)}" if trace else text


class _StandardError(logging.Handler):
    """Writes to what standard error is at the moment: a progress bar puts itself in between while it runs."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def _warning_text(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,  # noqa: ARG001
) -> str:
    """Return a warning for the log: its sentence, and where it arose if that is no code of ours; no line of code."""
    if Path(filename).is_relative_to(_PACKAGE):
        return str(message)
    return f"{filename}:{lineno}: {category.__name__}: {message}"


def start_logging(settings: LogConfig, redact: Redactor, partition: int | None = None) -> None:
    """Send all log records, and Python's warnings, to standard error, without the secrets that `redact` takes out.

    In the daemon of one partition, every line says which.
    """
    handler = _StandardError()
    handler.setFormatter(_Formatter(redact, settings.format == "json", partition))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    logging.captureWarnings(True)
    warnings.formatwarning = _warning_text
