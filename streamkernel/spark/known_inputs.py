"""The inputs of the first micro-batch with records, compared with those that the model has learned."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame

from streamkernel.connectors.memory import MemorySource
from streamkernel.daemon.assembly.processor import compared
from streamkernel.daemon.config.plan import Plan
from streamkernel.daemon.stream.known_inputs import ENOUGH
from streamkernel.daemon.stream.processor import Processor
from streamkernel.spark.sources import StreamSource

__all__ = ["compared_rows"]


def compared_rows(plan: Plan, processor: Processor, source: StreamSource) -> Callable[[DataFrame], DataFrame]:
    """Return what selects the rows of a micro-batch, and looks at some of them in the driver, as the daemon does.

    Raises
    ------
    DaemonError
        Where it is called, and the model has learned too few of their inputs.

    """
    compares = True

    def select(df: DataFrame) -> DataFrame:
        nonlocal compares
        rows = source.select(df)
        if compares:
            batches = rows.limit(ENOUGH).toArrow().to_batches()
            records = [record for chunk in source.chunks(batches) for record in chunk.records]
            compares = not records
            compared(plan, MemorySource(records), processor).poll(ENOUGH, 0)
        return rows

    return select
