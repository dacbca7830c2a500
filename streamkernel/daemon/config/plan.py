"""The validated configuration with its model and sources, as the other parts of the daemon take it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
    sources: Mapping[str, Source]  # unopened, by the key of their section
    models: Mapping[str, Model]  # before their first record, by their names; one without a name has an empty one
    published: str  # the name of the model that the configuration publishes
    task: Task  # what the models do
    report: tuple[ReportName, ...]  # the metrics to report
    redact: Redactor  # takes the secrets of the configuration out of a text

    @property
    def source(self) -> Source:
        """The source of the records."""
        return self.sources["source"]

    @property
    def model(self) -> Model:
        """The model that the configuration publishes."""
        return self.models[self.published]
