"""What of the inside of kafka-python is relied upon: where one of these is gone, the rest may fail in odd ways.

The version is pinned below the next minor one in ``pyproject.toml``. To take a newer one, run this first.
"""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path
from types import FunctionType
from typing import Any

import kafka
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, codec
from kafka.cluster import ClusterMetadata
from kafka.consumer.fetcher import Fetcher
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.net import inet
from kafka.net.compat import KafkaNetClient
from kafka.net.connection import KafkaConnection
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.producer.future import FutureRecordMetadata
from kafka.producer.producer_batch import ProducerBatch
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.producer.sender import Sender
from kafka.producer.transaction_manager import TransactionManager
from kafka.record import util
from kafka.record.default_records import DefaultRecord, DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

from streamkernel.connectors.kafka.writing.batches import LineRecords

CONNECTORS = Path(__file__).parents[2] / "connectors/kafka"

RELIED_UPON: dict[Any, str] = {
    # connectors/kafka/base/client.py: why a connection failed, and when a broker last answered.
    KafkaNetClient: "cluster close await_ready connection_delay maybe_connect send",
    # _build_transport: the sockets of a failed attempt are in its frames.
    KafkaConnectionManager: "_build_transport auth_failure bootstrapped call_soon close cluster config get_connection "
    "run send ssl_enabled wait_for",
    KafkaConnection: "broker_version_data close_future init_future initializing",
    NetworkSelector: "run",
    ClusterMetadata: "available_partitions_for_topic bootstrap_brokers broker_metadata brokers cluster_id config "
    "is_bootstrap need_update partitions_for_topic request_update set_topics topic_id unauthorized_topics",
    # connectors/kafka/base/topic.py: no option of the consumer says what unpacks a fetch; _fetcher has it.
    KafkaConsumer: "_coordinator _fetcher config DEFAULT_CONFIG highwater position",
    # connectors/kafka/base/fetched.py: what was being unpacked when that failed; _buffer has a batch, and once it
    # was decompressed its records alone.
    Fetcher: "PartitionRecords end_offsets",
    Fetcher.PartitionRecords: "fetch_offset next_fetch_offset take topic_partition",
    MemoryRecords: "next_batch",
    DefaultRecordBatch: "HEADER_STRUCT _buffer base_offset compression_type first_timestamp is_control_batch magic "
    "max_timestamp next_offset records_count timestamp_type",
    # connectors/kafka/base/messages.py: the headers of a message.
    util: "calc_crc32c decode_varint encode_varint",
    # connectors/kafka/group: a member that knows its topic (_coordinator), and has begun to join (_join_task).
    ConsumerCoordinator: "_join_task need_rejoin",
    # connectors/kafka/writing: the public steps of a transaction wait without end (_accumulator has what takes them,
    # _sender carries them out), and take the id back from a process that fenced this one (_supports_epoch_bump).
    KafkaProducer: "_accumulator _sender config DEFAULT_CONFIG",
    # connectors/kafka/writing/batches.py: whole batches are queued, which no public method does.
    RecordAccumulator: "_batches config",
    ProducerBatch: "_record_futures complete complete_exceptionally produce_future record_count topic_partition",
    DefaultRecordBatchBuilder: "HEADER_STRUCT MAX_RECORD_OVERHEAD TRANSACTIONAL_MASK",
    KafkaAdminClient: "DEFAULT_CONFIG describe_cluster describe_configs describe_topics",
    Sender: "force_close wakeup",
    TransactionManager: "_supports_epoch_bump begin_commit bump_producer_id_and_epoch has_error is_bumping_epoch "
    "last_error maybe_add_partition_to_transaction send_offsets_to_transaction",
    codec: "gzip_encode has_gzip has_lz4 has_snappy has_zstd lz4 lz4_encode snappy snappy_encode zstd zstd_encode",
}

PARAMETERS: dict[Any, list[str]] = {
    # What is replaced is called as the original is.
    KafkaConnectionManager.__init__: ["self", "net", "configs"],
    KafkaConnectionManager.send: ["self", "request", "node_id", "request_timeout_ms"],
    KafkaConnectionManager._build_transport: ["self", "node", "timeout_at"],
    KafkaConnectionManager.wait_for: ["self", "future", "timeout_ms"],
    KafkaNetClient.__init__: ["self", "net", "manager", "configs"],
    KafkaNetClient.await_ready: ["self", "node_id", "timeout_ms"],
    Fetcher.PartitionRecords.__init__: ["self", "fetch_offset", "tp", "records"],
    DefaultRecordBatch.__init__: ["self", "buffer"],
    ProducerBatch.__init__: ["self", "tp", "records"],
    FutureRecordMetadata.__init__: ["self", "produce_future", "batch_index"],
    LineRecords.set_producer_state: list(inspect.signature(MemoryRecordsBuilder.set_producer_state).parameters),
    DefaultRecord.__init__: ["self", "size_in_bytes", "offset", "timestamp", "timestamp_type", "key", "value"],
}

