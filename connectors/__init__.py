"""Records in, records out: the ports and one file a system. Imports nothing of streamkernel."""

import importlib
from typing import TYPE_CHECKING, Any

from connectors.columns.settings import ColumnSettings, InputSettings
from connectors.files.csv import CsvSource
from connectors.files.jsonlines import JsonLinesSource
from connectors.files.several import SeveralFiles
from connectors.files.sinks import CsvSink, JsonLinesSink
from connectors.files.watched import WatchedFiles
from connectors.journal.source import JournalSource
from connectors.memory import MemorySink, MemorySource, NullSink
from connectors.ports import (
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
    from connectors.kafka.reading.source import KafkaSource
    from connectors.kafka.writing.sink import KafkaSink
    from connectors.parquet.sink import ParquetSink
    from connectors.registry.line_schema import LineField, LineSchema
    from connectors.registry.settings import RegistrySettings
    from connectors.river import RiverSource

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
    "SeveralFiles",
    "Sink",
    "SinkError",
    "Source",
    "SourceError",
    "WatchedFiles",
]


# River's data sets take more than a second to import, the client of Kafka a part of one, pyarrow is an extra, and who
# reads a file does not need them.
_WHEN_ASKED = {
    "KafkaSink": "connectors.kafka.writing.sink",
    "KafkaSource": "connectors.kafka.reading.source",
    "LineField": "connectors.registry.line_schema",
    "LineSchema": "connectors.registry.line_schema",
    "ParquetSink": "connectors.parquet.sink",
    "RegistrySettings": "connectors.registry.settings",
    "RiverSource": "connectors.river",
}


def __getattr__(name: str) -> Any:
    if name not in _WHEN_ASKED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHEN_ASKED[name]), name)
