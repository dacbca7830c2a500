"""The settings that a Spark job does not support, each with what to do instead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamkernel.daemon.config.kafka import KafkaSinkConfig, KafkaSourceConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.config.problems import Problem
from streamkernel.daemon.config.sources import CsvSourceConfig, JsonlSourceConfig, is_list
from streamkernel.spark.kafka_options import refused_options
from streamkernel.spark.learner import check_model

__all__ = ["unsupported"]

_DAEMON = "streamkernel run does"
_CHECKPOINT = "missing; set it, or a restarted Spark job would learn micro-batches twice"


def unsupported(plan: Plan) -> list[Problem]:
    """Return a problem for each setting that a Spark job does not support."""
    found = [*_of_run(plan), *_of_source(plan.config.source), *_of_predictions(plan)]
    return [Problem(path, message) for path, is_set, message in found if is_set]


def _of_run(plan: Plan) -> Iterator[tuple[str, bool, str]]:
    config = plan.config
    if config.models is None:
        try:
            check_model(plan.model)
        except ValueError as error:
            yield "model", True, str(error)
    late = f"a Spark job joins no late labels; join them in a topic first, or use the daemon: {_DAEMON}"
    several = f"a Spark job learns one model; set model instead, or use the daemon: {_DAEMON} several"
    predicts = "a Spark job learns; to predict only, use predict_udf, or mode: predict in streamkernel run"
    serves = "a Spark job serves no predictions; use streamkernel serve with the job's checkpoint.directory"
    warm = "a Spark job learns one source; learn the first one in another job, then set initial_model"
    yield "models", config.models is not None, several
    yield "labels", config.labels is not None, late
    yield "mode", config.mode == "predict", predicts
    yield "serve", config.serve is not None, serves
    yield "warm_start", config.warm_start is not None, warm
    yield "checkpoint", config.checkpoint is None, _CHECKPOINT


def _of_source(source: Any) -> Iterator[tuple[str, bool, str]]:
    several = "a Spark job learns one target; name one column, or use the daemon for several"
    yield "source.target", is_list(source), several
    if isinstance(source, KafkaSourceConfig):
        group = "a Spark job reads all partitions for one model; remove it"
        yield "source.group", source.group is not None, group
        order = "the order of records means nothing to a batch step; remove it"
        yield "source.order", source.order == "logged", order
        value_format = f"a Spark job reads json, not {source.value_format}"
        yield "source.value_format", source.value_format != "json", value_format
        yield from refused_options(source.options, "source")
    elif isinstance(source, CsvSourceConfig | JsonlSourceConfig):
        follow = "a Spark job reads whole files; name a directory, and put new files into it"
        yield "source.follow", bool(source.follow), follow
        yield "source.path", source.path == "-", "a Spark job does not read standard input; name files"
        paths = "a Spark job reads a directory or a pattern, not a list of files; name one of them"
        yield "source.path", isinstance(source.path, list), paths
        multiline = "Spark splits files at line ends; write each record in one line"
        yield "source.multiline", getattr(source, "multiline", False), multiline
        encoding = getattr(source, "encoding", "utf-8").lower().replace("_", "-")
        yield "source.encoding", encoding not in ("utf-8", "utf8"), "a Spark job reads UTF-8; convert the files"
    else:
        yield "source.kind", True, f"a Spark job reads kafka, csv and jsonl, not {source.kind}: {_DAEMON}"


def _of_predictions(plan: Plan) -> Iterator[tuple[str, bool, str]]:
    written, predictions = plan.raw.get("predictions") or {}, plan.config.predictions
    if isinstance(predictions, KafkaSinkConfig):
        transactions = "Spark writes at least once, without transactions; remove it"
        yield "predictions.transactional_id", written.get("transactional_id") is not None, transactions
        value_format = f"a Spark job writes json, not {predictions.value_format}"
        yield "predictions.value_format", predictions.value_format != "json", value_format
        include = "a Spark job passes no columns through; join the lines by position instead"
        yield "predictions.include", bool(getattr(predictions, "include", None)), include
        yield from refused_options(predictions.options, "predictions")
    else:
        kind = getattr(predictions, "kind", "none")
        other = f"a Spark job writes predictions to kafka, or none, not {kind}: {_DAEMON}"
        yield "predictions.kind", kind != "none", other
