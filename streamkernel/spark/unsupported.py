"""What of a configuration a Spark job does not do: each by its name, with what to do instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamkernel.daemon.config.journal import JournalSourceConfig
from streamkernel.daemon.config.kafka import KafkaSinkConfig, KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.several_targets import is_list
from streamkernel.daemon.config.sources import CsvSourceConfig, JsonlSourceConfig, RiverSourceConfig
from streamkernel.spark.kafka_options import refused_options
from streamkernel.spark.learner import check_model

__all__ = ["unsupported"]

_DAEMON = "streamkernel run does"


def unsupported(plan: Plan) -> list[str]:
    """Return a line for each setting that a Spark job does not support."""
    return [*_of_run(plan), *_of_source(plan.config.source), *_of_outputs(plan)]


def _of_run(plan: Plan) -> Iterator[str]:
    config = plan.config
    if config.models is not None:
        yield f"models: a Spark job learns one model; set model instead, or use the daemon: {_DAEMON} several"
    else:
        try:
            check_model(plan.model)
        except ValueError as error:
            yield f"model: {error}"
    if config.labels is not None:
        yield f"labels: a Spark job joins no late labels; join them in a topic first, or use the daemon: {_DAEMON}"
    if config.mode == "predict":
        yield "mode: a Spark job learns; to predict only, use predict_udf, or mode: predict in streamkernel run"
    if config.serve is not None:
        yield "serve: a Spark job serves no predictions; use streamkernel serve with the job's checkpoint.directory"
    if config.warm_start is not None:
        yield "warm_start: a Spark job learns one source; learn the first one in another job, then set initial_model"
    if config.checkpoint is None:
        yield "checkpoint: missing; set it, or a restarted Spark job would learn micro-batches twice"


def _of_source(source: Any) -> Iterator[str]:
    if is_list(source):
        yield "source.target: a Spark job learns one target; name one column, or use the daemon for several"
    if isinstance(source, KafkaSourceConfig):
        if source.group is not None:
            yield "source.group: a Spark job reads all partitions for one model; remove it"
        if source.order == "logged":
            yield "source.order: the order of records means nothing to a batch step; remove it"
        if source.value_format != "json":
            yield f"source.value_format: a Spark job reads json, not {source.value_format}"
        yield from refused_options(source.options)
    elif isinstance(source, CsvSourceConfig | JsonlSourceConfig):
        if source.follow:
            yield "source.follow: a Spark job reads whole files; name a directory, and put new files into it"
        if source.path == "-":
            yield "source.path: a Spark job does not read standard input; name files"
        if isinstance(source.path, list):
            yield "source.path: a Spark job reads a directory or a pattern, not a list of files; name one of them"
        if getattr(source, "multiline", False):
            yield "source.multiline: Spark splits files at line ends; write each record in one line"
        if getattr(source, "encoding", "utf-8").lower().replace("_", "-") not in ("utf-8", "utf8"):
            yield "source.encoding: a Spark job reads UTF-8; convert the files"
    elif isinstance(source, RiverSourceConfig | JournalSourceConfig):
        yield f"source.kind: a Spark job reads kafka, csv and jsonl, not {source.kind}: {_DAEMON}"


def _of_outputs(plan: Plan) -> Iterator[str]:
    predictions = plan.config.predictions
    kind = getattr(predictions, "kind", "none")
    if isinstance(predictions, KafkaSinkConfig):
        if (plan.raw.get("predictions") or {}).get("transactional_id") is not None:
            yield "predictions.transactional_id: Spark writes at least once, without transactions; remove it"
        if predictions.value_format != "json":
            yield f"predictions.value_format: a Spark job writes json, not {predictions.value_format}"
        if getattr(predictions, "include", None):
            yield "predictions.include: a Spark job passes no columns through; join the lines by position instead"
        yield from refused_options(predictions.options, "predictions")
    elif kind != "none":
        yield f"predictions.kind: a Spark job writes predictions to kafka, or none, not {kind}: {_DAEMON}"
