"""What of a configuration a Spark job does not do: each by its name, with what to do instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamkernel.daemon.config.journal import JournalSourceConfig
from streamkernel.daemon.config.kafka import KafkaSinkConfig, KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.sources import CsvSourceConfig, JsonlSourceConfig, RiverSourceConfig, is_list
from streamkernel.spark.kafka_options import refused_options
from streamkernel.spark.learner import check_model

__all__ = ["unsupported"]

_DAEMON = "streamkernel run does"


def unsupported(plan: Plan) -> list[Problem]:
    """Return a problem for each setting that a Spark job does not support."""
    return [*_of_run(plan), *_of_source(plan.config.source), *_of_outputs(plan)]


def _of_run(plan: Plan) -> Iterator[Problem]:
    config = plan.config
    if config.models is not None:
        yield Problem(
            "models", f"a Spark job learns one model; set model instead, or use the daemon: {_DAEMON} several"
        )
    else:
        try:
            check_model(plan.model)
        except ValueError as error:
            yield Problem("model", f"{error}")
    if config.labels is not None:
        yield Problem(
            "labels", f"a Spark job joins no late labels; join them in a topic first, or use the daemon: {_DAEMON}"
        )
    if config.mode == "predict":
        yield Problem(
            "mode", "a Spark job learns; to predict only, use predict_udf, or mode: predict in streamkernel run"
        )
    if config.serve is not None:
        yield Problem(
            "serve", "a Spark job serves no predictions; use streamkernel serve with the job's checkpoint.directory"
        )
    if config.warm_start is not None:
        yield Problem(
            "warm_start", "a Spark job learns one source; learn the first one in another job, then set initial_model"
        )
    if config.checkpoint is None:
        yield Problem("checkpoint", "missing; set it, or a restarted Spark job would learn micro-batches twice")


def _of_source(source: Any) -> Iterator[Problem]:
    if is_list(source):
        yield Problem("source.target", "a Spark job learns one target; name one column, or use the daemon for several")
    if isinstance(source, KafkaSourceConfig):
        if source.group is not None:
            yield Problem("source.group", "a Spark job reads all partitions for one model; remove it")
        if source.order == "logged":
            yield Problem("source.order", "the order of records means nothing to a batch step; remove it")
        if source.value_format != "json":
            yield Problem("source.value_format", f"a Spark job reads json, not {source.value_format}")
        yield from refused_options(source.options)
    elif isinstance(source, CsvSourceConfig | JsonlSourceConfig):
        if source.follow:
            yield Problem("source.follow", "a Spark job reads whole files; name a directory, and put new files into it")
        if source.path == "-":
            yield Problem("source.path", "a Spark job does not read standard input; name files")
        if isinstance(source.path, list):
            yield Problem(
                "source.path", "a Spark job reads a directory or a pattern, not a list of files; name one of them"
            )
        if getattr(source, "multiline", False):
            yield Problem("source.multiline", "Spark splits files at line ends; write each record in one line")
        if getattr(source, "encoding", "utf-8").lower().replace("_", "-") not in ("utf-8", "utf8"):
            yield Problem("source.encoding", "a Spark job reads UTF-8; convert the files")
    elif isinstance(source, RiverSourceConfig | JournalSourceConfig):
        yield Problem("source.kind", f"a Spark job reads kafka, csv and jsonl, not {source.kind}: {_DAEMON}")


def _of_outputs(plan: Plan) -> Iterator[Problem]:
    predictions = plan.config.predictions
    kind = getattr(predictions, "kind", "none")
    if isinstance(predictions, KafkaSinkConfig):
        if (plan.raw.get("predictions") or {}).get("transactional_id") is not None:
            yield Problem("predictions.transactional_id", "Spark writes at least once, without transactions; remove it")
        if predictions.value_format != "json":
            yield Problem("predictions.value_format", f"a Spark job writes json, not {predictions.value_format}")
        if getattr(predictions, "include", None):
            yield Problem(
                "predictions.include", "a Spark job passes no columns through; join the lines by position instead"
            )
        yield from refused_options(predictions.options, "predictions")
    elif kind != "none":
        yield Problem("predictions.kind", f"a Spark job writes predictions to kafka, or none, not {kind}: {_DAEMON}")
