"""Conflicts between settings of a configuration that are each valid."""

from __future__ import annotations

from collections.abc import Iterator

from streamkernel.connectors.target_columns import names_of
from streamkernel.daemon.config.column_conflicts import column_conflicts
from streamkernel.daemon.config.grouped import OWN_NAMES, PLACEHOLDER
from streamkernel.daemon.config.inputs import problems as input_problems
from streamkernel.daemon.config.kafka import GROUP_OPTIONS
from streamkernel.daemon.config.predicting import conflicts_of_models
from streamkernel.daemon.config.problems import shown
from streamkernel.daemon.config.registry import registry_problems
from streamkernel.daemon.config.schema import Config, KafkaSinkConfig, KafkaSourceConfig, LabelsConfig
from streamkernel.daemon.config.serve_conflicts import serve_conflicts
from streamkernel.daemon.config.several import conflicts_of_files
from streamkernel.daemon.config.several_models import conflicts_of_several
from streamkernel.daemon.config.several_targets import conflicts_of_targets
from streamkernel.daemon.config.warm import conflicts_of_warm_start

__all__ = ["conflicts"]


def conflicts(config: Config) -> list[str]:
    """Return one line for each setting that another one rules out, of a configuration valid in each section."""
    lines = []
    labels = config.labels
    if labels is not None and getattr(labels.source, "path", None) == getattr(config.source, "path", None) == "-":
        lines.append("labels.source.path: standard input is read by source already")
    for key, source in config.sources.items():
        if getattr(source, "order", None) == "logged" and config.checkpoint is None:
            lines.append(f"{key}.order: logged needs {_a_checkpoint(config)}: the order is stored in its directory")
    for key, source in config.sources.items():
        lines += conflicts_of_files(key, source)
        if (columns := getattr(source, "inputs", None)) is not None:
            join_key = None if labels is None or key == "warm_start.source" else labels.key
            found = input_problems(columns, names_of(getattr(source, "target", None)), join_key)
            lines += [f"{key}.inputs.{problem}" for problem in found]
    if labels is not None:
        lines += _of_labels(labels, getattr(config.source, "target", None))
    return [
        *lines,
        *conflicts_of_warm_start(config),
        *conflicts_of_models(config),
        *conflicts_of_several(config),
        *conflicts_of_targets(config),
        *column_conflicts(config),
        *serve_conflicts(config),
        *_of_groups(config),
        *_of_topics(config),
        *_of_registries(config),
    ]


def _a_checkpoint(config: Config) -> str:
    """Return what to call the missing section: in mode predict, one that is there may be that of the model."""
    if config.mode == "predict":
        return "its own checkpoint.directory, not that in serve_from"
    return "a checkpoint"


def _of_registries(config: Config) -> Iterator[str]:
    for key, section in {**config.sources, **config.outputs}.items():
        if isinstance(section, KafkaSourceConfig | KafkaSinkConfig):
            yield from registry_problems(key, section.value_format, section.schema_registry)


def _of_labels(labels: LabelsConfig, target: str | None) -> Iterator[str]:
    label = getattr(labels.source, "target", "")
    if label is None:
        yield "labels.source.target: required, it names the field that holds the label"
    if labels.key in (label, target):
        yield f"labels.key: must not be a target, got {shown(labels.key)}"


def _of_groups(config: Config) -> Iterator[str]:
    """Yield what cannot be together with a group, and what makes no sense without one."""
    if config.labels is not None and isinstance(config.labels.source, KafkaSourceConfig):
        if config.labels.source.group is not None:
            yield "labels.source.group: not for labels: the reader of the records also reads their labels"
        yield from _without_group("labels.source", config.labels.source)
    source = config.source
    if not isinstance(source, KafkaSourceConfig):
        return
    if source.group is None:
        yield from _without_group("source", source)
        return
    if config.checkpoint is None:
        if config.mode == "predict":
            yield f"checkpoint: source.group needs {_a_checkpoint(config)}"
        else:
            yield "checkpoint: required with source.group: members hand a partition's model over through it"
    if source.partitions != "all":
        yield "source.partitions: must be all with source.group, which assigns the partitions"
    if source.order != "arrival":
        yield "source.order: not with source.group, where each model reads one partition, which is in order"
    if "group_id" in source.options.given():
        yield "source.options.group_id: not with source.group, to which the offsets are committed anyway"
    if config.labels is not None:
        yield "labels: not with source.group: a label could arrive on another partition than its record"
    for section, key in OWN_NAMES:
        name = getattr(config.outputs[section], key, None)
        if name is not None and PLACEHOLDER not in name:
            yield f"{section}.{key}: must contain {PLACEHOLDER} with source.group, each partition needs its own"


def _without_group(key: str, source: KafkaSourceConfig) -> Iterator[str]:
    for name in GROUP_OPTIONS:
        if name in source.options.given():
            yield f"{key}.options.{name}: works only with source.group"


def _of_topics(config: Config) -> Iterator[str]:
    """Yield outputs to a topic that another section uses, and transactions without checkpoints."""
    used: dict[str, KafkaSourceConfig | KafkaSinkConfig] = {
        key: source for key, source in config.sources.items() if isinstance(source, KafkaSourceConfig)
    }
    for key, output in config.outputs.items():
        if not isinstance(output, KafkaSinkConfig):
            continue
        for other, section in used.items():
            if set(section.bootstrap_servers).isdisjoint(output.bootstrap_servers):
                continue
            if section.topic == output.topic:
                yield f"{key}.topic: must differ from {other}.topic"
            if output.transactional_id and getattr(section, "transactional_id", None) == output.transactional_id:
                yield f"{key}.transactional_id: must differ from {other}.transactional_id"
        if output.transactional_id is not None and config.checkpoint is None:
            yield f"{key}.transactional_id: needs {_a_checkpoint(config)}: each checkpoint commits a transaction"
        used[key] = output
