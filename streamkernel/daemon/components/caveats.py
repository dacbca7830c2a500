"""Warnings about what a configuration does not promise, for the start of a run and for `check`."""

from __future__ import annotations

from collections.abc import Mapping

from streamkernel.connectors.ports import Sink
from streamkernel.daemon.base.model import Model, is_binary, last_step, n_lags, never_learning, task_of
from streamkernel.daemon.components.warm_start import learned_twice
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.schema import KafkaSinkConfig, KafkaSourceConfig, RiverSourceConfig, SourceConfig

__all__ = ["caveats", "label_advice"]


def caveats(plan: Plan, sinks: Mapping[str, Sink], n_partitions: int = 0) -> list[str]:
    """Return one sentence for each thing that a configuration with these sinks, by their key, does not promise.

    A caller that read the source without opening the plan's source passes its number of partitions.
    """
    config, source = plan.config, plan.source
    lines = []
    unlabeled = not isinstance(config.source, RiverSourceConfig) and config.source.target is None
    supervised = any(task_of(model) != "novelty" for model in plan.models.values())
    if unlabeled and supervised and config.labels is None and config.mode == "learn":
        lines.append("source.target is not set: no record has a label, and nothing is learned")
    if twice := learned_twice(config):
        lines.append(twice)
    if config.labels is not None and any(map(_loses_lags, plan.models.values())):
        lines.append(
            "model: in a pipeline, a record with a late label is learned with other lags than it was predicted "
            "with. Use the estimator without a pipeline: it scales and encodes its inputs"
        )
    if name := next(filter(None, map(never_learning, plan.models.values())), ""):
        lines.append(
            f"model: the {name} stops its KernelNoveltyDetector from learning: its first scores are equal and count "
            "as flagged. Set protect_anomaly_detector: false"
        )
    if advice := label_advice(plan):
        lines.append(f"model: {advice}")
    off = {
        "predictions": "predictions are off: nothing writes them",
        "dead_letters": "dead_letters are off: unusable records are counted and discarded",
    }
    lines += [off[key] for key, output in config.outputs.items() if output is None or output.kind == "none"]
    if config.checkpoint is None and config.mode == "predict":
        lines.append("no checkpoint.directory: each run starts at the first record of its source")
    elif config.checkpoint is None:
        lines.append("checkpoint is off: nothing is saved, a restart learns from the first record again")
    else:
        lines += [
            f"{one.describe()} cannot be resumed: a restart keeps the model, but may miss or repeat {what}"
            for one, what in ((source, "records"), (plan.sources.get("labels.source"), "labels"))
            if one is not None and not one.resumable
        ]
    if config.checkpoint is not None and _mixed(plan, n_partitions):
        lines.append(
            "source.order is arrival: after a kill, the records of several partitions may be learned in another order"
        )
    if config.checkpoint is not None and config.labels is not None and any(map(_grows, config.sources.values())):
        lines.append(
            "records and labels are learned as they arrive: after a kill, their order may differ. Each is learned once"
        )
    for key, sink in sinks.items():
        if config.checkpoint is None and isinstance(config.outputs[key], KafkaSinkConfig):
            lines.append(f"{key} go to a topic and checkpoint is off: a restart writes them again, after the old ones")
        elif isinstance(config.outputs[key], KafkaSinkConfig) and not sink.exactly_once:
            lines.append(f"{key}.transactional_id is none: after a restart, the topic may have some lines twice")
        elif not sink.exactly_once:
            lines.append(f"{key} cannot be truncated: after a restart it may have some lines twice")
    if config.imports:
        lines.append(f"imports trusts all code of {', '.join(config.imports)}, in the configuration and in checkpoints")
    return lines


def label_advice(plan: Plan) -> str:
    """Return what to do where the labels are texts or numbers and the model takes true and false; else nothing.

    River's linear and factorization classifiers refuse a text, and take every number but 0 for true.
    """
    keys = [
        f"{key}.target_type"
        for key, source in plan.config.sources.items()
        if getattr(source, "target", None) is not None and getattr(source, "target_type", "bool") != "bool"
    ]
    if not keys or not is_binary(plan.model):
        return ""
    return (
        f"{type(last_step(plan.model)).__name__} knows only the labels true and false: set {keys[0]}: bool (it "
        "reads yes, no, true, false, 1 and 0), or wrap it in river.multiclass.OneVsRestClassifier"
    )


def _loses_lags(model: Model) -> bool:
    """Return whether a model wants lags, and is not what the daemon gives them to."""
    return n_lags(last_step(model)) > 0 and not n_lags(model)


def _grows(source: SourceConfig) -> bool:
    """Return whether a source may have more at another time than now."""
    return isinstance(source, KafkaSourceConfig) or getattr(source, "follow", False) or getattr(source, "watch", False)


def _mixed(plan: Plan, n_partitions: int) -> bool:
    """Return whether several partitions are, or may be, taken as they come: an open source knows how many it has."""
    source = plan.config.source
    if not isinstance(source, KafkaSourceConfig) or source.order == "logged" or source.group is not None:
        return False
    known = n_partitions or len(plan.source.lag) or (2 if source.partitions == "all" else len(source.partitions))
    return known > 1
