"""A full or failing disk: learning goes on, the old checkpoints stay, and it is tried again, later and later."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

import streamkernel.connectors.parquet.sink as parquet_sink
from streamkernel.connectors.memory import MemorySink, MemorySource
from streamkernel.connectors.ports import Position, SinkError
from streamkernel.daemon.assembly.plan import prepare
from streamkernel.daemon.base.counts import RecordCounts
from streamkernel.daemon.base.errors import CheckpointError, DaemonError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.cli import main
from streamkernel.daemon.run_state import coordinator as coordinating
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator
from streamkernel.daemon.run_state.resume import Start
from streamkernel.daemon.run_state.schedule import CheckpointSchedule
from streamkernel.daemon.runtime import run
from streamkernel.daemon.stream.sinks import Sinks
from tests.daemon.conftest import Home, write_stream
from tests.daemon.status import Time


class Disk:
    """Says no while it is full."""

    def __init__(self, number: int = errno.ENOSPC) -> None:
        self.number = number
        self.full = False
        self.asked = 0

    def take(self) -> None:
        self.asked += 1
        if self.full:
            raise OSError(self.number, "the disk says no")


class FullStore(CheckpointStore):
    def __init__(self, directory: Path, disk: Disk) -> None:
        super().__init__(directory)
        self.disk = disk

    def write(self, header: Mapping[str, Any], payload: bytes) -> Path:
        self.disk.take()
        return super().write(header, payload)


class FullSink(MemorySink):
    """Keeps what the disk refuses, as the port asks."""

    def __init__(self, disk: Disk) -> None:
        super().__init__()
        self.disk = disk

    def write(self, lines: Sequence[Mapping[str, Any]], positions: Sequence[Position] = ()) -> None:
        super().write(lines, positions)
        self.try_it()

    def flush(self) -> int:
        self.try_it()
        return super().flush()

    @property
    def waiting_bytes(self) -> int:
        return len(self.pending) if self.disk.full else 0

    def try_it(self) -> None:
        try:
            self.disk.take()
        except OSError as error:
            raise SinkError(f"out.jsonl: cannot be written: {error.strerror}") from None


class TimedCoordinator(CheckpointCoordinator):
    """The coordinator of a run without a model: how far the run is, is given by whoever saves."""

    def __init__(self, store: FullStore, clock: Time) -> None:
        checkpoint = SimpleNamespace(every_records=100, every_seconds=30)
        source = MemorySource([])
        plan: Any = SimpleNamespace(
            config=SimpleNamespace(checkpoint=checkpoint), source=source, sources={"source": source}
        )
        processor: Any = SimpleNamespace(taken=0, counts=RecordCounts())
        super().__init__(plan, store, processor, Sinks({}), Start(None))  # type: ignore[arg-type]
        self.schedule = CheckpointSchedule(100, 30, clock)
        self.clock, self.disk, self.store, self.progress = clock, store.disk, store, processor

    def save(self, consumed: int) -> bool:  # type: ignore[override]
        self.progress.taken = consumed
        return super().save()

    def due(self, consumed: int) -> bool:
        assert self.schedule is not None
        return self.schedule.due(consumed)


@pytest.fixture
def coordinator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TimedCoordinator]:
    monkeypatch.setattr(coordinating, "take_snapshot", lambda *_: ({}, b"model"))
    store = FullStore(tmp_path, Disk())
    store.lock()
    yield TimedCoordinator(store, Time())
    store.close()


def test_it_is_tried_again_after_1_2_4_and_at_most_60_seconds(coordinator: Any) -> None:
    assert coordinator.save(0)
    coordinator.disk.full = True
    pauses = []
    for consumed in range(100, 2000, 100):
        assert coordinator.due(consumed)
        assert not coordinator.save(consumed)
        since = coordinator.clock.now
        while not coordinator.due(consumed):
            coordinator.clock.now += 0.5
        pauses.append(coordinator.clock.now - since)
    assert pauses[:7] == [1, 2, 4, 8, 16, 32, 60]
    assert set(pauses[7:]) == {60}
    assert [path.name for path in coordinator.store.directory.glob("*.skc")] == ["checkpoint-000000000000.skc"]
    coordinator.disk.full = False
    assert coordinator.save(2000)
    assert not coordinator.due(2000)
    assert coordinator.due(2100)


def test_other_errors_are_not_borne(coordinator: Any) -> None:
    coordinator.disk.full, coordinator.disk.number = True, errno.EACCES
    with pytest.raises(CheckpointError, match=r"at record 0 cannot be written: the disk says no; fix that"):
        coordinator.save(0)


def test_lines_wait_in_memory_and_none_is_lost_or_double() -> None:
    clock, disk = Time(), Disk()
    box = Sinks({"predictions": FullSink(disk), "dead_letters": MemorySink()}, clock, max_waiting_bytes=4)
    box.write({"predictions": [{"n": 0}], "dead_letters": []})
    disk.full = True
    for number in (1, 2, 3):
        box.write({"predictions": [{"n": number}], "dead_letters": [{"d": number}]})
    assert box.full  # so much waits that no more records may be taken
    asked = disk.asked
    box.retry()
    assert disk.asked == asked  # too early
    clock.now += 1.0
    box.retry()
    assert disk.asked == asked + 1
    assert box.full
    disk.full = False
    clock.now += 2.0
    box.retry()
    assert not box.full
    assert [line["n"] for line in box.sinks["predictions"].lines] == [0, 1, 2, 3]  # type: ignore[attr-defined]
    assert box.sinks["dead_letters"].pending  # type: ignore[attr-defined]  # only a checkpoint makes these durable
    box.flush()
    assert [line["d"] for line in box.sinks["dead_letters"].lines] == [1, 2, 3]  # type: ignore[attr-defined]


def test_the_daemon_learns_on_while_the_disk_is_full(
    home: Home, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write_stream(home.folder / "stream.csv", 1000)
    config = home.configure(checkpoint={"directory": "out/state", "every_records": 100})
    write, calls = CheckpointStore.write, 0

    def sometimes(store: CheckpointStore, header: Mapping[str, Any], payload: bytes) -> Path:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(store, header, payload)

    monkeypatch.setattr(CheckpointStore, "write", sometimes)
    view = run(prepare(config))
    assert view.account["consumed"] == home.header()["source"]["account"]["consumed"] == 1000
    assert "the checkpoint at record 200 could not be written" in caplog.text


def test_a_run_whose_last_checkpoint_fails_says_so(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    write_stream(home.folder / "stream.csv", 1000)
    monkeypatch.setattr(time, "sleep", lambda _: None)
    write = CheckpointStore.write

    def only_the_first(store: CheckpointStore, header: Mapping[str, Any], payload: bytes) -> Path:
        if header["source"]["account"]["consumed"]:
            raise OSError(errno.EIO, "Input/output error")
        return write(store, header, payload)

    monkeypatch.setattr(CheckpointStore, "write", only_the_first)
    with pytest.raises(DaemonError, match="the last checkpoint could not be written"):
        run(prepare(home.configure()))
    monkeypatch.undo()
    monkeypatch.chdir(home.folder)
    assert home.header()["source"]["account"]["consumed"] == 0
    run(prepare(home.config))
    assert len(home.lines("out/predictions.jsonl")) == home.header()["source"]["account"]["predicted"]


def test_a_last_part_that_cannot_be_made_ends_the_run_with_status_1(
    home: Home, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    write_stream(home.folder / "stream.csv", 300)
    home.configure(predictions={"kind": "parquet", "path": "out/parts", "roll_seconds": 3600})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(parquet_sink, "write_part", full)
        patch.setattr(coordinating.time, "sleep", lambda _: None)  # between its last tries
        assert main(["run", "config.yaml"]) == 1
    said = (
        "out/parts: cannot be written: No space left on device: the last part is incomplete: the next start "
        "completes it"
    )
    assert (capsys.readouterr().err + caplog.text).count(said) == 1
    assert list((home.folder / "out/parts").iterdir()) == []
    assert main(["run", "config.yaml"]) == 0
    assert pq.read_table(home.folder / "out/parts").num_rows == home.header()["source"]["account"]["predicted"] > 200
