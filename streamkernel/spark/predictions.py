"""Predictions to a topic of Kafka by Spark's sink, at least once: a micro-batch that is repeated is written again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from pyspark.sql import DataFrame

from streamkernel.daemon.config.kafka import KafkaSinkConfig
from streamkernel.daemon.config.plan import Plan
from streamkernel.spark.kafka_options import java_options

__all__ = ["PredictionTopic"]


@dataclass(frozen=True)
class PredictionTopic:
    """The topic of predictions.

    Attributes
    ----------
    topic
        The name of the topic.
    options
        Those of Spark's sink.

    """

    topic: str
    options: dict[str, str]

    @classmethod
    def of(cls, plan: Plan) -> Self | None:
        """The topic that a configuration names; None where it names none."""
        written = plan.config.predictions
        if not isinstance(written, KafkaSinkConfig):
            return None
        options = java_options(written.bootstrap_servers, written.options)
        if written.compression is not None:
            options["kafka.compression.type"] = written.compression
        return cls(written.topic, options)

    def write(self, lines: DataFrame) -> None:
        """Write lines, the column `part` of a data frame."""
        rows = lines.selectExpr("part as value")
        rows.write.format("kafka").options(**self.options).option("topic", self.topic).save()
