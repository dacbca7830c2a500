"""What a configuration asks for, as the other parts of the daemon take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from connectors.ports import Source
from streamkernel.daemon.base.model import Model, Task
from streamkernel.daemon.settings.config import Config, ReportName
from streamkernel.daemon.settings.secrets import Redactor

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """What a configuration file asks for.

    Attributes
    ----------
    path
        The file.
    config
        Its settings.
    raw
        The file as it was written, variables unreplaced: what may be logged, stored and compared.
    source, labels
        The sources of records and of late labels, unopened; None where there are no late labels.
    model
        The model, before its first record.
    task
        What the model does.
    report
        The metrics to report.
    redact
        Takes the secrets of the configuration out of a text.

    """

    path: Path
    config: Config
    raw: Mapping[str, Any]
    source: Source
    model: Model
    task: Task
    report: tuple[ReportName, ...]
    redact: Redactor
    labels: Source | None = None
