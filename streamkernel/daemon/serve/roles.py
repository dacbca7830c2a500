"""What a configuration makes of the service: how records and labels are read, and which of them go into a journal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any

from streamkernel.connectors.ports import Fault, Position, Record, Source
from streamkernel.daemon.assembly.connectors import make_source
from streamkernel.daemon.assembly.plan import plan_of
from streamkernel.daemon.components.group_mode import group_of, partition_document
from streamkernel.daemon.components.late_labels import join_key, label_source
from streamkernel.daemon.components.predict_mode import with_served_model
from streamkernel.daemon.config.document import document_of
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import ConfigError, Problem
from streamkernel.daemon.config.schema import JournalSourceConfig, JsonlSourceConfig, ServeConfig, SourceConfig
from streamkernel.daemon.config.sources import is_list
from streamkernel.daemon.labels.keys import key_of

__all__ = ["Role", "ServicePlan", "service_plan"]

_NOWHERE = Position("http", 0, 0)


@dataclass(frozen=True)
class Role:
    """How objects of one kind are read, as the source does that a run learns from, and where they go.

    Attributes
    ----------
    section
        The section of their source.
    settings
        What it says.
    reader
        Reads an object as that source does.
    key
        The field that joins records and labels, None where labels come with their records.

    """

    section: str
    settings: SourceConfig
    reader: Source
    key: str | None

    @property
    def journal(self) -> JournalSourceConfig | None:
        """The journal that they are appended to; None where the run that learns reads something else."""
        return self.settings if isinstance(self.settings, JournalSourceConfig) else None

    @property
    def target(self) -> str | None:
        """The field of the label."""
        return getattr(self.settings, "target", None)

    def read(self, raw: bytes) -> Record:
        """Return an object as a record; where it cannot be used, it has a fault."""
        record = self.reader.decode(raw, _NOWHERE, _NOWHERE)
        return record._replace(fault=Fault("not_json", "there is nothing")) if record.blank else record

    def read_labeled(self, raw: bytes) -> Record:
        """Return an object that is to be learned as a record; at fault without a label, or a key where it needs one."""
        record = self.read(raw)
        if record.fault is not None:
            return record
        if self.key is not None and self.key_in(record) is None:
            detail = f"there is no {self.key} to find its record by, or it has too many digits for a number"
            return record._replace(fault=Fault("key", detail))
        if record.y is None:
            return record._replace(fault=Fault("target", f"there is no {self.target} to learn"))
        return record

    def id_of(self, key: str | None) -> str | None:
        """Return the id by which a journal knows a repeat of a key: with another field as the key, none is one."""
        return None if key is None else f"{self.key}\t{key}"

    def key_in(self, record: Record) -> str | None:
        """Return the value of the key, None where the record has none."""
        return None if self.key is None else key_of(record.x.get(self.key))


@dataclass(frozen=True)
class ServicePlan:
    """What `streamkernel serve` does.

    Attributes
    ----------
    plan
        The configuration, in mode predict.
    settings
        Its section ``serve``.
    records, labels
        What is predicted, and what is learned: the same where labels come with their records.
    retry_seconds
        After which a full journal may have room again.

    """

    plan: Plan
    settings: ServeConfig
    records: Role
    labels: Role
    retry_seconds: int

    @property
    def has_late_labels(self) -> bool:
        """Whether a record is predicted first, and learned when its label comes."""
        return self.records.key is not None


def service_plan(plan: Plan, partition: int | None = None) -> ServicePlan:
    """Return what a configuration asks the service to do.

    Parameters
    ----------
    plan, partition
        As `streamkernel.daemon.serve.run.serve` takes them.

    Raises
    ------
    ConfigError
        Where there is no model to serve, or it is not said which one, or what is to be learned has no target.

    """
    plan = _of_partition(plan, partition)
    config = with_served_model(plan.config)
    if is_list(config.source):
        raise ConfigError(
            Problem("source.target", "serve predicts one target: name one column, or use run for several")
        )
    key = join_key(config)
    records = _role("source", config.source, plan, key)
    labels = records if key is None else _role("labels.source", label_source(config), plan, key)
    seconds = 1.0 if plan.config.checkpoint is None else plan.config.checkpoint.every_seconds
    if labels.journal is not None and labels.target is None:
        raise ConfigError(Problem(f"{labels.section}.target", "required, it names the field that holds the label"))
    return ServicePlan(
        replace(plan, config=config),
        config.serve or ServeConfig(),
        records,
        labels,
        max(1, min(60, ceil(seconds))),
    )


def _of_partition(plan: Plan, partition: int | None) -> Plan:
    """Return the configuration of one partition, where those of a group have a model each."""
    if group_of(plan.config) is None:
        if partition is not None:
            raise ConfigError(Problem("--partition", "only with source.group, where each partition has its own model"))
        return plan
    if partition is None:
        why = (
            "each partition has its own model: choose one with --partition N. A second service on this machine needs "
            "another port, such as --set serve.port=9110"
        )
        raise ConfigError(Problem("source.group", why))
    return plan_of(plan.path, partition_document(document_of(plan.raw), partition))


def _role(section: str, written: SourceConfig, plan: Plan, key: str | None) -> Role:
    """Return the role of a source, whose records come as JSON here, whatever they come as there."""
    known: dict[str, Any] = {
        name: getattr(written, name) for name in ("target", "target_type", "inputs") if hasattr(written, name)
    }
    settings = JsonlSourceConfig(kind="jsonl", path="-", **known)
    return Role(section, written, make_source(settings, plan.config, section), key)
