"""The daemon of one partition: it waits for its directory, reports, and does not outlive its member."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamkernel.daemon.base.errors import CheckpointError
from streamkernel.daemon.checkpoints.store import CheckpointStore
from streamkernel.daemon.group.reports import Report, Reporter, ReportReader
from streamkernel.daemon.partition import PartitionListener
from streamkernel.daemon.run_state.coordinator import CheckpointCoordinator
from streamkernel.daemon.run_state.resume import Start
from streamkernel.daemon.stream.sinks import Sinks
from streamkernel.daemon.stream.stop import Stopped

CHILD = """
import sys, time
from streamkernel.daemon.base.parent_death import die_with
die_with(int(sys.argv[1]))
print("ready", flush=True)
time.sleep(600)
"""


@pytest.mark.usefixtures("processes")
def test_a_child_whose_member_died_before_it_could_say_so_ends() -> None:
    ended = subprocess.run([sys.executable, "-c", CHILD, "1"], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (1, "")


def test_the_group_is_told_of_the_marks_behind_the_last_record_while_none_comes() -> None:
    told: list[Mapping[int, int]] = []
    offsets = [{0: 4}, {0: 4}, {0: 5}]
    checkpoint = SimpleNamespace(every_records=100, every_seconds=30)
    source = SimpleNamespace(commit=lambda _: offsets.pop(0))
    plan: Any = SimpleNamespace(
        config=SimpleNamespace(checkpoint=checkpoint), source=source, sources={"source": source}
    )
    processor: Any = SimpleNamespace(taken=7)
    store: Any = object()
    coordinator = CheckpointCoordinator(plan, store, processor, Sinks({}), Start(None), saved=told.append)  # type: ignore[arg-type]
    assert coordinator.schedule is not None
    coordinator.schedule.consumed = 7
    for _ in range(3):
        coordinator.save_when_due()
    assert told == [{0: 4}, {0: 5}]
    processor.taken = 8  # it has something to learn first
    coordinator.save_when_due()
    assert (told, offsets) == ([{0: 4}, {0: 5}], [])


def pipe() -> tuple[ReportReader, Reporter, Callable[[], None]]:
    ours, theirs = os.pipe()
    return ReportReader(ours), Reporter(theirs), lambda: (os.close(ours), os.close(theirs))[0]


def test_the_directory_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    monkeypatch.setattr("streamkernel.daemon.partition.LOCK_SECONDS", 0.01)
    reader, reporter, close = pipe()
    before, after = CheckpointStore(tmp_path / "a"), CheckpointStore(tmp_path / "a")
    before.lock()
    asked = 0

    def stopped() -> bool:
        nonlocal asked
        asked += 1
        if asked == 5:
            before.close()
        return False

    PartitionListener(reporter, os.getppid()).take(after, stopped)
    assert asked >= 5
    assert reader.read() == [Report("waiting", f"process {os.getpid()}")]
    assert caplog.messages == [f"waiting for {tmp_path / 'a'}, held by process {os.getpid()}"]

    with pytest.raises(Stopped):
        PartitionListener(reporter, os.getppid()).take(before, lambda: True)
    after.close()
    close()


def test_who_lost_its_lock_writes_nothing_more(tmp_path: Path) -> None:
    store = CheckpointStore(tmp_path)
    store.lock()
    store.write({}, b"mine")
    # As where a file server has given the lock of a machine it did not hear to another one.
    (tmp_path / "lock").write_text("7 elsewhere")
    with pytest.raises(CheckpointError, match=r"was taken over by another daemon \(process 7 on elsewhere\)"):
        store.write({}, b"mine")
    (tmp_path / "lock").unlink()
    with pytest.raises(CheckpointError, match="its lock was removed"):
        store.write({}, b"mine")
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-000000000000.skc"]


def test_reports_never_wait_and_arrive_in_order() -> None:
    reader, reporter, close = pipe()
    # A member that is stopped does not read: what a pipe and as much again cannot hold is dropped.
    for number in range(50_000):
        reporter.send("saved", number)
    found: list[Report] = []

    def read_all() -> None:
        while not (found and not reporter._waiting):
            reporter.flush(0.0)
            found.extend(reader.read())
        found.extend(reader.read())

    read_all()
    values = [report.value for report in found]
    assert values == list(range(len(values)))
    assert 5_000 < len(values) < 50_000
    # What a daemon dies of is told in full.
    reporter.send("failed", "a long story " * 10_000)
    read_all()
    assert found[-1].value == "a long story " * 10_000
    close()
