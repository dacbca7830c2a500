"""Records in, records out: the ports and one file a system. Imports nothing of streamkernel."""

import importlib
from typing import TYPE_CHECKING, Any

from streamkernel.connectors.columns.settings import ColumnSettings, InputSettings
from streamkernel.connectors.files.csv import CsvSource
from streamkernel.connectors.files.sinks import CsvSink, JsonLinesSink
from streamkernel.connectors.files.source import JsonLinesSource
from streamkernel.connectors.memory import MemorySink, MemorySource, NullSink
from streamkernel.connectors.ports import (
    ColumnUse,
    ConnectorError,
    Fault,
    Label,
    Position,
    Record,
    Sink,
    SinkError,
    Source,
    SourceError,
)

if TYPE_CHECKING:
    from streamkernel.connectors.journal.source import JournalSource
    from streamkernel.connectors.kafka.reading.source import KafkaSource
    from streamkernel.connectors.kafka.writing.sink import KafkaSink
    from streamkernel.connectors.parquet.sink import ParquetSink
    from streamkernel.connectors.registry.line_schema import LineField, LineSchema
    from streamkernel.connectors.registry.settings import RegistrySettings
    from streamkernel.connectors.river import RiverSource

__all__ = [
    "ColumnSettings",
    "ColumnUse",
    "ConnectorError",
    "CsvSink",
    "CsvSource",
    "Fault",
    "InputSettings",
    "JournalSource",
    "JsonLinesSink",
    "JsonLinesSource",
    "KafkaSink",
    "KafkaSource",
    "Label",
    "LineField",
    "LineSchema",
    "MemorySink",
    "MemorySource",
    "NullSink",
    "ParquetSink",
    "Position",
    "Record",
    "RegistrySettings",
    "RiverSource",
    "Sink",
    "SinkError",
    "Source",
    "SourceError",
]


# River's data sets take more than a second to import, the client of Kafka a part of one, SQLite memory, pyarrow is an
# extra, and who reads a file does not need them.
_WHEN_ASKED = {
    "JournalSource": "streamkernel.connectors.journal.source",
    "KafkaSink": "streamkernel.connectors.kafka.writing.sink",
    "KafkaSource": "streamkernel.connectors.kafka.reading.source",
    "LineField": "streamkernel.connectors.registry.line_schema",
    "LineSchema": "streamkernel.connectors.registry.line_schema",
    "ParquetSink": "streamkernel.connectors.parquet.sink",
    "RegistrySettings": "streamkernel.connectors.registry.settings",
    "RiverSource": "streamkernel.connectors.river",
}


def __getattr__(name: str) -> Any:
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHEN_ASKED[name]), name)