CALLED: dict[FunctionType, str] = {
    # Where the replaced things are looked up.
    Fetcher._parse_fetched_data: r"self\.PartitionRecords\(",
    Fetcher._append: r"part\.take\([\s\S]*\.extend\(part_records\)[\s\S]*not part_records:[\s\S]*position = [\s\S]*"
    r"part\.next_fetch_offset[\s\S]*return len\(part_records\)",
    # A batch is its only record, which ends before the next offset, and whose value is handed on as it is.
    Fetcher.PartitionRecords._unpack_records: r"records\.next_batch\(\)[\s\S]*for record in batch:[\s\S]*"
    r"next_fetch_offset = record\.offset \+ 1\s+yield ConsumerRecord\([\s\S]*key, value, ",
    Fetcher.PartitionRecords._maybe_skip_record: r"if record\.offset < self\.fetch_offset:",
    TransactionManager.classify_batch_error: r"if self\._supports_epoch_bump\(\):[\s\S]*ERROR_CLASS_FATAL",
    # A batch that is full is sent at once; a part of one answers for its own lines.
    RecordAccumulator.ready: r"batch\.records\.is_full\(\)\)[\s\S]*sendable = \(full or",
    RecordAccumulator.split_and_reenqueue: r"batch\._record_futures\[future_index\]\s+original_future\.rebind\(",
    ProducerBatch._complete_future: r"produce_future\.success\(\(base_offset, timestamp_ms, record_exceptions_fn\)\)",
    KafkaConsumer.__init__: r"self\.config\['kafka_client'\]\(",
    KafkaProducer.__init__: r"self\.config\['kafka_client'\]\(",
}

LOCALS: dict[Any, str] = {
    # Looked for in the frames of an error.
    inet.create_connection: "sock",
}


def test_it_is_there(subtests: pytest.Subtests) -> None:
    for owner in RELIED_UPON:
        with subtests.test(owner=owner):
            source = inspect.getsource(owner)
            for base in getattr(owner, "__mro__", ()):
                if base.__module__.startswith("kafka"):
                    source += inspect.getsource(base)
            gone = [
                name
                for name in RELIED_UPON[owner].split()
                if not hasattr(owner, name) and not re.search(rf"self\.{name}(: .*)? = |self\.{name}, ", source)
            ]
            assert not gone, f"kafka-python {kafka.__version__} has no {', '.join(gone)} in {owner.__name__} any more"


def test_it_is_called_as_before(subtests: pytest.Subtests) -> None:
    for function in PARAMETERS:
        with subtests.test(function=function):
            now = list(inspect.signature(function).parameters)
            assert now[: len(PARAMETERS[function])] == PARAMETERS[function], (
                f"kafka-python {kafka.__version__} calls {function.__qualname__} with {', '.join(now)}"
            )


@pytest.mark.parametrize("function", CALLED, ids=lambda function: function.__qualname__)
def test_it_is_looked_up_where_it_is_replaced(function: FunctionType) -> None:
    assert re.search(CALLED[function], inspect.getsource(function)), (
        f"kafka-python {kafka.__version__} does not have {CALLED[function]!r} in {function.__qualname__} any more"
    )


@pytest.mark.parametrize("function", LOCALS, ids=lambda function: function.__qualname__)
def test_the_names_in_its_frames_are_the_same(function: Any) -> None:
    code = function.__code__
    there = {*code.co_varnames, *code.co_freevars, *code.co_cellvars}
    assert set(LOCALS[function].split()) <= there


def test_nothing_else_of_its_inside_is_used() -> None:
    """What begins with an underscore and is not our own is in the table above."""
    named = {name for names in RELIED_UPON.values() for name in names.split()} | {"_replace", "_make"}
    used = {
        f"{path.relative_to(CONNECTORS)}:{node.lineno}: {node.attr}"
        for path in CONNECTORS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.startswith("__")
        and not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"))
        and node.attr not in named
    }
    assert not used, f"{', '.join(sorted(used))}: add it to RELIED_UPON, or do without"


def test_there_are_few_of_them() -> None:
    private = {name for names in RELIED_UPON.values() for name in names.split() if name.startswith("_")}
    assert len(private) <= 10
