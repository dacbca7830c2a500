"""The validated configuration with its model and sources, as the other parts of the daemon take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamkernel.connectors.ports import Source
from streamkernel.daemon.base.model import Model, Task
from streamkernel.daemon.config.schema import Config, ReportName
from streamkernel.daemon.config.secrets import Redactor

__all__ = ["Plan"]


@dataclass(frozen=True)
class Plan:
    """A validated configuration, with the model and the sources it describes."""

    path: Path  # the file
    config: Config  # its settings
    raw: Mapping[str, Any]  # the file as it was written, variables unreplaced: what may be logged, stored and compared
    source: Source  # of records, unopened
    model: Model  # before its first record; of several, the one that the configuration publishes
    task: Task  # what the model does
    report: tuple[ReportName, ...]  # the metrics to report
    redact: Redactor  # takes the secrets of the configuration out of a text
    labels: Source | None = None  # the source of late labels, unopened; None where there are none
    warm: Source | None = None  # the source that is learned first, unopened; None where there is none
    models: Mapping[str, Model] = field(default_factory=dict)  # several, by their names; empty where there is one

    @property
    def sources(self) -> dict[str, Source]:
        """The sources, by their section in the configuration."""
        sections = {"source": self.source, "labels.source": self.labels, "warm_start.source": self.warm}
        return {section: source for section, source in sections.items() if source is not None}

    @property
    def published(self) -> str:
        """The name of the model that the configuration publishes; empty where there is one without."""
        return self.config.publish or next(iter(self.models)) if self.models else ""
