"""Log lines to standard error, as text for people or as JSON for machines."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime

from streamkernel.daemon.settings.config import Log
from streamkernel.daemon.settings.document import Redactor

__all__ = ["start_logging"]


class _Formatter(logging.Formatter):
    """One line a record, without what the configuration took from the environment."""

    def __init__(self, redact: Redactor, as_json: bool) -> None:
        super().__init__()
        self._redact = redact
        self._as_json = as_json

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        message = self._redact(record.getMessage())
        trace = self._redact(self.formatException(record.exc_info)) if record.exc_info else ""
        if self._as_json:
            line = {"time": time, "level": record.levelname.lower(), "logger": record.name, "message": message}
            return json.dumps({**line, "exception": trace} if trace else line, ensure_ascii=False)
        text = f"{time} {record.levelname.lower():7} {' '.join(message.split())}"
        return f"{text}\n{trace}" if trace else text


class _StandardError(logging.Handler):
    """Writes to what standard error is at the moment: a progress bar puts itself in between while it runs."""

    def emit(self, record: logging.LogRecord) -> None:
        try:
            print(self.format(record), file=sys.stderr, flush=True)
        except Exception:
            self.handleError(record)


def start_logging(settings: Log, redact: Redactor) -> None:
    """Send all log records, and Python's warnings, to standard error.

    Parameters
    ----------
    settings
        Level and format.
    redact
        Takes the values of environment variables out of a line.

    """
    handler = _StandardError()
    handler.setFormatter(_Formatter(redact, settings.format == "json"))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(settings.level.upper())
    logging.captureWarnings(True)
