"""Late labels: a second source brings the label of a record after its prediction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from streamkernel.daemon.base.model import Model, task_of
from streamkernel.daemon.components.declaration import Component
from streamkernel.daemon.config.problems import Problem, shown
from streamkernel.daemon.config.schema import Config, KafkaSourceConfig, SourceConfig
from streamkernel.daemon.config.sources import is_list

__all__ = ["LATE_LABELS", "join_key", "label_source"]


def join_key(config: Config) -> str | None:
    """Return the field that joins records and late labels; None where labels come with their records."""
    return None if config.labels is None else config.labels.key


def label_source(config: Config) -> SourceConfig:
    """Return the section of the source that brings the labels."""
    return config.source if config.labels is None else config.labels.source


def _problems(config: Config) -> Iterator[Problem]:
    labels = config.labels
    assert labels is not None
    source = labels.source
    target = getattr(source, "target", "")
    if getattr(source, "path", None) == getattr(config.source, "path", None) == "-":
        yield Problem("labels.source.path", "standard input is read by source already")
    if target is None:
        yield Problem("labels.source.target", "required, it names the field that holds the label")
    if is_list(source):
        yield Problem("labels.source.target", f"must be one field, late labels bring one target, got {shown(target)}")
    if labels.key in (target, getattr(config.source, "target", None)):
        yield Problem("labels.key", f"must not be a target, got {shown(labels.key)}")
    if isinstance(source, KafkaSourceConfig) and source.group is not None:
        yield Problem("labels.source.group", "not for labels: the reader of the records also reads their labels")


def _of_models(config: Config, models: Mapping[str, Model], published: str) -> Iterator[Problem]:  # noqa: ARG001
    if task_of(models[published]) == "novelty":
        yield Problem("labels", "not for a novelty detector, which learns each record without a label: leave it out")


LATE_LABELS = Component(
    "late_labels",
    lambda config: [] if config.labels is None else ["labels"],
    excludes={
        "group_mode": "not with source.group: a label could arrive on another partition than its record",
        "several_targets": "not with several targets in source.target: leave one of the two out",
    },
    problems=_problems,
    model_problems=_of_models,
)
